//! Writes container images without a container tool: layers, config, manifest, index, layout.
//!
//! ```text
//! Tree ─→ Layer ─┐
//!                ├→ Image ─┐
//! Config ────────┘         ├→ Index ─→ OCI layout directory, or blobs for a registry
//!                  Image ──┘
//! ```
//!
//! The same input gives the same bytes: entries are sorted, times come from the caller, and nothing
//! of this machine (names, ids, clock, umask) is part of the output. The documents are serialised
//! from own types because those of `oci-spec` keep labels in hash maps, whose order changes from
//! run to run.
//!
//! This crate does not push to registries; its callers do.

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
