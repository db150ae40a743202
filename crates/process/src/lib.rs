//! Runs functions: one process per evaluation, without deadlocks between input and output, bounded
//! in time and memory, and without leftovers afterwards.
//!
//! ```text
//! Engine ─→ Admission (a permit) ─→ Standby (or a fresh spawn) ─→ Process: feed, complete
//! ```
//!
//! This crate handles programs, bytes and limits. Images, resource lists and gRPC are outside its
//! scope.

mod admission;
mod descriptor;
mod engine;
mod exit;
mod loads;
mod log;
mod metrics;
mod orphans;
mod output;
mod process;
mod program;
mod scratch;
mod standby;

pub use admission::Admission;
pub use engine::{Completed, Engine, EngineOptions, Limits, RunError};
pub use exit::Exit;
pub use orphans::{Orphans, become_subreaper};
pub use program::{Program, StartError, Surroundings};
pub use scratch::remove_abandoned;
pub use standby::StandbyStatus;

/// Kills all functions at once and removes their directories.
///
/// Used by a process that exits without dropping its engines.
pub fn end_all() {
    orphans::kill_all();
    scratch::remove_all();
}
