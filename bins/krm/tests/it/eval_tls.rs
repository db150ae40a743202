//! TLS connections, with and without a client certificate.

use runner_test_support::{Authority, FakeRunner, Function, Package};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

use crate::support::{DEPLOYMENT, eval};

/// Certificates of an authority, a server and a client, as files.
struct Files {
    package: Package,
    server: ServerTlsConfig,
}

impl Files {
    fn new() -> Self {
        let authority = Authority::new();
        let (server, client) = (authority.server(), authority.client());
        let files = [
            ("ca.pem", &*authority.pem()),
            ("client.pem", &client.certificate),
            ("key.pem", &client.key),
        ];
        let server = ServerTlsConfig::new()
            .identity(Identity::from_pem(server.certificate, server.key))
            .client_ca_root(Certificate::from_pem(authority.pem()));
        Self {
            package: Package::new(&files),
            server,
        }
    }

    fn path(&self, name: &str) -> String {
        self.package.file(name)
    }
}

#[test]
fn connects_with_a_client_certificate() {
    let files = Files::new();
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start_with_tls(Function::identity(), files.server.clone());
    let (ca, cert, key) = (
        files.path("ca.pem"),
        files.path("client.pem"),
        files.path("key.pem"),
    );
    let run = eval(
        &runner,
        &[
            "--ca-file",
            &ca,
            "--cert-file",
            &cert,
            "--key-file",
            &key,
            package.arg(),
        ],
    );
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("1 unchanged"), "{}", run.stdout);
}

#[test]
fn reports_missing_tls_or_client_certificate() {
    let files = Files::new();
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = FakeRunner::start_with_tls(Function::identity(), files.server.clone());
    let ca = files.path("ca.pem");
    for arguments in [&["--ca-file", &ca][..], &["--tls"], &[]] {
        let run = eval(&runner, &[arguments, &[package.arg()]].concat());
        assert_eq!(run.code, 3, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}
