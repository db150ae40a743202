//! Errors in the telemetry settings or while starting the exporters.

use std::{error::Error, io};

/// A problem with the telemetry settings, worded for the operator who set the variables.
///
/// Problems of single variables are logged and the process starts, as the OpenTelemetry
/// specification demands: running functions is more important than exporting metrics.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// A variable has an unsupported value, which is ignored.
    #[error("{variable}: {value:?} is not supported and is ignored; supported: {supported}")]
    UnsupportedValue {
        /// Name of the variable.
        variable: &'static str,
        /// Value of the variable.
        value: String,
        /// Comma-separated list of the supported values.
        supported: String,
    },
    /// A signal is not exported because the settings of its collector are unusable.
    #[error("{source}: {signal} are not exported")]
    NotExported {
        /// `metrics` or `traces`.
        signal: &'static str,
        /// The error that prevents the export.
        source: Box<TelemetryError>,
    },
    /// The value of a variable is malformed or requests an unsupported feature.
    #[error("{variable}: {problem}")]
    BadValue {
        /// Name of the variable.
        variable: &'static str,
        /// Description of the error; never quotes headers, which may hold credentials.
        problem: String,
    },
    /// The address for serving metrics cannot be bound.
    #[error(
        "cannot serve metrics on {address} \
         (OTEL_EXPORTER_PROMETHEUS_HOST, OTEL_EXPORTER_PROMETHEUS_PORT): {source}"
    )]
    Bind {
        /// The configured address (host:port).
        address: String,
        /// The error of resolving or binding the address.
        source: io::Error,
    },
    /// Exporters are configured, but no Tokio runtime is running.
    #[error("exporters of metrics and traces need a Tokio runtime")]
    NoRuntime,
    /// An exporter could not be built.
    #[error("cannot set up the exporter of {signal}: {source}")]
    BuildExporter {
        /// `metrics` or `traces`.
        signal: &'static str,
        /// The error of the exporter.
        source: Box<dyn Error + Send + Sync>,
    },
    /// TLS to the collector is configured but cannot be set up.
    #[error("cannot set up TLS with the collector: {0}")]
    SetUpTls(#[source] Box<dyn Error + Send + Sync>),
    /// TLS to the collector is configured without roots, and the system has none.
    #[error(
        "cannot set up TLS with the collector: the system has no root certificates; \
         name the collector's in OTEL_EXPORTER_OTLP_CERTIFICATE"
    )]
    SystemRoots,
    /// A tracing subscriber is already installed in this process.
    #[error("telemetry is already running in this process")]
    AlreadyInstalled,
}

// === impl TelemetryError ===

impl TelemetryError {
    /// Wraps this error in [`NotExported`](Self::NotExported) for the given signal.
    pub(crate) fn into_not_exported(self, signal: &'static str) -> Self {
        Self::NotExported {
            signal,
            source: Box::new(self),
        }
    }
}
