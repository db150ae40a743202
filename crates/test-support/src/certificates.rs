//! Certificates of a private authority.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};

/// A private certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM format.
pub struct Issued {
    /// Certificate without its chain.
    pub certificate: String,
    /// Private key.
    pub key: String,
}

// === impl Authority ===

impl Authority {
    /// Makes a new authority.
    #[must_use]
    pub fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(parameters, key).unwrap())
    }

    /// Returns the authority's own certificate in PEM format, for others to trust.
    #[must_use]
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for a server on loopback (`localhost`, `127.0.0.1`).
    #[must_use]
    pub fn server(&self) -> Issued {
        self.issue(ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a certificate for a client.
    #[must_use]
    pub fn client(&self) -> Issued {
        self.issue(ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(&self, purpose: ExtendedKeyUsagePurpose) -> Issued {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut parameters = CertificateParams::new(names).unwrap();
        parameters.extended_key_usages = vec![purpose];
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}
