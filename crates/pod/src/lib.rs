//! The pod runtime: runs functions in Kubernetes pods, each behind a wrapper.
//!
//! ```text
//! evaluate ─→ registry ─→ Driver (owns the pool) ─→ cluster
//!     └──────── assigned ─────┘
//!     └─→ the pod's wrapper, over the pod's one channel
//! ```
//!
//! The driver decides nothing: it passes events to the pool and carries out the pool's actions. A
//! request never waits for the API server, only for a decision of the pool.

mod announce;
mod connection;
mod create;
mod driver;
mod functions;
mod heartbeat;
mod link;
mod message;
mod metrics;
mod runtime;
mod start;
mod survey;
mod warm;
mod wording;

pub use announce::Announcing;
pub use connection::Connect;
pub use runtime::{InStep, Pod, PodOptions, Tracing};
pub use start::StartPhases;
pub use survey::{Survey, Way};
