//! Documents about an image, stored beside it in a registry.
//!
//! The manifest of such a document names the image as its subject.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    Blob, Flavour,
    spec::{Descriptor, IndexDocument, Manifest},
};

/// Media type of the empty config.
const EMPTY_CONFIG: &str = "application/vnd.oci.empty.v1+json";

/// A document that refers to an image or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    manifest: Blob,
    config: Blob,
    content: Blob,
    /// Digest of the manifest that the document is about.
    subject: String,
    /// Index that lists the document's manifest.
    list: Blob,
}

// === impl Attachment ===

impl Attachment {
    /// Makes a document of the given media type about the manifest `subject`.
    pub fn new(
        subject: &Blob,
        media_type: &'static str,
        content: impl Into<Bytes>,
    ) -> serde_json::Result<Self> {
        let config = Blob::new(EMPTY_CONFIG, "{}");
        let content = Blob::new(media_type, content);
        let no_annotations = BTreeMap::new();
        let manifest = serde_json::to_vec(&Manifest {
            schema_version: 2,
            media_type: Flavour::Oci.manifest(),
            artifact_type: Some(media_type),
            config: Descriptor::of(&config),
            layers: vec![Descriptor::of(&content)],
            subject: Some(Descriptor::of(subject)),
            annotations: &no_annotations,
        })?;
        let manifest = Blob::new(Flavour::Oci.manifest(), manifest);
        let list = serde_json::to_vec(&IndexDocument {
            schema_version: 2,
            media_type: Flavour::Oci.index(),
            manifests: vec![Descriptor {
                artifact_type: Some(media_type),
                ..Descriptor::of(&manifest)
            }],
            annotations: &no_annotations,
        })?;
        Ok(Self {
            manifest,
            config,
            content,
            subject: subject.digest().to_owned(),
            list: Blob::new(Flavour::Oci.index(), list),
        })
    }

    /// Returns the document's manifest.
    #[must_use]
    pub fn manifest(&self) -> &Blob {
        &self.manifest
    }

    /// Returns the blobs that the manifest refers to, which a registry must have before the
    /// manifest.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        [&self.config, &self.content].into_iter()
    }

    /// Returns the fallback tag and the index that it must point at.
    ///
    /// Clients find the document by this tag in registries that cannot list the manifests that
    /// refer to another one (no referrers API).
    #[must_use]
    pub fn fallback(&self) -> (String, &Blob) {
        (self.subject.replace(':', "-"), &self.list)
    }
}
