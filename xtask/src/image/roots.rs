//! The roots of trust in the image: Mozilla's, of the version that Cargo.lock names, so that the
//! image does not depend on what this machine trusts.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// All of them, as the file that TLS libraries look for.
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
    fn there_are_roots_in_the_form_of_the_file() {
        let text = super::pem();
        assert!(text.matches("BEGIN CERTIFICATE").count() > 100);
        assert!(text.lines().all(|line| line.len() <= 64));
    }
}
