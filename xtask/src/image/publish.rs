//! Writes a finished image to a directory and, on request, to a registry.

use std::{fs, time::Duration};

use anyhow::Context;
use runner_core::{Digest, ImageReference};
use runner_devtools::{Remedy, target_directory};
use runner_image::{Attachment, Blob, Index};
use runner_registry::{Options, Registry};
use serde_json::Value;

use super::Destination;

const CYCLONE_DX: &str = "application/vnd.cyclonedx+json";
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn publish(
    name: &str,
    index: &Index,
    sbom: &Value,
    to: &Destination,
) -> anyhow::Result<()> {
    let tag = to
        .push
        .as_ref()
        .and_then(ImageReference::tag_or_latest)
        .unwrap_or("latest");
    let directory = match &to.out {
        Some(directory) => directory.clone(),
        None => target_directory().join("images").join(name),
    };
    index.write_layout(&directory, tag)?;
    let sbom = format!("{sbom:#}\n");
    let sbom_file = directory.with_added_extension("cdx.json");
    fs::write(&sbom_file, &sbom)
        .with_context(|| format!("cannot write {}", sbom_file.display()))?;
    for image in index.images() {
        println!(
            "{:>9} bytes  {}",
            image.compressed_size(),
            image.manifest().digest()
        );
    }
    println!(
        "oci:{}:{tag}@{}",
        directory.display(),
        index.document().digest()
    );
    if let Some(image) = &to.push {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime
            .block_on(push(index, sbom, image, &to.insecure_registry))
            .with_context(|| format!("cannot push {image}"))
            .remedy(
                "check that the registry answers and that docker's config has credentials for it; \
                 a registry without TLS needs --insecure-registry HOST",
            )?;
        println!("{image}@{}", index.document().digest());
    }
    Ok(())
}

async fn push(
    index: &Index,
    sbom: String,
    to: &ImageReference,
    insecure: &[String],
) -> anyhow::Result<()> {
    let registry = Registry::new(Options {
        insecure_registries: insecure.to_vec(),
        request_timeout: UPLOAD_TIMEOUT,
        ..Options::default()
    })?;
    for image in index.images() {
        for blob in image.blobs() {
            registry
                .push_blob(to, &digest(blob)?, blob.bytes().clone())
                .await?;
        }
        push_manifest(
            &registry,
            &to.at_digest(digest(image.manifest())?),
            image.manifest(),
        )
        .await?;
    }
    push_manifest(&registry, to, index.document()).await?;
    attach(&registry, index, sbom, to).await
}

/// Pushes the SBOM as an attachment of the index, where scanners look for it.
async fn attach(
    registry: &Registry,
    index: &Index,
    sbom: String,
    to: &ImageReference,
) -> anyhow::Result<()> {
    let attachment = Attachment::new(index.document(), CYCLONE_DX, sbom)?;
    for blob in attachment.blobs() {
        registry
            .push_blob(to, &digest(blob)?, blob.bytes().clone())
            .await?;
    }
    let manifest = attachment.manifest();
    push_manifest(registry, &to.at_digest(digest(manifest)?), manifest).await?;
    let (tag, list) = attachment.fallback();
    push_manifest(registry, &to.at_tag(&tag), list).await
}

async fn push_manifest(
    registry: &Registry,
    to: &ImageReference,
    manifest: &Blob,
) -> anyhow::Result<()> {
    let content = manifest.bytes().clone();
    Ok(registry
        .push_manifest(to, manifest.media_type(), content)
        .await?)
}

fn digest(blob: &Blob) -> anyhow::Result<Digest> {
    Digest::parse(blob.digest()).map_err(anyhow::Error::msg)
}
