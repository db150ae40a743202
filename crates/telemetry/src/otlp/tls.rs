//! TLS settings for a collector at `https://`: trusted roots and the client certificate.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tonic::transport::{ClientTlsConfig, Endpoint, Identity};

use crate::{
    TelemetryError,
    settings::{Pem, TlsFiles},
};

/// Returns the TLS configuration for exports over HTTP.
pub(super) fn http_config(files: &TlsFiles) -> Result<ClientConfig, TelemetryError> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| TelemetryError::SetUpTls(error.into()))?
        .with_root_certificates(roots(files)?);
    let Some((certificate, key)) = &files.identity else {
        return Ok(config.with_no_client_auth());
    };
    config
        .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
        .map_err(|error| key.unusable(error))
}

/// Adds the TLS configuration for exports over gRPC to an endpoint.
pub(super) fn with_tls(endpoint: Endpoint, files: &TlsFiles) -> Result<Endpoint, TelemetryError> {
    let mut config = ClientTlsConfig::new().trust_anchors(roots(files)?.roots);
    if let Some((certificate, key)) = &files.identity {
        certificates(certificate)?;
        private_key(key)?;
        config = config.identity(Identity::from_pem(&certificate.text, &key.text));
    }
    endpoint
        .tls_config(config)
        .map_err(|error| TelemetryError::SetUpTls(error.into()))
}

/// Returns the configured root certificates, or those of the system if none are configured.
fn roots(files: &TlsFiles) -> Result<RootCertStore, TelemetryError> {
    let mut roots = RootCertStore::empty();
    if let Some(authorities) = &files.authorities {
        for certificate in certificates(authorities)? {
            roots
                .add(certificate)
                .map_err(|error| authorities.unusable(error))?;
        }
    } else {
        let system = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(system.certs);
        if roots.is_empty() {
            return Err(TelemetryError::SystemRoots);
        }
    }
    Ok(roots)
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, TelemetryError> {
    let certificates = CertificateDer::pem_slice_iter(&pem.text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| pem.unusable(error))?;
    if certificates.is_empty() {
        return Err(pem.unusable("it contains no certificate"));
    }
    Ok(certificates)
}

fn private_key(pem: &Pem) -> Result<PrivateKeyDer<'static>, TelemetryError> {
    PrivateKeyDer::from_pem_slice(&pem.text).map_err(|error| pem.unusable(error))
}
