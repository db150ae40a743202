//! The keys and certificates of a test bed, for the API server and the private registry.

use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose,
};

use crate::{addresses, layout};

/// Writes all keys and certificates into a directory, unless an earlier call completed.
pub fn ensure(directory: &Path) -> Result<()> {
    let done = directory.join("complete");
    if done.exists() {
        return Ok(());
    }
    layout::make_dir(directory)?;

    let authority = authority("krm test bed")?;
    layout::write(&directory.join("ca.crt"), authority.pem())?;
    issue_server_certificate(
        directory,
        "apiserver",
        &authority,
        &[
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "127.0.0.1",
            addresses::NODE,
            addresses::API_SERVICE,
        ],
    )?;

    // A separate CA, because trust in the cluster must not include trust in the registry.
    let registries = self::authority("krm test bed registries")?;
    layout::write(&directory.join("registry-ca.crt"), registries.pem())?;
    issue_server_certificate(
        directory,
        "registry",
        &registries,
        &["localhost", "127.0.0.1", addresses::NODE],
    )?;

    let accounts = KeyPair::generate()?;
    layout::write(&directory.join("accounts.key"), accounts.serialize_pem())?;
    layout::write(&directory.join("accounts.pub"), accounts.public_key_pem())?;
    layout::write(&done, "")
}

/// Creates a certificate authority (CA).
fn authority(name: &str) -> Result<CertifiedIssuer<'static, KeyPair>> {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    CertifiedIssuer::self_signed(parameters, KeyPair::generate()?).context("cannot create a CA")
}

/// Writes a server key and its certificate for these host names and addresses.
fn issue_server_certificate(
    directory: &Path,
    name: &str,
    authority: &CertifiedIssuer<'static, KeyPair>,
    names: &[&str],
) -> Result<()> {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate: Certificate = parameters.signed_by(&key, authority)?;
    layout::write(&directory.join(format!("{name}.key")), key.serialize_pem())?;
    layout::write(&directory.join(format!("{name}.crt")), certificate.pem())
}
