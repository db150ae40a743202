//! A document about an image, stored beside it in a registry: its manifest names what it is about.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    Blob, Flavour,
    spec::{Descriptor, IndexDocument, Manifest},
};

const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A document that refers to an image or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    manifest: Blob,
    config: Blob,
    content: Blob,
    subject: String,
    list: Blob,
}

// === impl Attachment ===

impl Attachment {
    /// A document of this media type about a manifest.
    pub fn new(
        subject: &Blob,
        media_type: &'static str,
        content: impl Into<Bytes>,
    ) -> serde_json::Result<Self> {
        let config = Blob::new(EMPTY, "{}");
        let content = Blob::new(media_type, content);
        let none = BTreeMap::new();
        let manifest = serde_json::to_vec(&Manifest {
            schema_version: 2,
            media_type: Flavour::Oci.manifest(),
            artifact_type: Some(media_type),
            config: Descriptor::of(&config),
            layers: vec![Descriptor::of(&content)],
            subject: Some(Descriptor::of(subject)),
            annotations: &none,
        })?;
        let manifest = Blob::new(Flavour::Oci.manifest(), manifest);
        let list = serde_json::to_vec(&IndexDocument {
            schema_version: 2,
            media_type: Flavour::Oci.index(),
            manifests: vec![Descriptor {
                artifact_type: Some(media_type),
                ..Descriptor::of(&manifest)
            }],
            annotations: &none,
        })?;
        Ok(Self {
            manifest,
            config,
            content,
            subject: subject.digest().to_owned(),
            list: Blob::new(Flavour::Oci.index(), list),
        })
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Blob {
        &self.manifest
    }

    /// What the manifest refers to: a registry wants these first.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        [&self.config, &self.content].into_iter()
    }

    /// A tag and what it must point at, by which clients find the document in registries that
    /// cannot list what refers to a manifest.
    #[must_use]
    pub fn fallback(&self) -> (String, &Blob) {
        (self.subject.replace(':', "-"), &self.list)
    }
}
