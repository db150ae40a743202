//! Writes an index as an OCI layout: the directory that skopeo, crane and containerd read.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    Blob, Flavour, Index,
    spec::{Descriptor, IndexDocument},
};

const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
const NAME: &str = "org.opencontainers.image.ref.name";

/// Why a layout could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteLayoutError {
    /// The file system refused.
    #[error("cannot write {path}")]
    Write {
        /// What was being written.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The document cannot be written as JSON.
    #[error("cannot write the layout's index")]
    Document(#[from] serde_json::Error),
}

impl Index {
    /// Writes everything into a directory, naming the index by a tag. Blobs that are there already
    /// stay: their name says what they hold.
    pub fn write_layout(&self, directory: &Path, tag: &str) -> Result<(), WriteLayoutError> {
        let blobs = directory.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(|source| WriteLayoutError::Write {
            path: blobs.clone(),
            source,
        })?;
        for image in self.images() {
            for blob in image.blobs().chain([image.manifest()]) {
                write_blob(&blobs, blob)?;
            }
        }
        write_blob(&blobs, self.document())?;
        let index = serde_json::to_vec(&IndexDocument {
            schema_version: 2,
            media_type: Flavour::Oci.index(),
            manifests: vec![Descriptor {
                annotations: BTreeMap::from([(NAME, tag)]),
                ..Descriptor::of(self.document())
            }],
            annotations: &BTreeMap::new(),
        })?;
        write(&directory.join("index.json"), &index)?;
        write(&directory.join("oci-layout"), LAYOUT.as_bytes())
    }
}

fn write_blob(blobs: &Path, blob: &Blob) -> Result<(), WriteLayoutError> {
    let name = blob.digest().trim_start_matches("sha256:");
    write(&blobs.join(name), blob.bytes())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteLayoutError> {
    fs::write(path, bytes).map_err(|source| WriteLayoutError::Write {
        path: path.to_owned(),
        source,
    })
}
