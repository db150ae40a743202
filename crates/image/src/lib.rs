//! Writes container images without a container tool: layers, config, manifest, index, layout.
//!
//! ```text
//! Tree ─→ Layer ─┐
//!                ├→ Image ─┐
//! Config ────────┘         ├→ Index ─→ OCI layout directory, or blobs for a registry
//!                  Image ──┘
//! ```
//!
//! The same input gives the same bytes: entries are sorted, times are what the caller says, nothing
//! of this machine (names, ids, clock, umask) gets in. The documents are written from types of our
//! own because those of `oci-spec` keep labels in hash maps, whose order changes from run to run.
//!
//! Nothing here talks to a registry or knows what the images are for.

mod attachment;
mod blob;
mod image;
mod index;
mod layer;
mod layout;
mod spec;
mod tree;

pub use attachment::Attachment;
pub use blob::{Blob, Flavour};
pub use image::{Image, ImageBuilder};
pub use index::Index;
pub use layer::Layer;
pub use layout::WriteLayoutError;
pub use spec::{Config, Platform};
pub use tree::{BadPath, Tree};
