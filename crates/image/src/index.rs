//! One name for the same image on several platforms.

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
    /// Lists images, in this order.
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

    /// The document itself: what a tag points at.
    #[must_use]
    pub fn document(&self) -> &Blob {
        &self.document
    }

    /// The images it lists.
    #[must_use]
    pub fn images(&self) -> &[Image] {
        &self.images
    }
}
