//! TLS flags of the connection to the runner.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;

use crate::failure::Failure;

/// TLS settings of a connection, as files.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct Tls {
    /// Use TLS; implied by --ca-file and --cert-file
    #[arg(long)]
    tls: bool,

    /// Certificates of the authorities to trust (PEM) [default: those of the system]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,

    /// Client certificate to present to the runner (PEM)
    #[arg(long, value_name = "FILE", requires = "key_file")]
    cert_file: Option<PathBuf>,

    /// Private key of --cert-file (PEM)
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    key_file: Option<PathBuf>,
}

// === impl Tls ===

impl Tls {
    /// Reads the files; returns `None` for a plaintext connection.
    pub(super) fn read(&self) -> Result<Option<runner_client::Tls>, Failure> {
        if !self.tls && self.ca_file.is_none() && self.cert_file.is_none() {
            return Ok(None);
        }
        let tls = match &self.ca_file {
            Some(path) => runner_client::Tls::trusting(read("--ca-file", path)?),
            None => runner_client::Tls::system_roots(),
        };
        Ok(Some(match (&self.cert_file, &self.key_file) {
            (Some(certificate), Some(key)) => {
                tls.identity(read("--cert-file", certificate)?, read("--key-file", key)?)
            }
            _ => tls,
        }))
    }
}

fn read(flag: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    fs::read(path)
        .map_err(|error| Failure::usage(format!("cannot read {flag} {}: {error}", path.display())))
}
