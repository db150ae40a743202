//! A private CA and a server certificate signed by it.

use std::{fs, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

/// A private CA and a server certificate for loopback.
pub struct Certificates {
    ca: String,
    certificate: String,
    key: String,
}

// === impl Certificates ===

impl Certificates {
    /// Makes a new CA and a new server certificate.
    #[must_use]
    pub fn new() -> Self {
        let mut ca = CertificateParams::default();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key pair");
        let ca = CertifiedIssuer::self_signed(ca, key).expect("a certificate of the CA");
        let key = KeyPair::generate().expect("a key pair");
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = CertificateParams::new(names)
            .and_then(|parameters| parameters.signed_by(&key, &ca))
            .expect("a certificate of the server");
        Self {
            ca: ca.pem(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Returns the CA certificate in PEM format, for clients to trust.
    #[must_use]
    pub fn ca(&self) -> &str {
        &self.ca
    }

    pub(crate) fn write(&self, directory: &Path) {
        fs::write(directory.join("server.crt"), &self.certificate).expect("a writable directory");
        fs::write(directory.join("server.key"), &self.key).expect("a writable directory");
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}
