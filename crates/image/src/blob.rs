//! Content with its digest, and the two families of media types.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// Bytes with their media type and digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    media_type: &'static str,
    digest: String,
    bytes: Bytes,
}

/// The family of media types that a manifest uses; both describe the same documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// The OCI image specification.
    #[default]
    Oci,
    /// Docker's image manifest, version 2, schema 2.
    Docker,
}

// === impl Blob ===

impl Blob {
    pub(crate) fn new(media_type: &'static str, bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            media_type,
            digest: sha256(&bytes),
            bytes,
        }
    }

    /// Returns the media type of the content.
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        self.media_type
    }

    /// Returns the digest: `sha256:` and the hex digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the content.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

// === impl Flavour ===

impl Flavour {
    /// Returns the media type of a config.
    pub(crate) fn config(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.config.v1+json",
            Self::Docker => "application/vnd.docker.container.image.v1+json",
        }
    }

    /// Returns the media type of a layer.
    pub(crate) fn layer(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Docker => "application/vnd.docker.image.rootfs.diff.tar.gzip",
        }
    }

    /// Returns the media type of a manifest.
    pub(crate) fn manifest(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.manifest.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.v2+json",
        }
    }

    /// Returns the media type of an index.
    pub(crate) fn index(self) -> &'static str {
        match self {
            Self::Oci => "application/vnd.oci.image.index.v1+json",
            Self::Docker => "application/vnd.docker.distribution.manifest.list.v2+json",
        }
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
