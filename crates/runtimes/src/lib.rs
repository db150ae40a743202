//! The runtimes `exec` and `pod`, and the chain that tries them in order.
//!
//! ```text
//! Chain ─┬→ Exec ─→ Local ─→ process
//!        │     (wrapper-server) ─┘
//!        └→ Pod ─→ wrapper-server in a pod
//! ```
//!
//! A runtime depends neither on other runtimes nor on the gRPC server.

mod chain;
#[cfg(any(feature = "exec", feature = "pod"))]
mod complete;
#[cfg(feature = "exec")]
mod exec;
mod local;
#[cfg(feature = "pod")]
mod pod;

pub use chain::Chain;
#[cfg(feature = "exec")]
pub use exec::{Exec, Files};
pub use local::{Local, Wording};
#[cfg(feature = "pod")]
pub use pod::{Announcing, Connect, InStep, Pod, PodOptions, StartPhases, Survey, Tracing, Way};
