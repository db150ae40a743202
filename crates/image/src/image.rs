//! An image for one platform: layers, config and the manifest that joins them.

use std::{collections::BTreeMap, io};

use crate::{
    Blob, Config, Flavour, Layer, Platform, Tree,
    spec::{Descriptor, ImageConfig, Manifest, RootFs},
};

/// Default creation time of an image.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// An image for one platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    pub(crate) platform: Platform,
    manifest: Blob,
    config: Blob,
    layers: Vec<Blob>,
}

/// A builder of an [`Image`].
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    platform: Platform,
    flavour: Flavour,
    config: Config,
    created: String,
    annotations: BTreeMap<String, String>,
    layers: Vec<Layer>,
}

// === impl Image ===

impl Image {
    /// Returns a builder for an image of this platform.
    #[must_use]
    pub fn builder(platform: Platform) -> ImageBuilder {
        ImageBuilder {
            platform,
            flavour: Flavour::default(),
            config: Config::default(),
            created: EPOCH.to_owned(),
            annotations: BTreeMap::new(),
            layers: Vec::new(),
        }
    }

    /// Returns the image's manifest.
    #[must_use]
    pub fn manifest(&self) -> &Blob {
        &self.manifest
    }

    /// Returns the image's config.
    #[must_use]
    pub fn config(&self) -> &Blob {
        &self.config
    }

    /// Returns the blobs that the manifest refers to, which a registry must have before the
    /// manifest.
    pub fn blobs(&self) -> impl Iterator<Item = &Blob> {
        self.layers.iter().chain([&self.config])
    }

    /// Returns the number of bytes that a node has to fetch.
    #[must_use]
    pub fn compressed_size(&self) -> usize {
        self.blobs()
            .chain([&self.manifest])
            .map(|blob| blob.bytes().len())
            .sum()
    }
}

// === impl ImageBuilder ===

impl ImageBuilder {
    /// Sets the settings with which containers of the image are started.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the creation time in RFC 3339 format; the default is the start of 1970.
    #[must_use]
    pub fn created(mut self, time: impl Into<String>) -> Self {
        self.created = time.into();
        self
    }

    /// Adds an annotation to the manifest.
    #[must_use]
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Sets the family of media types for the image's documents; the default is OCI.
    #[must_use]
    pub fn flavour(mut self, flavour: Flavour) -> Self {
        self.flavour = flavour;
        self
    }

    /// Adds a layer with these files on top of the earlier layers.
    pub fn layer(mut self, tree: &Tree) -> io::Result<Self> {
        self.layers.push(Layer::pack(tree)?);
        Ok(self)
    }

    /// Serialises config and manifest and returns the image.
    pub fn build(self) -> serde_json::Result<Image> {
        let diff_ids = self
            .layers
            .iter()
            .map(|layer| layer.diff_id.as_str())
            .collect();
        let config = serde_json::to_vec(&ImageConfig {
            created: &self.created,
            platform: &self.platform,
            config: &self.config,
            rootfs: RootFs {
                kind: "layers",
                diff_ids,
            },
        })?;
        let config = Blob::new(self.flavour.config(), config);
        let layers: Vec<_> = self
            .layers
            .into_iter()
            .map(|layer| Blob::new(self.flavour.layer(), layer.compressed))
            .collect();
        let manifest = serde_json::to_vec(&Manifest {
            schema_version: 2,
            media_type: self.flavour.manifest(),
            artifact_type: None,
            config: Descriptor::of(&config),
            layers: layers.iter().map(Descriptor::of).collect(),
            subject: None,
            annotations: &self.annotations,
        })?;
        let manifest = Blob::new(self.flavour.manifest(), manifest);
        Ok(Image {
            platform: self.platform,
            manifest,
            config,
            layers,
        })
    }
}
