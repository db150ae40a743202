//! The metadata of an image.

use runner_core::{Digest, ImageReference};

use crate::Platform;

/// The metadata of an image that the runner uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageMetadata {
    /// The image pinned to the digest its tag points at, `name:tag@digest`.
    ///
    /// The inspected image is therefore the one that runs, on every architecture.
    pub reference: ImageReference,
    /// Digest that the tag points at: that of the index, if there is one.
    pub digest: Digest,
    /// Platform of the inspected image.
    pub platform: Platform,
    /// The program and its arguments, entrypoint and command combined; never empty.
    pub entrypoint: Vec<String>,
    /// Working directory of the program; if empty, the root directory.
    pub working_dir: String,
    /// User that runs the program; if empty, root.
    pub user: String,
    /// Environment variables, each as `NAME=value`.
    pub env: Vec<String>,
    /// Description of the credentials that were used for the lookup, for people.
    pub credential_source: String,
}
