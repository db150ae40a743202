//! Stands in for `scratch.rs` in programs that run no confined functions.

use std::path::Path;

/// Makes no directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScratchRoot;

/// A directory that nobody makes.
#[derive(Debug)]
pub(crate) enum Scratch {}

// === impl ScratchRoot ===

impl ScratchRoot {
    pub(crate) fn scratch(&self) -> Option<Scratch> {
        None
    }
}

// === impl Scratch ===

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }
}

pub(crate) fn remove_all() {}
