//! Tests of collectors at `https://`.

#![allow(clippy::unwrap_used)]

use std::{fs, sync::Arc};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    RootCertStore, ServerConfig, crypto::aws_lc_rs, pki_types::pem::PemObject,
    server::WebPkiClientVerifier,
};
use tempfile::TempDir;
use tonic::transport::{Identity, Server, ServerTlsConfig};

use crate::{
    child::{Ended, play},
    collector::Collector,
    http_collector::HttpCollector,
};

/// A private certificate authority and the files with its certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    files: TempDir,
}

#[test]
fn trusts_a_private_authority_over_http() {
    let authority = Authority::new();
    let collector = HttpCollector::start_with_tls(authority.server(false));
    evaluate(&collector.endpoint(), &authority, &[]);
    assert_eq!(collector.exports()[0].spans().len(), 4);
}

#[test]
fn trusts_a_private_authority_over_grpc() {
    let authority = Authority::new();
    let identity = Identity::from_pem(authority.read("own.pem"), authority.read("own.key"));
    let collector = Collector::start_with(
        Server::builder()
            .tls_config(ServerTlsConfig::new().identity(identity))
            .unwrap(),
    );
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    evaluate(&collector.endpoint(), &authority, &[grpc]);
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn sends_a_client_certificate() {
    let authority = Authority::new();
    let collector = HttpCollector::start_with_tls(authority.server(true));
    let (certificate, key) = (authority.file("own.pem"), authority.file("own.key"));
    let own = [
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &*certificate),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &*key),
    ];
    evaluate(&collector.endpoint(), &authority, &own);
    assert_eq!(collector.exports()[0].spans().len(), 4);
}

#[test]
fn sends_nothing_to_an_untrusted_collector() {
    let (authority, another) = (Authority::new(), Authority::new());
    let collector = HttpCollector::start_with_tls(authority.server(false));
    let ended = evaluate(&collector.endpoint(), &another, &[]);
    assert_eq!(collector.exports().len(), 0);
    let error = ended.line("the collector was not reached")["error"].to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[test]
fn names_the_variable_of_an_unusable_file() {
    let authority = Authority::new();
    let (missing, key) = (authority.file("missing.pem"), authority.file("own.key"));
    for protocol in ["grpc", "http/protobuf"] {
        for (variable, file, hint) in [
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", &missing, "cannot read"),
            (
                "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE",
                &key,
                "no certificate",
            ),
            ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &key, "CLIENT_CERTIFICATE"),
        ] {
            let ended = play(
                "forward",
                2,
                &[
                    ("OTEL_TRACES_EXPORTER", "otlp"),
                    ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
                    ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://localhost:4318"),
                    (variable, file),
                ],
            );
            let warned = ended.lines().iter().any(|line| {
                let message = line["message"].as_str().unwrap_or_default();
                message.starts_with(&format!("{variable}: "))
                    && message.contains(hint)
                    && message.ends_with(": traces are not exported")
            });
            assert!(warned, "{}", ended.stderr);
        }
    }
}

/// Sends spans to a collector, trusting only this authority.
fn evaluate(endpoint: &str, authority: &Authority, more: &[(&str, &str)]) -> Ended {
    let (endpoint, ca) = (with_tls(endpoint), authority.file("ca.pem"));
    let mut variables = vec![
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", &*ca),
    ];
    variables.extend(more);
    play("evaluate", 2, &variables)
}

/// Returns the endpoint with `https://` and the host name of the collector's certificate.
fn with_tls(endpoint: &str) -> String {
    endpoint.replace("http://127.0.0.1", "https://localhost")
}

// === impl Authority ===

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(parameters, key).unwrap();
        let own_key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(["localhost".to_owned()])
            .unwrap()
            .signed_by(&own_key, &issuer)
            .unwrap();
        let files = tempfile::tempdir().unwrap();
        for (name, pem) in [
            ("ca.pem", issuer.pem()),
            ("own.pem", own.pem()),
            ("own.key", own_key.serialize_pem()),
        ] {
            fs::write(files.path().join(name), pem).unwrap();
        }
        Self { issuer, files }
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).to_str().unwrap().to_owned()
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// Returns a TLS server configuration for `localhost`, optionally with client authentication.
    fn server(&self, asks_who_calls: bool) -> ServerConfig {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = if asks_who_calls {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            config.with_no_client_auth()
        };
        let certificate = PemObject::from_pem_file(self.file("own.pem")).unwrap();
        let key = PemObject::from_pem_file(self.file("own.key")).unwrap();
        config.with_single_cert(vec![certificate], key).unwrap()
    }
}
