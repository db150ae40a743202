//! Configuration of functions: two files and the `FunctionConfig` objects, compiled into a table.
//!
//! The [`Table`] is immutable and is replaced as a whole when any source changes.
//!
//! ```text
//! config.yaml ────────────┐
//! pod-cache-config.yaml ──┼─→ Configuration ─→ Table ─→ executable(image), pod_settings(image), warm_set()
//! FunctionConfig objects ─┘
//! ```
//!
//! A lookup hashes the image's name and takes no lock. If a source becomes invalid, its last valid
//! content stays in use and the error is in [`Table::problems`]. This crate runs no functions and
//! starts no pods.

mod again;
mod client;
mod configuration;
mod declaration;
mod files;
pub mod objects;
mod problem;
mod reconcile;
mod settings;
mod table;
#[cfg(test)]
mod testing;

pub use again::Again;
pub use client::{ClusterOptions, ConnectError, connect, innermost, watch_config};
pub use configuration::{Configuration, OBJECTS_TIMEOUT, Reload, ReloadError};
pub use declaration::{Age, BinaryDeclaration, Declaration, PodDeclaration};
pub use files::{ConfigError, FileOptions, Wanted};
pub use problem::{Problem, Severity, Source};
pub use reconcile::{Follow, ListError, Listed, Progress, declaration, list_objects};
pub use settings::{PodSettings, SHORTEST_TIME_TO_LIVE};
pub use table::{Binaries, Executable, Match, Row, Runtime, Table};
