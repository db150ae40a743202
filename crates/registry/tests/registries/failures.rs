//! Servers that are slow, broken, hostile or busy.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use runner_core::{EvaluationError, Reason};
use runner_image::Flavour;
use runner_registry::{Options, Registry};
use runner_test_support::{
    LIMIT,
    http_server::{Reply, Server},
    registry::{DockerRegistry, image, push_image},
};

use super::{docker_config, name, options, registry};

/// Creates a client with a short request timeout, so that several attempts fit into a test.
fn registry_with_short_timeout() -> Registry {
    let request_timeout = Duration::from_millis(100);
    Registry::new(Options {
        request_timeout,
        ..options()
    })
    .unwrap()
}

async fn error_of(registry: &Registry, server: &Server) -> EvaluationError {
    let image = name(&server.host(), "fn:v1");
    let answer = tokio::time::timeout(LIMIT, registry.inspect(&image, None, None)).await;
    answer.expect("an answer in time").unwrap_err().into()
}

#[tokio::test]
async fn times_out_on_a_silent_registry() {
    let server = Server::start(|_| Reply::Silent).await;
    let error = error_of(&registry_with_short_timeout(), &server).await;
    assert_eq!(error.reason(), Reason::RegistryUnreachable);
    assert!(error.message().contains("timed out"), "{error}");
}

#[tokio::test]
async fn honours_the_callers_deadline() {
    let server = Server::start(|_| Reply::Silent).await;
    let deadline = Instant::now() + Duration::from_millis(50);
    let image = name(&server.host(), "fn:v1");
    let error = registry()
        .inspect(&image, None, Some(deadline))
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::DeadlineExceeded);
}

#[tokio::test]
async fn retries_after_a_truncated_response() {
    let server = Server::start(|_| Reply::Truncated("{\"config\":".into())).await;
    let error = error_of(&registry(), &server).await;
    assert_eq!(error.reason(), Reason::RegistryUnreachable, "{error}");
    assert!(server.requests().len() > 1, "it was tried again");
}

#[tokio::test]
async fn rejects_a_manifest_over_the_size_limit() {
    let endless = Server::start(|_| Reply::Endless).await;
    let announced = Server::start(|_| Reply::new(200, vec![b' '; (4 << 20) + 1])).await;
    for server in [endless, announced] {
        let error = error_of(&registry(), &server).await;
        assert_eq!(error.reason(), Reason::BadImage);
        assert!(
            error
                .message()
                .contains("its manifest is larger than 4194304 bytes"),
            "{error}"
        );
        assert_eq!(
            server.count("GET", "/manifests/"),
            1,
            "the registry gets no second request"
        );
    }
}

#[tokio::test]
async fn rejects_a_manifest_with_a_wrong_digest() {
    let other = format!("sha256:{}", "0".repeat(64));
    let announced = other.clone();
    let server = Server::start(move |_| {
        Reply::new(200, "{}").with("Docker-Content-Digest", announced.clone())
    })
    .await;
    let error = error_of(&registry(), &server).await;
    assert_eq!(error.reason(), Reason::RegistryUnreachable);
    assert!(
        error
            .message()
            .contains(&format!("where {other} was expected")),
        "{error}"
    );

    let pinned = name(&server.host(), &format!("fn@{other}"));
    let error = registry().inspect(&pinned, None, None).await.unwrap_err();
    assert!(error.to_string().contains("was expected"), "{error}");
}

#[tokio::test]
async fn rejects_a_config_with_a_wrong_digest() {
    let docker = DockerRegistry::start();
    let pushed = image("amd64", Flavour::Oci, &["/function"]);
    push_image(&registry(), &name(&docker.host(), "fn:v1"), &pushed).await;
    let there = docker.host().parse().unwrap();
    let server = Server::start(move |request| {
        if request.path.contains("/blobs/") {
            Reply::new(200, r#"{"config":{"Entrypoint":["/evil"]}}"#)
        } else {
            Reply::Forward(there)
        }
    })
    .await;
    let error = error_of(&registry(), &server).await;
    assert!(
        error.message().contains(pushed.config().digest()),
        "{error}"
    );
}

#[tokio::test]
async fn follows_redirects_of_blobs_without_credentials() {
    let docker = DockerRegistry::start();
    let pushed = image("amd64", Flavour::Oci, &["/function"]);
    push_image(&registry(), &name(&docker.host(), "fn:v1"), &pushed).await;
    let content = pushed.config().bytes().clone();
    let store = Server::start(move |_| Reply::new(200, content.clone())).await;
    let (there, blobs) = (docker.host().parse().unwrap(), store.host());
    let server = Server::start(move |request| {
        if request.header("authorization").is_none() {
            Reply::new(401, "{}").with("WWW-Authenticate", "Basic realm=\"test\"")
        } else if request.path.contains("/blobs/") {
            Reply::new(307, "").with("Location", format!("http://{blobs}/config"))
        } else {
            Reply::Forward(there)
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let keychain = docker_config(directory.path(), &server.host(), ("me", "secret"));
    let registry = Registry::new(Options {
        keychain,
        ..options()
    })
    .unwrap();
    let found = registry
        .inspect(&name(&server.host(), "fn:v1"), None, None)
        .await
        .unwrap();
    assert_eq!(found.entrypoint[0], "/function");
    let requests = store.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].header("authorization"), None);
}

#[tokio::test]
async fn rejects_a_redirect_to_a_host_without_tls() {
    let server =
        Server::start(|_| Reply::new(307, "").with("Location", "http://blobs.example.com/x")).await;
    let error = error_of(&registry(), &server).await;
    assert!(
        error.message().contains("redirected to a host without TLS"),
        "{error}"
    );
}

#[tokio::test]
async fn stops_at_a_redirect_loop() {
    let server =
        Server::start(|_| Reply::new(307, "").with("Location", "/v2/fn/manifests/v1")).await;
    let error = error_of(&registry(), &server).await;
    assert!(error.message().contains("too many redirects"), "{error}");
}

#[tokio::test]
async fn retries_a_busy_registry() {
    let docker = DockerRegistry::start();
    let pushed = image("amd64", Flavour::Oci, &["/function"]);
    push_image(&registry(), &name(&docker.host(), "fn:v1"), &pushed).await;
    let (there, calls) = (docker.host().parse().unwrap(), AtomicUsize::new(0));
    let server = Server::start(move |_| match calls.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::new(429, "{}").with("Retry-After", "0"),
        1 => Reply::new(503, "{}"),
        _ => Reply::Forward(there),
    })
    .await;
    registry()
        .inspect(&name(&server.host(), "fn:v1"), None, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn honours_a_long_retry_after() {
    let server = Server::start(|_| {
        let body = r#"{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}"#;
        Reply::new(429, body).with("Retry-After", "3600")
    })
    .await;
    let registry = registry();
    let error = error_of(&registry, &server).await;
    assert_eq!(error.reason(), Reason::RegistryUnreachable);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    assert!(error.message().contains("429"), "{error}");
    assert!(
        error.message().ends_with("TOOMANYREQUESTS: slow down"),
        "{error}"
    );
    assert_eq!(
        error_of(&registry, &server).await,
        error,
        "the failure is remembered"
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn rejects_a_body_that_is_not_a_manifest() {
    let server = Server::start(|_| Reply::new(200, "<html>welcome</html>")).await;
    let error = error_of(&registry(), &server).await;
    assert_eq!(error.reason(), Reason::BadImage);
    assert!(
        error.message().contains("its manifest is malformed"),
        "{error}"
    );
}
