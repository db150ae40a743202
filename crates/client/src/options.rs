//! Options of a client, and the endpoint that follows from them.

use std::time::Duration;

use runner_core::defaults;
use runner_proto::status::{MAX_HEADER_SIZE, OWN_AGENT};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::OptionsError;

/// Options of a [`Client`](crate::Client).
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the calling program, which becomes part of the user agent.
    pub program: String,
    /// Time limit for establishing the connection; default 10 s.
    pub connect_timeout: Duration,
    /// Size limit of the messages of an evaluation in bytes, in both directions; default 6 MiB, as
    /// at the runner.
    pub message_limit: usize,
    /// TLS settings; `None` for a plaintext connection.
    pub tls: Option<Tls>,
}

/// TLS settings of a connection.
#[derive(Clone, Debug)]
pub struct Tls(ClientTlsConfig);

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            program: "client".to_owned(),
            connect_timeout: Duration::from_secs(10),
            message_limit: defaults::MAX_MESSAGE_SIZE,
            tls: None,
        }
    }
}

impl Options {
    /// Returns the endpoint of the server at an address.
    pub(crate) fn endpoint(&self, address: &str) -> Result<Endpoint, OptionsError> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let authority = address.strip_prefix("dns:///").unwrap_or(address);
        let (given, authority) = authority.split_once("://").unwrap_or((scheme, authority));
        if given != scheme {
            return Err(OptionsError::Scheme {
                address: address.to_owned(),
                given: given.to_owned(),
                expected: scheme,
            });
        }
        let invalid = |error: tonic::transport::Error| OptionsError::Address {
            address: address.to_owned(),
            source: error.into(),
        };
        let agent = format!("{OWN_AGENT}{} {}", env!("CARGO_PKG_VERSION"), self.program);
        let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}"))
            .and_then(|endpoint| endpoint.user_agent(agent))
            .map_err(invalid)?;
        if endpoint.uri().port().is_none() {
            return Err(OptionsError::NoPort {
                address: address.to_owned(),
            });
        }
        let endpoint = endpoint
            .connect_timeout(self.connect_timeout)
            .http2_max_header_list_size(MAX_HEADER_SIZE);
        match &self.tls {
            None => Ok(endpoint),
            Some(Tls(config)) => endpoint
                .tls_config(config.clone())
                .map_err(|error| OptionsError::Tls(error.into())),
        }
    }
}

// === impl Tls ===

impl Tls {
    /// Returns settings that trust the authorities of the operating system.
    #[must_use]
    pub fn system_roots() -> Self {
        Self(ClientTlsConfig::new().with_native_roots())
    }

    /// Returns settings that trust only the authorities in these PEM certificates.
    #[must_use]
    pub fn trusting(pem: impl AsRef<[u8]>) -> Self {
        Self(ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)))
    }

    /// Adds the client's own certificate and its private key, both PEM.
    #[must_use]
    pub fn identity(self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        Self(self.0.identity(Identity::from_pem(certificate, key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_addresses_with_and_without_a_scheme() {
        for address in ["localhost:9445", "dns:///localhost:9445", "http://[::1]:1"] {
            Options::default().endpoint(address).unwrap();
        }
    }

    #[test]
    fn rejects_addresses_that_are_not_host_and_port() {
        let tls = Options {
            tls: Some(Tls::trusting("")),
            ..Options::default()
        };
        let plain = Options::default();
        for (options, address, message) in [
            (
                &plain,
                "nowhere",
                "\"nowhere\" is not HOST:PORT: the port is missing",
            ),
            (
                &plain,
                "a b:1",
                "\"a b:1\" is not HOST:PORT: invalid uri character",
            ),
            (&plain, "https://x:1", "they require http, not https"),
            (&tls, "http://x:1", "they require https, not http"),
        ] {
            let error = runner_core::with_causes(&options.endpoint(address).unwrap_err());
            assert!(error.contains(message), "{address}: {error}");
        }
    }
}
