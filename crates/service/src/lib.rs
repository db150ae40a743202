//! The gRPC server: evaluations, health, status, reflection, limits and a graceful end.
//!
//! ```text
//! listener ─→ front ─→ Evaluations ─→ dyn Evaluator
//!                   └→ router ─→ health, status, reflection
//! ```
//!
//! It is given an [`Evaluator`](runner_core::Evaluator) and knows nothing of what stands behind it.

mod calls;
mod deadline;
mod evaluations;
mod front;
mod gathered;
mod health;
mod lifecycle;
mod listen;
mod metrics;
mod request_id;
mod server;
mod signals;
mod status;
#[cfg(feature = "tls")]
mod tls;

pub use health::{Health, StuckCheck};
pub use lifecycle::Lifecycle;
pub use listen::ListenAt;
pub use server::{Server, ServerError, ServerOptions};
pub use status::StatusSource;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsError, TlsFiles};

/// Joins a span to the trace its caller sent along.
pub type TraceParent = fn(&tracing::Span, &http::HeaderMap);
