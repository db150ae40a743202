//! Mirrors are tried first; the registry itself is the fallback.

use runner_image::Flavour;
use runner_registry::{Options, Registry};
use runner_test_support::{
    http_server::{Reply, Server},
    registry::{DockerRegistry, image, push_image},
};

use super::{constraint, name, options, registry};

fn mirrored(host: &str, mirror: &str) -> Registry {
    let mirrors = vec![format!("{host}={mirror}").parse().unwrap()];
    Registry::new(Options {
        mirrors,
        ..options()
    })
    .unwrap()
}

#[tokio::test]
async fn uses_a_mirror_instead_of_the_registry() {
    let mirror = DockerRegistry::start();
    let pushed = image("amd64", Flavour::Oci, &["/function"]);
    push_image(
        &registry(),
        &name(&mirror.host(), "proxy/team/fn:v1.0.0"),
        &pushed,
    )
    .await;
    let registry = mirrored("registry.invalid", &format!("{}/proxy", mirror.host()));
    let image = name("registry.invalid", "team/fn:v1.0.0");
    let found = registry.inspect(&image, None, None).await.unwrap();
    let digest = pushed.manifest().digest();
    assert_eq!(
        found.reference.to_string(),
        format!("registry.invalid/team/fn:v1.0.0@{digest}"),
        "nodes have mirrors of their own"
    );
    let found = registry
        .inspect(&image, Some(&constraint("^1")), None)
        .await
        .unwrap();
    assert_eq!(found.digest.as_str(), digest);
}

#[tokio::test]
async fn falls_back_to_the_registry_if_the_mirror_fails() {
    let server = DockerRegistry::start();
    let pushed = image("amd64", Flavour::Oci, &["/function"]);
    let tagged = name(&server.host(), "fn:v1");
    push_image(&registry(), &tagged, &pushed).await;
    for status in [404, 403, 500] {
        let mirror = Server::start(move |_| Reply::new(status, "{}")).await;
        let registry = mirrored(&server.host(), &mirror.host());
        registry.inspect(&tagged, None, None).await.unwrap();
        assert_eq!(mirror.requests().len(), 1, "{status}");
    }
}
