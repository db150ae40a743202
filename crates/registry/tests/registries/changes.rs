//! Changes of tags and registries while the runner runs.

use std::time::{Duration, Instant};

use runner_core::{ImageReference, Reason};
use runner_image::Flavour;
use runner_registry::{Options, Registry, RegistryError};
use runner_test_support::{
    http_server::{Reply, Server},
    registry::{DockerRegistry, image, push_image},
};

use super::{constraint, eventually, name, options, registry};

/// Creates a client that caches tags and failures for 1 ms only.
fn registry_with_short_ttl() -> Registry {
    let tag_ttl = Duration::from_millis(1);
    let failure_ttl = Duration::from_millis(1);
    Registry::new(Options {
        tag_ttl,
        failure_ttl,
        ..options()
    })
    .unwrap()
}

/// Pushes an image whose entrypoint is this program.
async fn push_entrypoint(registry: &Registry, name: &ImageReference, program: &str) {
    let pushed = image("amd64", Flavour::Oci, &[program]);
    push_image(registry, name, &pushed).await;
}

#[tokio::test]
async fn detects_a_moved_tag() {
    let server = DockerRegistry::start();
    let (registry, tagged) = (registry_with_short_ttl(), name(&server.host(), "fn:latest"));
    push_entrypoint(&registry, &tagged, "/old").await;
    let inspect = async || registry.inspect(&tagged, None, None).await.unwrap();
    assert_eq!(inspect().await.entrypoint[0], "/old");
    push_entrypoint(&registry, &tagged, "/new").await;
    eventually(inspect, |found| found.entrypoint[0] == "/new").await;
}

#[tokio::test]
async fn checks_an_unchanged_tag_by_headers_only() {
    let docker = DockerRegistry::start();
    push_entrypoint(&registry(), &name(&docker.host(), "fn:v1"), "/function").await;
    let front = Server::in_front_of(&docker.host()).await;
    let (registry, tagged) = (registry_with_short_ttl(), name(&front.host(), "fn:v1"));
    let inspect = async || {
        registry
            .inspect(&tagged, None, None)
            .await
            .map(|_| front.requests())
    };
    let checked = |method: &str| {
        let requests = front.requests();
        requests
            .into_iter()
            .find(|one| one.method == method && one.path.contains("manifests"))
    };
    eventually(inspect, |_| checked("HEAD").is_some())
        .await
        .unwrap();
    let digest = image("amd64", Flavour::Oci, &["/function"])
        .manifest()
        .digest()
        .to_owned();
    let condition = format!("\"{digest}\"");
    assert_eq!(
        checked("HEAD").unwrap().header("if-none-match"),
        Some(condition.as_str())
    );
    assert_eq!(front.count("GET", "/manifests/"), 1);
}

#[tokio::test]
async fn selects_a_new_version() {
    let server = DockerRegistry::start();
    let (registry, tagged) = (registry_with_short_ttl(), name(&server.host(), "fn"));
    let caret = constraint("^1");
    let release = async |tag: &str| {
        let pushed = image("amd64", Flavour::Oci, &["/function", tag]);
        push_image(&registry, &tagged.at_tag(tag), &pushed).await;
    };
    release("v1.0.0").await;
    let inspect = async || registry.inspect(&tagged, Some(&caret), None).await.unwrap();
    assert_eq!(inspect().await.entrypoint[1], "v1.0.0");
    release("v1.1.0").await;
    eventually(inspect, |found| found.entrypoint[1] == "v1.1.0").await;
}

#[tokio::test]
async fn keeps_known_images_while_the_registry_is_down() {
    let mut server = DockerRegistry::start();
    let (registry, tagged) = (registry_with_short_ttl(), name(&server.host(), "fn:v1"));
    push_entrypoint(&registry, &tagged, "/old").await;
    registry.inspect(&tagged, None, None).await.unwrap();

    server.kill();
    for _ in 0..20 {
        registry.inspect(&tagged, None, None).await.unwrap();
    }
    let unknown = name(&server.host(), "fn:v2");
    let error = registry.inspect(&unknown, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::RegistryUnreachable);
    assert!(error.to_string().contains("onnection refused"), "{error}");

    server.restart();
    push_entrypoint(&registry, &unknown, "/v2").await;
    let inspect = async || registry.inspect(&unknown, None, None).await;
    eventually(inspect, Result::is_ok).await.unwrap();
    push_entrypoint(&registry, &tagged, "/new").await;
    let inspect = async || registry.inspect(&tagged, None, None).await.unwrap();
    eventually(inspect, |found| found.entrypoint[0] == "/new").await;
}

#[tokio::test]
async fn drops_a_deleted_tag() {
    let docker = DockerRegistry::start();
    push_entrypoint(&registry(), &name(&docker.host(), "fn:v1"), "/function").await;
    let there = docker.host().parse().unwrap();
    let front = Server::start(move |request| {
        if request.method == "HEAD" {
            Reply::new(404, "")
        } else {
            Reply::Forward(there)
        }
    })
    .await;
    let (registry, tagged) = (registry_with_short_ttl(), name(&front.host(), "fn:v1"));
    registry.inspect(&tagged, None, None).await.unwrap();
    let inspect = async || {
        registry.inspect(&tagged, None, None).await.unwrap();
        front.count("GET", "/manifests/v1")
    };
    eventually(inspect, |fetches| *fetches > 1).await;
}

#[tokio::test]
async fn continues_a_lookup_after_the_callers_deadline() {
    let docker = DockerRegistry::start();
    push_entrypoint(&registry(), &name(&docker.host(), "fn:v1"), "/function").await;
    let front = Server::in_front_of(&docker.host()).await;
    let (registry, tagged) = (registry(), name(&front.host(), "fn:v1"));
    let error = registry
        .inspect(&tagged, None, Some(Instant::now()))
        .await
        .unwrap_err();
    assert!(
        matches!(error, RegistryError::DeadlineExceeded { .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("waiting for registry 127.0.0.1"),
        "{error}"
    );
    registry.inspect(&tagged, None, None).await.unwrap();
    assert_eq!(front.count("GET", "/manifests/v1"), 1);
}
