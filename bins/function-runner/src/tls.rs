//! The server's certificate, from the files the flags name.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use runner_service::Tls;

use crate::flags::ServerFlags;

/// None if the flags ask for plaintext.
pub(crate) fn from_files(flags: &ServerFlags) -> Result<Option<Tls>> {
    let (Some(certificate), Some(key)) = (&flags.tls_cert_file, &flags.tls_key_file) else {
        return Ok(None);
    };
    Ok(Some(Tls {
        certificate: read("--tls-cert-file", certificate)?,
        key: read("--tls-key-file", key)?,
        client_ca: match &flags.client_ca_file {
            Some(ca) => Some(read("--client-ca-file", ca)?),
            None => None,
        },
    }))
}

fn read(flag: &str, file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {} (given by {flag})", file.display()))
}
