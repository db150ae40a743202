//! A registry without authentication.

use std::sync::Arc;

use rstest::rstest;
use runner_core::{EvaluationError, Reason};
use runner_image::{Config, Flavour, Image, Platform};
use runner_registry::{Options, Registry};
use runner_test_support::{
    http_server::{Reply, Server},
    registry::{DockerRegistry, image, index, push, push_image},
};
use tokio::sync::Barrier;

use super::{constraint, name, options, registry};

#[rstest]
#[case(Flavour::Oci)]
#[case(Flavour::Docker)]
#[tokio::test]
async fn selects_the_image_of_the_platform_from_an_index(#[case] flavour: Flavour) {
    let server = DockerRegistry::start();
    let (registry, image) = (registry(), name(&server.host(), "team/fn:v1"));
    let index = index(flavour);
    push(&registry, &image, &index).await;

    let found = registry.inspect(&image, None, None).await.unwrap();
    assert_eq!(found.digest.as_str(), index.document().digest());
    assert_eq!(
        found.reference.to_string(),
        format!("{image}@{}", index.document().digest())
    );
    assert_eq!(found.platform.to_string(), "linux/amd64");
    assert_eq!(found.entrypoint, ["/function", "amd64", "--from-cmd"]);
    assert_eq!(
        (found.user.as_str(), found.working_dir.as_str()),
        ("10001", "/work")
    );
    assert_eq!(found.env, ["PATH=/bin"]);
    assert_eq!(found.credential_source, "no credentials");

    let arm = Options {
        platform: "linux/arm64".parse().unwrap(),
        ..options()
    };
    let found = Registry::new(arm)
        .unwrap()
        .inspect(&image, None, None)
        .await
        .unwrap();
    assert_eq!(found.entrypoint, ["/function", "arm64", "--from-cmd"]);
    assert_eq!(found.digest.as_str(), index.document().digest());

    let mainframe = Options {
        platform: "linux/s390x".parse().unwrap(),
        ..options()
    };
    let error = Registry::new(mainframe)
        .unwrap()
        .inspect(&image, None, None)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("image {image} is not made for linux/s390x, only for linux/amd64, linux/arm64")
    );
    assert_eq!(error.reason(), Reason::FunctionNotFound);
}

#[rstest]
#[case(Flavour::Oci)]
#[case(Flavour::Docker)]
#[tokio::test]
async fn inspects_an_image_without_an_index(#[case] flavour: Flavour) {
    let server = DockerRegistry::start();
    let (registry, tagged) = (registry(), name(&server.host(), "fn"));
    let pushed = image("amd64", flavour, &["/function"]);
    push_image(&registry, &tagged, &pushed).await;

    let found = registry.inspect(&tagged, None, None).await.unwrap();
    assert_eq!(found.entrypoint, ["/function", "--from-cmd"]);
    let digest = pushed.manifest().digest();
    assert_eq!(
        found.reference.to_string(),
        format!("{tagged}:latest@{digest}")
    );

    let pinned = name(&server.host(), &format!("fn@{digest}"));
    let found = registry.inspect(&pinned, None, None).await.unwrap();
    assert_eq!(found.reference, pinned);
    let selected = registry
        .inspect(&pinned, Some(&constraint("^9")), None)
        .await
        .unwrap();
    assert_eq!(
        selected.reference, pinned,
        "a digest leaves nothing to select"
    );
}

#[tokio::test]
async fn returns_not_found_for_an_unknown_image() {
    let server = DockerRegistry::start();
    let (registry, image) = (registry(), name(&server.host(), "fn:v1"));
    push(&registry, &image, &index(Flavour::Oci)).await;
    let missing = format!("fn@sha256:{}", "0".repeat(64));
    for rest in ["fn:v2", "other:v1", &missing] {
        let image = name(&server.host(), rest);
        let error = registry.inspect(&image, None, None).await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("image {image} was not found in registry")),
            "{text}"
        );
        assert!(text.contains("MANIFEST_UNKNOWN"), "{text}");
        assert!(EvaluationError::from(error).is_not_found());
    }
}

#[tokio::test]
async fn rejects_an_image_without_an_entrypoint() {
    let server = DockerRegistry::start();
    let (registry, tagged) = (registry(), name(&server.host(), "fn:v1"));
    let builder = Image::builder(Platform::linux("amd64")).config(Config::default());
    push_image(&registry, &tagged, &builder.build().unwrap()).await;
    let error = registry.inspect(&tagged, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::BadImage);
    assert_eq!(
        error.to_string(),
        format!("image {tagged} has neither entrypoint nor command: there is nothing to run")
    );
}

#[tokio::test]
async fn selects_a_tag_by_constraint() {
    let server = DockerRegistry::start();
    let registry = registry();
    for tag in [
        "v0.3.0",
        "v0.4.0",
        "v0.4.2",
        "v0.4.3-rc.1",
        "v0.5.0",
        "latest",
        "v0.6.0-git-0a1b2c3",
        "sha256-0123456789abcdef.sig",
    ] {
        let pushed = image("amd64", Flavour::Oci, &["/function", tag]);
        push_image(
            &registry,
            &name(&server.host(), &format!("fn:{tag}")),
            &pushed,
        )
        .await;
    }
    let image = name(&server.host(), "fn:v0.3.0");
    let selects = async |text: &str| {
        let found = registry
            .inspect(&image, Some(&constraint(text)), None)
            .await;
        found
            .map(|found| found.entrypoint[1].clone())
            .map_err(|error| error.to_string())
    };
    assert_eq!(selects(">= 0.4.0 < 0.5.0").await.unwrap(), "v0.4.2");
    assert_eq!(selects("~0.4.3-rc.0").await.unwrap(), "v0.4.3-rc.1");
    assert_eq!(selects("*").await.unwrap(), "v0.5.0");
    assert_eq!(
        selects(">=0-0").await.unwrap(),
        "v0.5.0",
        "builds of a commit are no releases"
    );
    assert_eq!(selects("v0.4.0").await.unwrap(), "v0.4.0");
    assert_eq!(
        selects("0.4.0").await.unwrap(),
        "v0.4.0",
        "the v does not matter"
    );
    assert_eq!(selects("latest").await.unwrap(), "latest");
    let bare = format!("{}/fn", server.host());
    assert_eq!(
        selects("^9").await.unwrap_err(),
        format!("no tag of {bare} satisfies \"^9\"; it has 6 tags, the highest version is v0.5.0")
    );
    let error = selects("nightly").await.unwrap_err();
    assert!(error.contains("fn:nightly was not found"), "{error}");
}

#[tokio::test]
async fn reads_all_pages_of_a_tag_list() {
    let docker = DockerRegistry::start();
    let pushed = image("amd64", Flavour::Oci, &["/function"]);
    push_image(&registry(), &name(&docker.host(), "fn:v1.2.0"), &pushed).await;
    let there = docker.host().parse().unwrap();
    let server = Server::start(move |request| match request.path.as_str() {
        "/v2/fn/tags/list?n=1000" => Reply::new(200, r#"{"name":"fn","tags":["v1.0.0"]}"#).with(
            "Link",
            r#"</v2/fn/tags/list?n=1000&last=v1.0.0>; rel="next""#,
        ),
        "/v2/fn/tags/list?n=1000&last=v1.0.0" => {
            Reply::new(200, r#"{"name":"fn","tags":["v1.2.0"]}"#)
        }
        _ => Reply::Forward(there),
    })
    .await;
    let image = name(&server.host(), "fn");
    let found = registry()
        .inspect(&image, Some(&constraint("^1")), None)
        .await
        .unwrap();
    assert_eq!(found.reference.tag(), Some("v1.2.0"));
}

#[tokio::test]
async fn rejects_a_tag_list_that_continues_on_another_host() {
    let server = Server::start(|_| {
        Reply::new(200, r#"{"tags":[]}"#).with(
            "Link",
            r#"<https://elsewhere.example.com/tags>; rel="next""#,
        )
    })
    .await;
    let image = name(&server.host(), "fn");
    let error = registry()
        .inspect(&image, Some(&constraint("^1")), None)
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("continues on another host"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn fetches_once_for_a_hundred_concurrent_requests() {
    let docker = DockerRegistry::start();
    push(
        &registry(),
        &name(&docker.host(), "fn:v1"),
        &index(Flavour::Oci),
    )
    .await;
    let front = Server::in_front_of(&docker.host()).await;
    let (registry, start) = (registry(), Arc::new(Barrier::new(100)));
    let callers: Vec<_> = (0..100)
        .map(|_| {
            let (registry, start) = (registry.clone(), Arc::clone(&start));
            let image = name(&front.host(), "fn:v1");
            tokio::spawn(async move {
                start.wait().await;
                registry
                    .inspect(&image, None, None)
                    .await
                    .map(|found| found.entrypoint.len())
            })
        })
        .collect();
    for caller in callers {
        assert_eq!(caller.await.unwrap(), Ok(3));
    }
    assert_eq!(front.count("GET", "/manifests/v1"), 1);
    assert_eq!(front.count("GET", "/blobs/"), 1);
}
