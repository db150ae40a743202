//! The root certificates in the image: Mozilla's, in the version that Cargo.lock pins.
//!
//! The image therefore does not depend on the certificates that this machine trusts.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// Returns all root certificates in the PEM format that TLS libraries read.
pub(crate) fn pem() -> String {
    let mut text = String::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        text.push_str("-----BEGIN CERTIFICATE-----\n");
        let encoded = STANDARD.encode(certificate);
        for line in encoded.as_bytes().chunks(64) {
            text.extend(line.iter().map(|&byte| char::from(byte)));
            text.push('\n');
        }
        text.push_str("-----END CERTIFICATE-----\n");
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn writes_the_roots_in_pem_format() {
        let text = super::pem();
        assert!(text.matches("BEGIN CERTIFICATE").count() > 100);
        assert!(text.lines().all(|line| line.len() <= 64));
    }
}
