//! Registries with certificates of a private CA.

use std::fs;

use runner_core::Reason;
use runner_image::Flavour;
use runner_registry::{Options, Registry};
use runner_test_support::{
    Authority,
    registry::{DockerRegistry, Protection, index, push},
};

use super::{eventually, name, options, registry};

#[tokio::test]
async fn trusts_a_configured_private_ca() {
    let authority = Authority::new();
    let server = DockerRegistry::start_with(Protection::None, Some(&authority));
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("ca.crt"), authority.pem()).unwrap();
    let ca = Some(directory.path().to_owned());
    let registry = Registry::new(Options { ca, ..options() }).unwrap();
    let image = name(&server.host(), "fn:v1");
    push(&registry, &image, &index(Flavour::Oci)).await;
    registry.inspect(&image, None, None).await.unwrap();
}

#[tokio::test]
async fn rejects_an_unknown_ca_even_on_loopback() {
    let server = DockerRegistry::start_with(Protection::None, Some(&Authority::new()));
    let error = registry()
        .inspect(&name(&server.host(), "fn:v1"), None, None)
        .await
        .unwrap_err();
    assert_eq!(error.reason(), Reason::RegistryUnreachable);
    assert!(
        error.to_string().contains("invalid peer certificate"),
        "{error}"
    );
}

#[tokio::test]
async fn continues_without_an_unusable_ca() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("ca.pem"), "garbage").unwrap();
    let ca = Some(directory.path().to_owned());
    let registry = Registry::new(Options { ca, ..options() }).unwrap();
    let server = DockerRegistry::start();
    let image = name(&server.host(), "fn:v1");
    push(&registry, &image, &index(Flavour::Oci)).await;
    registry.inspect(&image, None, None).await.unwrap();
}

#[tokio::test]
async fn uses_a_ca_that_appears_later() {
    let authority = Authority::new();
    let server = DockerRegistry::start_with(Protection::None, Some(&authority));
    let directory = tempfile::tempdir().unwrap();
    let ca = Some(directory.path().to_owned());
    let failure_ttl = std::time::Duration::ZERO;
    let registry = Registry::new(Options {
        ca,
        failure_ttl,
        ..options()
    })
    .unwrap();
    let image = name(&server.host(), "fn:v1");
    registry.inspect(&image, None, None).await.unwrap_err();
    fs::write(directory.path().join("ca.crt"), authority.pem()).unwrap();
    push(&registry, &image, &index(Flavour::Oci)).await;
    let inspect = async || registry.inspect(&image, None, None).await;
    eventually(inspect, Result::is_ok).await.unwrap();
}
