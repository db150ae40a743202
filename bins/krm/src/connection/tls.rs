//! TLS settings of the connection to the runner.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::failure::Failure;

/// The files of a connection that is encrypted.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Tls {
    /// Encrypt the connection; the other TLS flags imply it
    #[arg(long)]
    tls: bool,

    /// Certificates that vouch for the runner, instead of the system's
    #[arg(long, value_name = "PEM")]
    ca_file: Option<PathBuf>,

    /// The certificate to show the runner
    #[arg(long, value_name = "PEM", requires = "key_file")]
    cert_file: Option<PathBuf>,

    /// The private key of --cert-file
    #[arg(long, value_name = "PEM", requires = "cert_file")]
    key_file: Option<PathBuf>,
}

// === impl Tls ===

impl Tls {
    /// Returns the TLS configuration, or `None` for a plaintext connection.
    pub(super) fn config(&self) -> Result<Option<ClientTlsConfig>, Failure> {
        if !self.tls && self.ca_file.is_none() && self.cert_file.is_none() {
            return Ok(None);
        }
        let mut config = ClientTlsConfig::new();
        config = match &self.ca_file {
            Some(path) => config.ca_certificate(Certificate::from_pem(read("--ca-file", path)?)),
            None => config.with_native_roots(),
        };
        if let (Some(cert), Some(key)) = (&self.cert_file, &self.key_file) {
            let identity = Identity::from_pem(read("--cert-file", cert)?, read("--key-file", key)?);
            config = config.identity(identity);
        }
        Ok(Some(config))
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| Failure::usage(format!("cannot read {flag} {}: {error}", path.display())))
}
