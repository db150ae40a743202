//! Logs, metrics and traces of a process, chosen by two flags and the `OTEL_*` variables.
//!
//! ```text
//! tracing events ─→ log layer ────→ stderr (text or JSON lines)
//! tracing spans ──→ OTel layer ───→ OTLP collector, or console
//! instruments ────→ meter provider → Prometheus scrape, OTLP collector, or console
//! ```
//!
//! Which metrics and spans exist is the other crates' business: they use the plain `tracing` and
//! `opentelemetry` APIs, and work the same (for nothing) where [`init`] was never called.

// With fewer exporters than all, some settings have nobody to read them.
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
mod resource;
mod settings;
mod traces;

use std::{net::SocketAddr, time::Duration};

use opentelemetry_sdk::{error::OTelSdkResult, trace::SdkTracerProvider};
use tokio::sync::oneshot;
use tracing_subscriber::{Registry, layer::SubscriberExt};

pub use error::TelemetryError;
pub use log::{LogFormat, LogOptions, UnknownLogFormat};

use settings::Settings;

/// How long [`Telemetry::shutdown`] waits for a collector. A pod is usually given 30 seconds to
/// end, and those belong to the evaluations still running.
const FLUSH_LIMIT: Duration = Duration::from_secs(3);

/// What [`init`] started. Keep it until the process ends, then call [`shutdown`](Self::shutdown).
#[derive(Debug)]
#[must_use = "what was recorded last is lost unless `shutdown` is called"]
pub struct Telemetry {
    metrics: Option<metrics::Metrics>,
    traces: Option<SdkTracerProvider>,
}

/// Starts logging and whatever exporters the environment asks for.
///
/// `service_name` is what the process is called where `OTEL_SERVICE_NAME` does not say otherwise.
/// Instruments must be created after this, or they record nothing. The exporters run on the
/// current Tokio runtime; without exporters none is needed.
///
/// # Errors
/// A scrape address that cannot be bound, a missing runtime, or a second call in one process.
/// Nothing is installed then, so the caller has to print the error itself. A variable that cannot be
/// followed is no error: it is logged, and ignored or its signal not exported.
pub fn init(service_name: &str, log: LogOptions) -> Result<Telemetry, TelemetryError> {
    let mut settings = Settings::from_environment();
    let resource = resource::of(service_name, &settings);

    let mut warnings = std::mem::take(&mut settings.warnings);
    let metrics = metrics::start(&settings, &resource);
    let metrics = unless_unusable("metrics", metrics, &mut warnings)?;
    let traces = traces::provider(&settings, &resource);
    let traces = unless_unusable("traces", traces, &mut warnings)?;

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

/// Turns an exporter that cannot be set up as the environment asks into none and a warning.
fn unless_unusable<T>(
    signal: &'static str,
    started: Result<Option<T>, TelemetryError>,
    warnings: &mut Vec<TelemetryError>,
) -> Result<Option<T>, TelemetryError> {
    use TelemetryError::{BadValue, Exporter, Tls};
    match started {
        Err(problem @ (BadValue { .. } | Exporter { .. } | Tls(_))) => {
            warnings.push(problem.turns_off(signal));
            Ok(None)
        }
        started => started,
    }
}

// === impl Telemetry ===

impl Telemetry {
    /// Where metrics are served, if they are: the real port where port 0 was asked for.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics.as_ref().and_then(metrics::Metrics::address)
    }

    /// Sends what has not been sent yet and stops the exporters, within three seconds however
    /// the collector behaves. Logging goes on.
    pub async fn shutdown(self) {
        let traces = self
            .traces
            .map(|provider| in_thread(move || provider.shutdown_with_timeout(FLUSH_LIMIT)));
        let metrics = self.metrics.map(|metrics| {
            let provider = metrics.into_provider();
            in_thread(move || provider.shutdown_with_timeout(FLUSH_LIMIT))
        });
        let flushed = async {
            for done in [traces, metrics].into_iter().flatten() {
                // The exporter has logged what went wrong; there is nothing left to do about it.
                let _ = done.await;
            }
        };
        if tokio::time::timeout(FLUSH_LIMIT, flushed).await.is_err() {
            tracing::warn!("telemetry was not delivered in time and is lost");
        }
    }
}

/// The SDK's flush blocks its thread, and a thread of Tokio's own pool would hold up the end of
/// the runtime.
fn in_thread(
    flush: impl FnOnce() -> OTelSdkResult + Send + 'static,
) -> oneshot::Receiver<OTelSdkResult> {
    let (done, wait) = oneshot::channel();
    std::thread::spawn(move || done.send(flush()));
    wait
}
