//! Why telemetry could not start, or not as the environment asks.

use std::io;

/// A problem with the telemetry that the environment asks for, in words for whoever set it.
///
/// Problems of single variables are logged, and the process starts: so says the specification, and
/// functions matter more than their metrics.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A variable has a value that this process does nothing with.
    #[error("{variable}: {value:?} is not supported and is ignored; supported: {supported}")]
    UnsupportedValue {
        /// The variable's name.
        variable: &'static str,
        /// The variable's value.
        value: String,
        /// The values that have an effect.
        supported: String,
    },
    /// A collector cannot be used as the environment describes it.
    #[error("{problem}: {signal} are not exported")]
    NotExported {
        /// `metrics` or `traces`.
        signal: &'static str,
        /// The reason.
        #[source]
        problem: Box<TelemetryError>,
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

// === impl TelemetryError ===

impl TelemetryError {
    /// Returns this problem with its consequence: a signal is not exported.
    pub(crate) fn turns_off(self, signal: &'static str) -> Self {
        Self::NotExported {
            signal,
            problem: Box::new(self),
        }
    }
}
