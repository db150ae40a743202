//! Pushes images to the registries with the project's own registry client.

use anyhow::{Context, Result};
use runner_core::{Digest, ImageReference};
use runner_image::{Blob, Image, Index};
use runner_registry::{Keychain, Options, Registry};
use tokio::runtime::{Builder, Runtime};

use crate::registries::PrivateRegistry;

/// A registry to push to.
///
/// It has its own asynchronous runtime and must not be used inside another one.
pub struct Target {
    registry: Registry,
    host: String,
    runtime: Runtime,
}

// === impl Target ===

impl Target {
    /// Opens a registry on loopback without TLS and password.
    pub fn open(host: &str) -> Result<Self> {
        Self::new(host, Options::default())
    }

    /// Opens a registry with a password and its own CA.
    pub fn private(registry: &PrivateRegistry) -> Result<Self> {
        let options = Options {
            ca: Some(registry.ca.clone()),
            keychain: Keychain::file(registry.docker_config.clone()),
            ..Options::default()
        };
        Self::new(&registry.host, options)
    }

    fn new(host: &str, options: Options) -> Result<Self> {
        // All TLS connections use this provider; an earlier call may already have installed it.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        // Connections belong to the runtime in which they are made.
        let registry = runtime.block_on(async { Registry::new(options) })?;
        Ok(Self {
            registry,
            host: host.to_owned(),
            runtime,
        })
    }

    /// Pushes an image for one platform; returns `host/repository:tag@digest`.
    pub fn push(&self, repository: &str, tag: &str, image: &Image) -> Result<ImageReference> {
        let to = self.reference(repository, tag)?;
        self.runtime
            .block_on(async {
                self.push_blobs(&to, image).await?;
                self.push_manifest(&to, image.manifest()).await
            })
            .with_context(|| format!("cannot push {to}"))?;
        Ok(to.at_digest(digest(image.manifest())?))
    }

    /// Pushes an index and its images; returns `host/repository:tag@digest` of the index.
    pub fn push_index(&self, repository: &str, tag: &str, index: &Index) -> Result<ImageReference> {
        let to = self.reference(repository, tag)?;
        self.runtime
            .block_on(async {
                for image in index.images() {
                    self.push_blobs(&to, image).await?;
                    let own = to.at_digest(digest(image.manifest())?);
                    self.push_manifest(&own, image.manifest()).await?;
                }
                self.push_manifest(&to, index.document()).await
            })
            .with_context(|| format!("cannot push {to}"))?;
        Ok(to.at_digest(digest(index.document())?))
    }

    async fn push_blobs(&self, to: &ImageReference, image: &Image) -> Result<()> {
        for blob in image.blobs() {
            let content = blob.bytes().clone();
            self.registry.push_blob(to, &digest(blob)?, content).await?;
        }
        Ok(())
    }

    async fn push_manifest(&self, to: &ImageReference, manifest: &Blob) -> Result<()> {
        let content = manifest.bytes().clone();
        Ok(self
            .registry
            .push_manifest(to, manifest.media_type(), content)
            .await?)
    }

    fn reference(&self, repository: &str, tag: &str) -> Result<ImageReference> {
        Ok(format!("{}/{repository}:{tag}", self.host).parse()?)
    }
}

fn digest(blob: &Blob) -> Result<Digest> {
    Digest::parse(blob.digest()).map_err(anyhow::Error::msg)
}
