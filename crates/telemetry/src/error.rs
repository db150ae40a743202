//! Why telemetry could not start.

use std::io;

/// Why telemetry could not start, in words for whoever set the variables.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A variable has a value that is not understood.
    #[error("{variable}: unknown value {value:?}; allowed: {allowed}")]
    UnknownValue {
        /// The variable.
        variable: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be set to.
        allowed: String,
    },
    /// A variable's value is malformed, or asks for something that is not supported.
    #[error("{variable}: {problem}")]
    BadValue {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it; never quotes headers, which may hold credentials.
        problem: String,
    },
    /// The address on which to serve metrics cannot be bound.
    #[error(
        "cannot serve metrics on {address} \
         (OTEL_EXPORTER_PROMETHEUS_HOST, OTEL_EXPORTER_PROMETHEUS_PORT): {source}"
    )]
    Bind {
        /// The address asked for.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// Exporters were asked for outside of a Tokio runtime.
    #[error("exporters of metrics and traces need a Tokio runtime")]
    NoRuntime,
    /// An exporter could not be built.
    #[error("cannot set up the exporter of {signal}: {reason}")]
    Exporter {
        /// `metrics` or `traces`.
        signal: &'static str,
        /// What the exporter said.
        reason: String,
    },
    /// A collector is to be reached with TLS, and TLS cannot be set up.
    #[error("cannot set up TLS with the collector: {0}")]
    Tls(String),
    /// This process has a tracing subscriber already.
    #[error("telemetry is already running in this process")]
    AlreadyInstalled,
}
