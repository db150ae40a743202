//! Access to registries from this machine, with the runner's settings.

use std::{io::Write, path::PathBuf};

use runner_core::with_causes;
use runner_registry::{Keychain, Options, Registry};
use tempfile::NamedTempFile;

use super::context::Context;

/// A docker config for requests to registries.
///
/// Content from the cluster is kept in a temporary file for the lifetime of the value.
pub(super) enum Credentials {
    None,
    File(PathBuf),
    Temporary(NamedTempFile),
}

// === impl Credentials ===

impl Credentials {
    /// Returns credentials with the content of a Secret.
    pub(super) fn temporary(text: &[u8]) -> std::io::Result<Self> {
        let mut file = NamedTempFile::new()?;
        file.write_all(text)?;
        Ok(Self::Temporary(file))
    }

    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::None => None,
            Self::File(path) => Some(path.clone()),
            Self::Temporary(file) => Some(file.path().to_owned()),
        }
    }

    /// Returns a client for all registries that uses these credentials.
    pub(super) fn registry(&self, context: &Context) -> Result<Registry, String> {
        let mirrors = context.flags("registry-mirror");
        let defaults = Options::default();
        let options = Options {
            keychain: match self.path() {
                Some(path) => Keychain::file(path),
                None => defaults.keychain.clone(),
            },
            ca: context.options.registry_ca.clone(),
            insecure_registries: context.flags("insecure-registry"),
            mirrors: mirrors.iter().filter_map(|it| it.parse().ok()).collect(),
            ..defaults
        };
        Registry::new(options)
            .map_err(|error| format!("cannot query registries: {}", with_causes(&error)))
    }
}
