//! Which function runs how: the two configuration files and the `FunctionConfig` objects, compiled
//! into one immutable [`Table`] that is swapped whole when any of them changes.
//!
//! ```text
//! config.yaml ────────────┐
//! pod-cache-config.yaml ──┼─→ Configuration ─→ Table ─→ executable(image), pod_settings(image), warm_set()
//! FunctionConfig objects ─┘
//! ```
//!
//! A lookup hashes the image's name and takes no lock. A source that goes bad keeps what it said
//! last and is named in [`Table::problems`]. Nothing here runs a function or starts a pod.

mod again;
mod client;
mod configuration;
mod declaration;
mod duration;
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
pub use duration::{BadDuration, parse_duration};
pub use files::{ConfigError, FileOptions, Wanted};
pub use problem::{Problem, Severity, Source};
pub use reconcile::{Follow, ListError, Listed, Progress, declaration, list_objects};
pub use settings::{PodSettings, SHORTEST_TIME_TO_LIVE};
pub use table::{Binaries, Executable, Match, Row, Runtime, Table};
