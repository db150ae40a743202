//! A functions directory and a configuration file for the tests of the watch.

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use runner_config::{Binaries, Configuration, FileOptions, Wanted};
use tempfile::TempDir;

pub(super) const DEFAULT_PREFIX: &str = "ghcr.io/default/catalog";

pub(super) struct Fixture {
    directory: TempDir,
}

// === impl Fixture ===

impl Fixture {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("functions")).unwrap();
        Self { directory }
    }

    pub(super) fn binaries(self, names: &[&str]) -> Self {
        for name in names {
            let path = self.path("functions").join(name);
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        self
    }

    pub(super) fn config(self, text: &str) -> Self {
        fs::write(self.path("config.yaml"), text).unwrap();
        self
    }

    pub(super) fn configuration(&self) -> Configuration {
        let options = FileOptions {
            functions_dir: self.path("functions"),
            config: self.path("config.yaml"),
            config_wanted: Wanted::Optional,
            pod_cache_config: self.path("pod-cache-config.yaml"),
            pod_cache_wanted: Wanted::Optional,
            default_prefix: DEFAULT_PREFIX.to_owned(),
            binaries: Binaries::Check,
        };
        Configuration::load(options).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}
