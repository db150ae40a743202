//! Configuration of functions: two files and declarations, compiled into one table.
//!
//! The [`Table`] is immutable and is replaced as a whole when any source changes.
//!
//! ```text
//! config.yaml ────────────┐
//! pod-cache-config.yaml ──┼─→ Configuration ─→ Table ─→ executable(image), pod_settings(image), warm_set()
//! Declarations ───────────┘
//! ```
//!
//! A lookup hashes the image's name and takes no lock. If a source becomes invalid, its last valid
//! content stays in use and the error is in [`Table::problems`].
//!
//! Declarations are the content of `FunctionConfig` objects; the crate that watches the objects
//! passes them in through [`Declarations`]. This crate has no Kubernetes types, runs no functions
//! and starts no pods.

mod configuration;
mod declaration;
mod files;
mod problem;
mod settings;
mod table;
#[cfg(test)]
mod testing;

pub use configuration::{Configuration, Declarations, OBJECTS_TIMEOUT, Reload, ReloadError};
pub use declaration::{Age, BinaryDeclaration, Declaration, PodDeclaration};
pub use files::{ConfigError, EntryError, FileOptions, Wanted};
pub use problem::{Problem, Severity, Source};
pub use settings::{
    BadCount, PodOverrides, PodSettings, SHORTEST_TIME_TO_LIVE, is_quantity, parse_count,
    parse_time_to_live,
};
pub use table::{Binaries, Executable, Match, Row, Runtime, Table};
