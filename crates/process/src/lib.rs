//! Runs a function: one process an evaluation, fed and drained without deadlock, bounded in time
//! and memory, and gone without a trace afterwards.
//!
//! ```text
//! Engine ─→ Admission (a place near a core) ─→ Standby (or a fresh spawn) ─→ Process: feed, complete
//! ```
//!
//! It knows programs, bytes and limits. It does not know images, resource lists or gRPC.

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
#[cfg_attr(not(feature = "confined"), path = "no_scratch.rs")]
mod scratch;
mod standby;

pub use admission::Admission;
pub use engine::{Completed, Engine, EngineOptions, Limits, RunError};
pub use exit::Exit;
pub use log::{excerpt, shorten};
pub use orphans::{Orphans, become_subreaper};
pub use program::{Program, StartError, Surroundings};
pub use standby::StandbyStatus;

/// Ends every function at once and removes its directory: for a process that ends without ending
/// its engines.
pub fn end_all() {
    orphans::kill_all();
    scratch::remove_all();
}
