//! Tests of TLS and client certificates.

use std::{fs, os::unix::fs::symlink, path::Path};

use runner_test_support::{Authority, Client, Issued, LIST, list_of};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::support::{Runner, Setup};

/// Returns a client that trusts this authority.
fn trust(authority: &Authority) -> ClientTlsConfig {
    ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(authority.pem()))
        .domain_name("localhost")
}

/// Returns a certificate of this authority for a client.
fn client_of(authority: &Authority) -> Identity {
    let Issued { certificate, key } = authority.client();
    Identity::from_pem(certificate, key)
}

async fn serve(authority: &Authority, client_ca: Option<&Authority>) -> Runner {
    let Issued { certificate, key } = authority.server();
    let setup = Setup::with("cat", "cat");
    let write = |name: &str, text: String| -> String {
        let path = setup.path(name);
        fs::write(&path, text).unwrap();
        Path::to_str(&path).unwrap().to_owned()
    };
    let mut flags = vec![
        format!("--tls-cert-file={}", write("server.crt", certificate)),
        format!("--tls-key-file={}", write("server.key", key)),
    ];
    if let Some(ca) = client_ca {
        flags.push(format!(
            "--client-ca-file={}",
            write("clients.crt", ca.pem())
        ));
    }
    flags.into_iter().fold(setup, Setup::flag).start().await
}

/// Connects and evaluates; with TLS 1.3 a rejected certificate may only be reported by the call.
async fn evaluate(runner: &Runner, tls: Option<ClientTlsConfig>) -> Result<String, String> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{}", runner.address)).unwrap();
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).unwrap();
    }
    let channel = endpoint
        .connect()
        .await
        .map_err(|error| format!("{error:?}"))?;
    match Client::over(channel).call("cat").await {
        Ok(answer) => Ok(list_of(Ok(answer))),
        Err(status) => Err(format!("{status:?}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_tls_with_a_certificate() {
    let authority = Authority::new();
    let runner = serve(&authority, None).await;
    assert_eq!(
        evaluate(&runner, Some(trust(&authority))).await.unwrap(),
        LIST
    );
    evaluate(&runner, None).await.unwrap_err();
    let doubt = evaluate(&runner, Some(trust(&Authority::new()))).await;
    assert!(doubt.unwrap_err().contains("InvalidCertificate"));
    // Rejected clients do not affect the others.
    assert_eq!(
        evaluate(&runner, Some(trust(&authority))).await.unwrap(),
        LIST
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn accepts_only_clients_of_the_configured_authority() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let runner = serve(&authority, Some(&clients)).await;
    let known = trust(&authority).identity(client_of(&clients));
    assert_eq!(evaluate(&runner, Some(known)).await.unwrap(), LIST);
    evaluate(&runner, Some(trust(&authority)))
        .await
        .unwrap_err();
    let stranger = trust(&authority).identity(client_of(&Authority::new()));
    evaluate(&runner, Some(stranger)).await.unwrap_err();
    evaluate(&runner, None).await.unwrap_err();
}

/// Writes files as the kubelet does: into a new directory, to which a symbolic link is swapped.
fn mount(directory: &Path, version: &str, files: &[(&str, &str)]) {
    let own = directory.join(version);
    fs::create_dir(&own).unwrap();
    for (name, text) in files {
        fs::write(own.join(name), text).unwrap();
    }
    let link = directory.join(format!("{version}-link"));
    symlink(&own, &link).unwrap();
    fs::rename(link, directory.join("data")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reloads_changed_certificates() {
    let (old, new) = (Authority::new(), Authority::new());
    let setup = Setup::with("cat", "cat");
    let volume = setup.path("volume");
    fs::create_dir(&volume).unwrap();
    let files = |version: &str, issued: &Issued| {
        let files = [
            ("tls.crt", issued.certificate.as_str()),
            ("tls.key", issued.key.as_str()),
        ];
        mount(&volume, version, &files);
    };
    files("1", &old.server());
    let runner = setup
        .flag(format!("--tls-cert-file={}/data/tls.crt", volume.display()))
        .flag(format!("--tls-key-file={}/data/tls.key", volume.display()))
        .start()
        .await;
    let call = async |authority: &Authority| evaluate(&runner, Some(trust(authority))).await;
    assert_eq!(call(&old).await.unwrap(), LIST);

    files("2", &new.server());
    runner.logged("the TLS certificates were read again").await;
    assert_eq!(call(&new).await.unwrap(), LIST);
    call(&old).await.unwrap_err();

    // The key belongs to another certificate.
    let mut mixed = new.server();
    mixed.key = old.server().key;
    files("3", &mixed);
    let warning = runner.logged("the TLS certificates in use stay").await;
    assert_eq!(warning["level"], "warn");
    assert_eq!(call(&new).await.unwrap(), LIST);
}
