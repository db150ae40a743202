//! An index, which lists the images of several platforms under one tag.

use std::collections::BTreeMap;

use crate::{
    Blob, Flavour, Image,
    spec::{Descriptor, IndexDocument},
};

/// The images of several platforms, and the document that lists them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    document: Blob,
    images: Vec<Image>,
}

// === impl Index ===

impl Index {
    /// Creates an index that lists the images in the given order.
    pub fn new(
        flavour: Flavour,
        images: Vec<Image>,
        annotations: &BTreeMap<String, String>,
    ) -> serde_json::Result<Self> {
        let manifests = images
            .iter()
            .map(|image| Descriptor {
                platform: Some(&image.platform),
                ..Descriptor::of(image.manifest())
            })
            .collect();
        let document = serde_json::to_vec(&IndexDocument {
            schema_version: 2,
            media_type: flavour.index(),
            manifests,
            annotations,
        })?;
        Ok(Self {
            document: Blob::new(flavour.index(), document),
            images,
        })
    }

    /// Returns the index document, which a tag points at.
    #[must_use]
    pub fn document(&self) -> &Blob {
        &self.document
    }

    /// Returns the images that the index lists.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }
}
