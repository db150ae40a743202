//! Registries as the runner would ask them, from here.

use std::{io::Write, path::PathBuf};

use runner_registry::{Keychain, Options, Registry};
use tempfile::NamedTempFile;

use super::context::Context;

/// A docker config to ask with. What came from the cluster is in a file of our own while this lives.
pub(super) enum Credentials {
    None,
    File(PathBuf),
    Held(NamedTempFile),
}

// === impl Credentials ===

impl Credentials {
    /// Of a text that was read from a Secret.
    pub(super) fn held(text: &[u8]) -> std::io::Result<Self> {
        let mut file = NamedTempFile::new()?;
        file.write_all(text)?;
        Ok(Self::Held(file))
    }

    fn path(&self) -> Option<PathBuf> {
        match self {
            Self::None => None,
            Self::File(path) => Some(path.clone()),
            Self::Held(file) => Some(file.path().to_owned()),
        }
    }

    /// All registries, asked with these.
    pub(super) fn registry(&self, context: &Context<'_>) -> Result<Registry, String> {
        let mirrors = context.flags("registry-mirror");
        let defaults = Options::default();
        let options = Options {
            keychain: match self.path() {
                Some(path) => Keychain::file(path),
                None => defaults.keychain.clone(),
            },
            ca: context.options.tls_secret_path.clone(),
            insecure_registries: context.flags("insecure-registry"),
            mirrors: mirrors.iter().filter_map(|it| it.parse().ok()).collect(),
            ..defaults
        };
        Registry::new(options).map_err(|error| format!("cannot ask registries: {error}"))
    }
}
