//! Makes small images and pushes them to registries.

use std::collections::BTreeMap;

use runner_core::{Digest, ImageReference};
use runner_image::{Blob, Config, Flavour, Image, Index, Platform, Tree};
use runner_registry::Registry;

/// Makes a small image with this entrypoint; different entrypoints give different digests.
#[must_use]
pub fn image(architecture: &str, flavour: Flavour, entrypoint: &[&str]) -> Image {
    let tree = Tree::new()
        .file(
            "function",
            0o755,
            format!("#!/bin/sh\n# {architecture}\nexec cat\n"),
        )
        .expect("a plain path");
    Image::builder(Platform::linux(architecture))
        .flavour(flavour)
        .config(Config {
            entrypoint: entrypoint.iter().map(ToString::to_string).collect(),
            cmd: vec!["--from-cmd".to_owned()],
            env: vec!["PATH=/bin".to_owned()],
            user: "10001".to_owned(),
            working_dir: "/work".to_owned(),
            labels: BTreeMap::new(),
        })
        .layer(&tree)
        .and_then(|image| image.build().map_err(Into::into))
        .expect("a small image")
}

/// Makes an index of one function for two architectures; the entrypoint contains the architecture.
#[must_use]
pub fn index(flavour: Flavour) -> Index {
    let images = ["amd64", "arm64"]
        .map(|architecture| image(architecture, flavour, &["/function", architecture]));
    Index::new(flavour, images.into(), &BTreeMap::new()).expect("a small index")
}

/// Pushes an image under a tag.
pub async fn push_image(registry: &Registry, name: &ImageReference, image: &Image) {
    push_content(registry, name, image).await;
    push_manifest(registry, name, image.manifest()).await;
}

/// Pushes an index and its images under a tag.
pub async fn push(registry: &Registry, name: &ImageReference, index: &Index) {
    for image in index.images() {
        push_content(registry, name, image).await;
        let pinned = name.at_digest(digest(image.manifest()));
        push_manifest(registry, &pinned, image.manifest()).await;
    }
    push_manifest(registry, name, index.document()).await;
}

async fn push_content(registry: &Registry, name: &ImageReference, image: &Image) {
    for blob in image.blobs() {
        registry
            .push_blob(name, &digest(blob), blob.bytes().clone())
            .await
            .expect("the registry accepts it");
    }
}

async fn push_manifest(registry: &Registry, name: &ImageReference, manifest: &Blob) {
    registry
        .push_manifest(name, manifest.media_type(), manifest.bytes().clone())
        .await
        .expect("the registry accepts it");
}

fn digest(blob: &Blob) -> Digest {
    Digest::parse(blob.digest()).expect("a digest")
}
