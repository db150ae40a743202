//! Registries that require authentication.

use std::{fs, time::Duration};

use runner_core::Reason;
use runner_image::Flavour;
use runner_registry::{Keychain, Options, Registry};
use runner_test_support::{
    http_server::{Reply, Server},
    registry::{DockerRegistry, Protection, TokenServer, USER, index, push},
};

use super::{docker_config, eventually, name, options, registry};

const HOUR: Duration = Duration::from_secs(3600);

fn with(keychain: Keychain) -> Registry {
    let failure_ttl = Duration::ZERO;
    Registry::new(Options {
        keychain,
        failure_ttl,
        ..options()
    })
    .unwrap()
}

#[tokio::test]
async fn uses_a_password_from_the_docker_config() {
    let server = DockerRegistry::start_with(Protection::Password, None);
    let (directory, image) = (
        tempfile::tempdir().unwrap(),
        name(&server.host(), "team/fn:v1"),
    );
    let registry = with(docker_config(directory.path(), &server.host(), USER));
    push(&registry, &image, &index(Flavour::Oci)).await;
    let found = registry.inspect(&image, None, None).await.unwrap();
    let file = directory.path().join("config.json");
    assert_eq!(
        found.credential_source,
        format!(
            "the credentials for {} in {}",
            server.host(),
            file.display()
        )
    );
}

#[tokio::test]
async fn names_registry_and_source_but_no_secret_in_a_refusal() {
    let server = DockerRegistry::start_with(Protection::Password, None);
    let (directory, image) = (tempfile::tempdir().unwrap(), name(&server.host(), "fn:v1"));
    let error = registry().inspect(&image, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::RegistryAuth);
    let start = format!("registry {} refused access to {image}", server.host());
    assert!(error.to_string().starts_with(&start), "{error}");
    assert!(
        error.to_string().ends_with("tried with no credentials"),
        "{error}"
    );

    let wrong = docker_config(directory.path(), &server.host(), (USER.0, "battery staple"));
    let error = with(wrong).inspect(&image, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::RegistryAuth);
    let source = format!("tried with the credentials for {} in", server.host());
    assert!(error.to_string().contains(&source), "{error}");
    assert!(!error.to_string().contains("battery"), "{error}");

    let gone = Keychain::file(directory.path().join("missing"));
    let error = with(gone).inspect(&image, None, None).await.unwrap_err();
    assert!(error.to_string().contains("(there is no "), "{error}");
}

#[tokio::test]
async fn rereads_a_changed_docker_config() {
    let server = DockerRegistry::start_with(Protection::Password, None);
    let (directory, image) = (tempfile::tempdir().unwrap(), name(&server.host(), "fn:v1"));
    let right = || docker_config(directory.path(), &server.host(), USER);
    push(&with(right()), &image, &index(Flavour::Oci)).await;

    let registry = with(docker_config(
        directory.path(),
        &server.host(),
        (USER.0, "wrong"),
    ));
    registry.inspect(&image, None, None).await.unwrap_err();
    right();
    let inspect = async || registry.inspect(&image, None, None).await;
    eventually(inspect, Result::is_ok).await.unwrap();

    docker_config(directory.path(), &server.host(), (USER.0, "wrong"));
    let other = name(&server.host(), "fn:v2");
    let error = registry.inspect(&other, None, None).await.unwrap_err();
    assert_eq!(
        error.reason(),
        Reason::RegistryAuth,
        "what was accepted before is not used: {error}"
    );
}

#[tokio::test]
async fn prefers_private_credentials_over_the_default_ones() {
    let server = DockerRegistry::start_with(Protection::Password, None);
    let (directory, image) = (tempfile::tempdir().unwrap(), name(&server.host(), "fn:v1"));
    docker_config(directory.path(), &server.host(), USER);
    let private_credentials = Some(directory.path().join("config.json"));
    let defaults = tempfile::tempdir().unwrap();
    let registry = Registry::new(Options {
        keychain: docker_config(defaults.path(), &server.host(), (USER.0, "wrong")),
        private_credentials,
        ..options()
    })
    .unwrap();
    push(&registry, &image, &index(Flavour::Oci)).await;
    registry.inspect(&image, None, None).await.unwrap();
}

#[tokio::test]
async fn reuses_a_token_until_it_expires() {
    let tokens = TokenServer::start(HOUR).await;
    let server = DockerRegistry::start_with(Protection::Token(&tokens), None);
    let (directory, image) = (
        tempfile::tempdir().unwrap(),
        name(&server.host(), "team/fn:v1"),
    );
    let keychain = docker_config(directory.path(), &server.host(), USER);
    push(&with(keychain.clone()), &image, &index(Flavour::Oci)).await;

    let registry = with(keychain);
    let before = tokens.requests();
    registry.inspect(&image, None, None).await.unwrap();
    let other = name(&server.host(), "team/fn:v2");
    let error = registry.inspect(&other, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::FunctionNotFound, "{error}");
    assert_eq!(
        tokens.requests() - before,
        1,
        "manifest, config and the other tag share a token"
    );
}

#[tokio::test]
async fn replaces_an_expired_token() {
    // Tokens are dropped before they expire: these at once.
    let tokens = TokenServer::start(Duration::ZERO).await;
    let server = Server::start({
        let realm = format!("Bearer realm=\"{}\",service=\"s\"", tokens.realm());
        move |request| match request.header("authorization") {
            Some(_) => Reply::new(404, "{}"),
            None => Reply::new(401, "{}").with("WWW-Authenticate", realm.clone()),
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let registry = with(docker_config(directory.path(), &server.host(), USER));
    for tag in ["fn:v1", "fn:v2"] {
        let error = registry
            .inspect(&name(&server.host(), tag), None, None)
            .await
            .unwrap_err();
        assert_eq!(error.reason(), Reason::FunctionNotFound, "{error}");
    }
    assert_eq!(tokens.requests(), 2);
}

#[tokio::test]
async fn accepts_a_token_with_an_excessive_lifetime() {
    let tokens = Server::start(|_| {
        Reply::new(
            200,
            r#"{"access_token":"t","expires_in":18446744073709551615}"#,
        )
    })
    .await;
    let server = Server::start({
        let realm = format!("Bearer realm=\"http://{}/token\"", tokens.host());
        move |request| match request.header("authorization") {
            Some("Bearer t") => Reply::new(404, "{}"),
            _ => Reply::new(401, "{}").with("WWW-Authenticate", realm.clone()),
        }
    })
    .await;
    let image = name(&server.host(), "fn:v1");
    let error = registry().inspect(&image, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::FunctionNotFound, "{error}");
}

#[tokio::test]
async fn requests_only_one_token_if_it_is_refused() {
    let tokens = TokenServer::start(HOUR).await;
    let server = Server::start({
        let realm = format!("Bearer realm=\"{}\",service=\"s\"", tokens.realm());
        move |_| Reply::new(401, "{}").with("WWW-Authenticate", realm.clone())
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let registry = with(docker_config(directory.path(), &server.host(), USER));
    let error = registry
        .inspect(&name(&server.host(), "fn:v1"), None, None)
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::RegistryAuth, "{error}");
    assert_eq!((tokens.requests(), server.requests().len()), (1, 2));
}

#[tokio::test]
async fn exchanges_an_identity_token() {
    let tokens = TokenServer::start(HOUR).await;
    let server = DockerRegistry::start_with(Protection::Token(&tokens), None);
    let (directory, image) = (
        tempfile::tempdir().unwrap(),
        name(&server.host(), "team/fn:v1"),
    );
    let file = directory.path().join("config.json");
    let token = TokenServer::REFRESH;
    let text = format!(
        r#"{{"auths": {{"{}": {{"identitytoken": "{token}"}}}}}}"#,
        server.host()
    );
    fs::write(&file, text).unwrap();
    let registry = with(Keychain::file(file));
    push(&registry, &image, &index(Flavour::Oci)).await;
    registry.inspect(&image, None, None).await.unwrap();
}

#[tokio::test]
async fn reports_a_refusal_by_the_token_server() {
    let tokens = TokenServer::start(HOUR).await;
    let server = DockerRegistry::start_with(Protection::Token(&tokens), None);
    let image = name(&server.host(), "team/fn:v1");
    let error = registry().inspect(&image, None, None).await.unwrap_err();
    assert_eq!(error.reason(), Reason::RegistryAuth);
    assert!(
        error.to_string().contains("(wrong user or password)"),
        "{error}"
    );
}

#[tokio::test]
async fn sends_no_credentials_to_a_token_server_without_tls() {
    let server = Server::start(|_| {
        let realm = "Bearer realm=\"http://tokens.example.com/token\",service=\"s\"";
        Reply::new(401, "{}").with("WWW-Authenticate", realm)
    })
    .await;
    let error = registry()
        .inspect(&name(&server.host(), "fn"), None, None)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("http://tokens.example.com/token has no TLS"),
        "{error}"
    );
}
