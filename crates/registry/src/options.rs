//! Configuration of registry access.

use std::{path::PathBuf, time::Duration};

use crate::{Keychain, Mirror, Platform};

/// Configuration of registry access, set by the operator.
#[derive(Clone, Debug)]
pub struct Options {
    /// Platform to choose if an image is available for several.
    pub platform: Platform,
    /// Time (default 5 min) after which the digest of a tag is checked, in the background.
    pub tag_ttl: Duration,
    /// Time (default 3 s) for which a failure is cached.
    pub failure_ttl: Duration,
    /// Maximum number of cached images (default 10,000).
    pub capacity: u64,
    /// Timeout of one request to a registry (default 10 s).
    pub request_timeout: Duration,
    /// Timeout of a lookup with all its requests and retries (default 30 s).
    pub lookup_timeout: Duration,
    /// Docker config files to search for credentials.
    pub keychain: Keychain,
    /// Docker config used instead of `keychain` for all but the images of the public catalogs.
    pub private_credentials: Option<PathBuf>,
    /// CA to trust in addition to the system's roots.
    ///
    /// A file, or a directory with `ca.crt`, `ca.pem`, `cacert.pem`, `ca-bundle.crt` or `root.crt`.
    pub ca: Option<PathBuf>,
    /// Hosts that may be used without TLS, in addition to loopback.
    pub insecure_registries: Vec<String>,
    /// Registries to try before the ones that images name.
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
