//! Sets up logs, metrics and traces of a process from two flags and the `OTEL_*` variables.
//!
//! ```text
//! tracing events ─→ log layer ────→ stderr (text or JSON lines)
//! tracing spans ──→ OTel layer ───→ OTLP collector, or console
//! instruments ────→ meter provider → Prometheus scrape, OTLP collector, or console
//! ```
//!
//! The metrics and spans themselves are defined in the other crates, which use the plain `tracing`
//! and `opentelemetry` APIs. Without a call to [`init`] these APIs record nothing, at no cost.

// Without all exporters compiled in, some settings are never read.
#![cfg_attr(
    not(all(feature = "console", feature = "otlp", feature = "prometheus")),
    allow(dead_code, unused_variables)
)]

#[cfg(feature = "console")]
mod console;
mod error;
mod log;
mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
mod process;
pub mod propagation;
mod settings;
mod traces;

use std::{net::SocketAddr, time::Duration};

use opentelemetry_sdk::{error::OTelSdkResult, trace::SdkTracerProvider};
use tokio::sync::oneshot;
use tracing_subscriber::{Registry, layer::SubscriberExt};

pub use error::TelemetryError;
pub use log::{LogFormat, LogOptions, UnknownLogFormat};

use settings::Settings;

/// Time limit of [`Telemetry::shutdown`] for the last export, 3 s.
///
/// A pod usually has 30 s to terminate, and the running evaluations need most of that time.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The running exporters that [`init`] started.
///
/// Keep it until the process ends, then call [`shutdown`](Self::shutdown).
#[derive(Debug)]
#[must_use = "the telemetry recorded last is lost unless `shutdown` is called"]
pub struct Telemetry {
    metrics: Option<metrics::Metrics>,
    traces: Option<SdkTracerProvider>,
}

/// Starts logging and the exporters selected by the environment.
///
/// `service_name` is the name of the service if `OTEL_SERVICE_NAME` and
/// `OTEL_RESOURCE_ATTRIBUTES` do not set one. Instruments created before this call record nothing.
/// The exporters run on the current Tokio runtime; without exporters no runtime is needed.
///
/// # Errors
/// Returns an error if the scrape address cannot be bound, if exporters are selected outside of a
/// Tokio runtime, or if a tracing subscriber is already installed. Nothing is installed in these
/// cases, so the caller has to print the error itself. An unusable value of a variable is not an
/// error: it is logged, and either ignored or its signal is not exported.
pub fn init(service_name: &str, log: LogOptions) -> Result<Telemetry, TelemetryError> {
    let mut settings = Settings::from_environment();
    let resource = settings.resource(service_name);

    let mut warnings = std::mem::take(&mut settings.warnings);
    let metrics = metrics::start(&settings, &resource);
    let metrics = warn_if_unusable("metrics", metrics, &mut warnings)?;
    let traces = traces::provider(&settings, &resource);
    let traces = warn_if_unusable("traces", traces, &mut warnings)?;

    let subscriber = Registry::default()
        .with(traces.as_ref().map(traces::layer))
        .with(log::layer(log));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|_| TelemetryError::AlreadyInstalled)?;

    for warning in warnings {
        tracing::warn!("{warning}");
    }
    propagation::install(&settings.propagators);
    if let Some(metrics) = &metrics {
        opentelemetry::global::set_meter_provider(metrics.provider().clone());
        process::observe(&opentelemetry::global::meter("process"));
    }
    Ok(Telemetry { metrics, traces })
}

/// Replaces the error of an exporter with unusable settings by `None` and a warning.
fn warn_if_unusable<T>(
    signal: &'static str,
    started: Result<Option<T>, TelemetryError>,
    warnings: &mut Vec<TelemetryError>,
) -> Result<Option<T>, TelemetryError> {
    use TelemetryError::{BadValue, BuildExporter, SetUpTls, SystemRoots};
    match started {
        Err(error @ (BadValue { .. } | BuildExporter { .. } | SetUpTls(_) | SystemRoots)) => {
            warnings.push(error.into_not_exported(signal));
            Ok(None)
        }
        started => started,
    }
}

// === impl Telemetry ===

impl Telemetry {
    /// Returns the address on which metrics are served, if they are.
    ///
    /// For a requested port of 0, this is the port that the kernel chose.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(metrics::Metrics::address)
    }

    /// Exports all pending telemetry and stops the exporters.
    ///
    /// Takes at most 3 s, even if the collector does not answer. Logging continues.
    pub async fn shutdown(self) {
        let traces = self
            .traces
            .map(|provider| in_thread(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT)));
        let metrics = self.metrics.map(|metrics| {
            let provider = metrics.into_provider();
            in_thread(move || provider.shutdown_with_timeout(FLUSH_TIMEOUT))
        });
        let flushed = async {
            for done in [traces, metrics].into_iter().flatten() {
                // The exporter has already logged its error.
                let _ = done.await;
            }
        };
        if tokio::time::timeout(FLUSH_TIMEOUT, flushed).await.is_err() {
            tracing::warn!("telemetry was not delivered in time and is lost");
        }
    }
}

/// Runs a flush in a thread of its own and returns a receiver of its result.
///
/// The SDK's flush blocks its thread. A thread of Tokio's blocking pool would delay the shutdown
/// of the runtime.
fn in_thread(
    flush: impl FnOnce() -> OTelSdkResult + Send + 'static,
) -> oneshot::Receiver<OTelSdkResult> {
    let (done, wait) = oneshot::channel();
    std::thread::spawn(move || done.send(flush()));
    wait
}
