//! The ways a function runs, and the chain that tries them in order.
//!
//! ```text
//! Chain ─→ Exec ─→ Local ─→ process
//!              (wrapper-server) ─┘
//! ```
//!
//! Runtimes do not know each other; gRPC is not known here.

mod chain;
#[cfg(feature = "exec")]
mod exec;
mod local;

pub use chain::Chain;
#[cfg(feature = "exec")]
pub use exec::Exec;
pub use local::{Local, Wording};
