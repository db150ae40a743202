//! Tests of collectors at `https://`.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use runner_test_support::{
    Authority, Issued, Package,
    otlp::{Collector, HttpCollector},
};
use rustls::{
    RootCertStore, ServerConfig, crypto::aws_lc_rs, pki_types::pem::PemObject,
    server::WebPkiClientVerifier,
};
use tonic::transport::{Identity, Server, ServerTlsConfig};

use crate::child::{Log, play};

/// A private authority, and files with its certificate and that of a client.
struct Certificates {
    authority: Authority,
    files: Package,
}

#[test]
fn trusts_a_private_authority_over_http() {
    let certificates = Certificates::new();
    let collector = HttpCollector::start_with_tls(certificates.server(false));
    evaluate(&collector.endpoint(), &certificates, &[]);
    assert_eq!(collector.exports()[0].spans().len(), 4);
}

#[test]
fn trusts_a_private_authority_over_grpc() {
    let certificates = Certificates::new();
    let Issued { certificate, key } = certificates.authority.server();
    let identity = Identity::from_pem(certificate, key);
    let collector = Collector::start_with(
        Server::builder()
            .tls_config(ServerTlsConfig::new().identity(identity))
            .unwrap(),
    );
    let grpc = ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    evaluate(&collector.endpoint(), &certificates, &[grpc]);
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn sends_a_client_certificate() {
    let certificates = Certificates::new();
    let collector = HttpCollector::start_with_tls(certificates.server(true));
    let (certificate, key) = (
        certificates.file("client.pem"),
        certificates.file("client.key"),
    );
    let own = [
        ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", &*certificate),
        ("OTEL_EXPORTER_OTLP_CLIENT_KEY", &*key),
    ];
    evaluate(&collector.endpoint(), &certificates, &own);
    assert_eq!(collector.exports()[0].spans().len(), 4);
}

#[test]
fn sends_nothing_to_an_untrusted_collector() {
    let (certificates, another) = (Certificates::new(), Certificates::new());
    let collector = HttpCollector::start_with_tls(certificates.server(false));
    let ended = evaluate(&collector.endpoint(), &another, &[]);
    assert_eq!(collector.exports().len(), 0);
    let error = ended.line("the collector was not reached")["error"].to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[test]
fn names_the_variable_of_an_unusable_file() {
    let certificates = Certificates::new();
    let (missing, key) = (
        certificates.file("missing.pem"),
        certificates.file("client.key"),
    );
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
fn evaluate(endpoint: &str, certificates: &Certificates, more: &[(&str, &str)]) -> Log {
    let (endpoint, ca) = (with_tls(endpoint), certificates.file("ca.pem"));
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

// === impl Certificates ===

impl Certificates {
    fn new() -> Self {
        let authority = Authority::new();
        let Issued { certificate, key } = authority.client();
        let files = [
            ("ca.pem", &*authority.pem()),
            ("client.pem", &certificate),
            ("client.key", &key),
        ];
        Self {
            files: Package::new(&files),
            authority,
        }
    }

    fn file(&self, name: &str) -> String {
        self.files.file(name)
    }

    /// Returns a TLS server configuration for `localhost`, optionally with client authentication.
    fn server(&self, requires_client_certificate: bool) -> ServerConfig {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = if requires_client_certificate {
            let mut roots = RootCertStore::empty();
            let own = PemObject::from_pem_slice(self.authority.pem().as_bytes()).unwrap();
            roots.add(own).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            config.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            config.with_no_client_auth()
        };
        let Issued { certificate, key } = self.authority.server();
        let certificate = PemObject::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PemObject::from_pem_slice(key.as_bytes()).unwrap();
        config.with_single_cert(vec![certificate], key).unwrap()
    }
}
