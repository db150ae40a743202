//! Certificates that registries are trusted with: the system's roots and an optional custom CA.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};

/// File names of a CA in a directory, in the order in which they are tried.
const FILE_NAMES: [&str; 5] = [
    "ca.crt",
    "ca.pem",
    "cacert.pem",
    "ca-bundle.crt",
    "root.crt",
];

/// The reason why a custom CA cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaError {
    /// The directory has no file with one of the usual names.
    #[error("{0} has none of the files {names}", names = FILE_NAMES.join(", "))]
    NoFile(PathBuf),
    /// The file cannot be read.
    #[error("cannot read {0}")]
    Read(PathBuf, #[source] io::Error),
    /// The file is not PEM.
    #[error("{0} is not PEM")]
    Parse(PathBuf, #[source] pem::Error),
    /// The file contains no certificate.
    #[error("{0} contains no certificate")]
    NoCertificate(PathBuf),
    /// A certificate cannot be used as a root of trust.
    #[error("{0} contains a certificate that cannot be trusted")]
    Trust(PathBuf, #[source] rustls::Error),
}

/// The certificates of a custom CA.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CustomCa {
    certificates: Vec<CertificateDer<'static>>,
}

// === impl CustomCa ===

impl CustomCa {
    /// Reads a file, or the first file with one of the usual names in a directory.
    ///
    /// A file may contain several certificates.
    pub(crate) fn read(path: &Path) -> Result<Self, CaError> {
        let path = if path.is_dir() {
            FILE_NAMES
                .iter()
                .map(|name| path.join(name))
                .find(|file| file.exists())
                .ok_or_else(|| CaError::NoFile(path.to_owned()))?
        } else {
            path.to_owned()
        };
        let pem = fs::read(&path).map_err(|error| CaError::Read(path.clone(), error))?;
        let certificates = CertificateDer::pem_slice_iter(&pem)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| CaError::Parse(path.clone(), error))?;
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots
                .add(certificate.clone())
                .map_err(|error| CaError::Trust(path.clone(), error))?;
        }
        if certificates.is_empty() {
            return Err(CaError::NoCertificate(path));
        }
        Ok(Self { certificates })
    }
}

/// Returns a configuration for TLS 1.2 and later that trusts the system's roots and the custom CA.
pub(crate) fn client_config(custom: Option<&CustomCa>) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    let (added, _) = roots.add_parsable_certificates(system.certs);
    if added == 0 {
        tracing::warn!(
            errors = ?system.errors,
            "the system has no root certificates: only registries of the custom CA are trusted"
        );
    }
    for certificate in custom.into_iter().flat_map(|ca| &ca.certificates) {
        roots.add(certificate.clone())?;
    }
    Ok(
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth(),
    )
}

#[cfg(test)]
mod tests {
    use runner_test_support::Authority;

    use super::*;

    #[test]
    fn reads_a_file_of_any_usual_name() {
        for name in FILE_NAMES {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join(name), Authority::new().pem()).unwrap();
            assert_eq!(
                CustomCa::read(directory.path()).unwrap().certificates.len(),
                1
            );
        }
    }

    #[test]
    fn prefers_the_files_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let expected = [
            "ca.crt",
            "ca.pem",
            "cacert.pem",
            "ca-bundle.crt",
            "root.crt",
        ];
        let alone = expected.map(|name| {
            let file = directory.path().join(name);
            fs::write(&file, Authority::new().pem()).unwrap();
            CustomCa::read(&file).unwrap()
        });
        for (name, first) in expected.iter().zip(&alone) {
            assert_eq!(CustomCa::read(directory.path()).unwrap(), *first, "{name}");
            fs::remove_file(directory.path().join(name)).unwrap();
        }
    }

    #[test]
    fn reads_several_certificates_from_a_bundle() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("bundle.pem");
        fs::write(
            &file,
            format!(
                "# ours\n{}\n{}",
                Authority::new().pem(),
                Authority::new().pem()
            ),
        )
        .unwrap();
        assert_eq!(CustomCa::read(&file).unwrap().certificates.len(), 2);
    }

    #[test]
    fn explains_an_unusable_file() {
        let directory = tempfile::tempdir().unwrap();
        let problem = || CustomCa::read(directory.path()).unwrap_err().to_string();
        assert!(
            problem()
                .ends_with("none of the files ca.crt, ca.pem, cacert.pem, ca-bundle.crt, root.crt"),
            "{}",
            problem()
        );
        let file = directory.path().join("ca.crt");
        fs::write(&file, "not a certificate").unwrap();
        assert!(
            problem().ends_with("contains no certificate"),
            "{}",
            problem()
        );
        fs::write(
            &file,
            "-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
        assert!(problem().contains("is not PEM"), "{}", problem());
        fs::write(
            &file,
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        )
        .unwrap();
        assert!(problem().contains("cannot be trusted"), "{}", problem());
    }
}
