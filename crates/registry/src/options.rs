//! What an operator decides about registries.

use std::{path::PathBuf, time::Duration};

use crate::{Keychain, Mirror, Platform};

/// What an operator decides about registries.
#[derive(Clone, Debug)]
pub struct Options {
    /// The platform that is chosen where an image is made for several.
    pub platform: Platform,
    /// How long what a tag points at is believed before it is checked, in the background.
    pub tag_ttl: Duration,
    /// How long a failure is remembered.
    pub failure_ttl: Duration,
    /// How many images are remembered.
    pub capacity: u64,
    /// How long one request to a registry may take.
    pub request_timeout: Duration,
    /// How long a lookup with all its requests and retries may take.
    pub lookup_timeout: Duration,
    /// Where credentials are looked for.
    pub keychain: Keychain,
    /// The docker config that is used instead for all but the public catalog's images.
    pub private_credentials: Option<PathBuf>,
    /// A file, or a directory with `ca.crt`, `ca.pem`, `cacert.pem`, `ca-bundle.crt` or `root.crt`,
    /// to trust besides the system's roots.
    pub ca: Option<PathBuf>,
    /// Hosts that may be spoken to without TLS, besides loopback.
    pub insecure_registries: Vec<String>,
    /// Registries to ask before others.
    pub mirrors: Vec<Mirror>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Self {
        Self {
            platform: Platform::default(),
            tag_ttl: Duration::from_secs(5 * 60),
            failure_ttl: Duration::from_secs(3),
            capacity: 10_000,
            request_timeout: Duration::from_secs(10),
            lookup_timeout: Duration::from_secs(30),
            keychain: Keychain::from_environment(),
            private_credentials: None,
            ca: None,
            insecure_registries: Vec::new(),
            mirrors: Vec::new(),
        }
    }
}
