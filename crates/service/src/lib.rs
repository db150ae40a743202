//! The gRPC server: evaluations, health, status, reflection, limits and graceful shutdown.
//!
//! ```text
//! listener ─→ dispatch ─→ Evaluations ─→ dyn Evaluator
//!                      └→ router ─→ health, status, reflection
//! ```
//!
//! The server calls an [`Evaluator`](runner_core::Evaluator) and does not depend on its
//! implementation.

mod calls;
mod deadline;
mod dispatch;
mod evaluations;
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

/// A function that joins a span to the trace in the headers of its request.
pub type TraceParent = fn(&tracing::Span, &http::HeaderMap);
