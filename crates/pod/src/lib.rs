//! The pod runtime: runs functions in Kubernetes pods, each behind a wrapper.
//!
//! ```text
//! evaluate ─→ registry ─→ driver ⇄ coordinator (owns the pool)
//!     │                     └─→ cluster: creates and deletes pods and services
//!     └─→ the pod's wrapper, over the pod's one connection
//! ```
//!
//! The coordinator decides; it is pure, so that tests need neither a cluster nor a clock. The
//! driver, one task, passes inputs to it and carries out its effects. A request never waits for the
//! API server, only for a decision.

mod announce;
mod connection;
mod coordinator;
mod create;
mod driver;
mod functions;
mod heartbeat;
mod inbox;
mod metrics;
mod runtime;
mod survey;
mod target;
mod warm;
mod wording;

pub use announce::Announcing;
pub use coordinator::{Readiness, StartPhases};
pub use runtime::{Pod, PodOptions, Tracing};
pub use survey::{PodAddress, Survey};
pub use target::Connect;
