//! Runs functions: one process per evaluation, without deadlocks between input and output, bounded
//! in time and memory, and without remaining processes or files afterwards.
//!
//! ```text
//! Engine ─→ permit ─→ standby or new process ─→ write input ─→ read outputs ─→ wait for end
//! ```
//!
//! This crate handles programs, bytes and limits. Images, resource lists and gRPC are outside its
//! scope.

mod admission;
mod engine;
mod exit;
mod load;
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
pub use orphans::{OrphanSweeper, become_subreaper};
pub use program::{Confinement, Program, StartError};
pub use scratch::remove_abandoned_scratch_directories;
pub use standby::StandbyStatus;

/// Kills all functions at once and removes their scratch directories.
///
/// Used by a process that exits without dropping its engines.
pub fn kill_all_functions() {
    orphans::kill_all_groups();
    scratch::remove_all_roots();
}
