//! What is known of an image.

use runner_core::{Digest, ImageReference};

use crate::Platform;

/// What is known of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageMetadata {
    /// The image pinned to what its tag points at, `name:tag@digest`: what was inspected is what
    /// runs, on whatever architecture.
    pub reference: ImageReference,
    /// The digest of what the tag points at: of the index, where there is one.
    pub digest: Digest,
    /// What the inspected image is made for.
    pub platform: Platform,
    /// The program and its arguments, entrypoint and command combined; never empty.
    pub entrypoint: Vec<String>,
    /// Where the program starts; the root where empty.
    pub working_dir: String,
    /// Whom it runs as; root where empty.
    pub user: String,
    /// `NAME=value` each.
    pub env: Vec<String>,
    /// Whose credentials it took to find out, for people.
    pub credential_source: String,
}
