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

/// Content of the file `oci-layout`.
const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// Annotation with the tag of an index.
const REF_NAME: &str = "org.opencontainers.image.ref.name";

/// An error while writing an OCI layout.
#[derive(Debug, thiserror::Error)]
pub enum WriteLayoutError {
    /// A file or directory cannot be written.
    #[error("cannot write {path}")]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The index cannot be serialised as JSON.
    #[error("cannot write the layout's index")]
    Serialize(#[from] serde_json::Error),
}

impl Index {
    /// Writes all blobs and the index into a directory, and names the index by a tag.
    ///
    /// Other files in the directory stay. Blobs are named by their digest, so writing one again
    /// does not change it.
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
                annotations: BTreeMap::from([(REF_NAME, tag)]),
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
