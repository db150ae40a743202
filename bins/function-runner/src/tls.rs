//! Reads the server's certificates from the files that the flags name.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use runner_core::with_causes;
use runner_service::{Tls, TlsFiles};
use tracing::{info, warn};

use crate::flags::ServerFlags;

/// Interval at which the files are read, 2 s.
///
/// The files are small, and reading them detects every way of replacing them, in particular the
/// symbolic links that the kubelet swaps.
const READ_INTERVAL: Duration = Duration::from_secs(2);

/// Returns the TLS settings of the server, or `None` if no certificate is configured.
///
/// Changed files are reloaded while the server runs.
pub(crate) fn from_files(flags: &ServerFlags) -> Result<Option<Tls>> {
    let Some(files) = read_all(flags)? else {
        return Ok(None);
    };
    let tls = Tls::new(&files)?;
    tokio::spawn(follow(flags.clone(), files, tls.clone()));
    Ok(Some(tls))
}

/// Reloads changed files for as long as the process runs.
///
/// Unusable files are logged once, and the certificates in use are kept.
async fn follow(flags: ServerFlags, files: TlsFiles, tls: Tls) {
    let mut last: Result<TlsFiles, String> = Ok(files);
    loop {
        tokio::time::sleep(READ_INTERVAL).await;
        let read = match read_all(&flags) {
            Ok(Some(files)) => Ok(files),
            Ok(None) => return,
            Err(error) => Err(with_causes(error.as_ref())),
        };
        if read == last {
            continue;
        }
        let replaced = match &read {
            Ok(files) => tls.replace(files).map_err(|error| with_causes(&error)),
            Err(error) => Err(error.clone()),
        };
        match replaced {
            Ok(()) => info!("the TLS certificates were read again"),
            Err(error) => warn!("{error}: the TLS certificates in use stay"),
        }
        last = read;
    }
}

fn read_all(flags: &ServerFlags) -> Result<Option<TlsFiles>> {
    let (Some(certificate), Some(key)) = (&flags.tls_cert_file, &flags.tls_key_file) else {
        return Ok(None);
    };
    Ok(Some(TlsFiles {
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
