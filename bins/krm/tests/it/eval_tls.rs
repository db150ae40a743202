//! TLS connections, with and without a client certificate.

use crate::support::{DEPLOYMENT, Function, Package, Runner};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// Certificates of an authority, a server and a client, as files.
struct Files {
    package: Package,
    server: ServerTlsConfig,
}

impl Files {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let issue = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new([name.to_owned()]).unwrap();
            let certificate = params.signed_by(&key, &authority).unwrap();
            (certificate.pem(), key.serialize_pem())
        };
        let (certificate, key) = issue("127.0.0.1");
        let (client, client_key) = issue("client");
        let files = [
            ("ca.pem", &*authority.pem()),
            ("client.pem", &client),
            ("key.pem", &client_key),
        ];
        let server = ServerTlsConfig::new()
            .identity(Identity::from_pem(certificate, key))
            .client_ca_root(Certificate::from_pem(authority.pem()));
        Self {
            package: Package::new(&files),
            server,
        }
    }

    fn path(&self, name: &str) -> String {
        self.package.path().join(name).to_str().unwrap().to_owned()
    }
}

#[test]
fn connects_with_a_client_certificate() {
    let files = Files::new();
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = Runner::start_with_tls(Function::identity(), files.server.clone());
    let (ca, cert, key) = (
        files.path("ca.pem"),
        files.path("client.pem"),
        files.path("key.pem"),
    );
    let run = runner.eval(&[
        "--ca-file",
        &ca,
        "--cert-file",
        &cert,
        "--key-file",
        &key,
        package.arg(),
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("1 unchanged"), "{}", run.stdout);
}

#[test]
fn reports_missing_tls_or_client_certificate() {
    let files = Files::new();
    let package = Package::new(&[("web.yaml", DEPLOYMENT)]);
    let runner = Runner::start_with_tls(Function::identity(), files.server.clone());
    let ca = files.path("ca.pem");
    for arguments in [&["--ca-file", &ca][..], &["--tls"], &[]] {
        let run = runner.eval(&[arguments, &[package.arg()]].concat());
        assert_eq!(run.code, 3, "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}
