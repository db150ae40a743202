//! Exporters to standard output, to look at telemetry without a collector.
//!
//! Spans are JSON objects, one per line; metrics are in the Prometheus text format.

use std::{
    io::{self, Write},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};
use prometheus::Registry;
use serde_json::{Map, Value, json};
use tokio::{runtime::Handle, task::JoinHandle};

use crate::{TelemetryError, metrics::exposition};

/// A span exporter that writes one line per span.
#[derive(Debug)]
pub(crate) struct SpanWriter;

/// A task that writes all metrics at an interval; dropping it writes them once more.
#[derive(Debug)]
pub(crate) struct MetricsWriter {
    registry: Registry,
    task: JoinHandle<()>,
}

// === impl SpanWriter ===

impl SpanExporter for SpanWriter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        for span in &batch {
            write(&format!("{}\n", span_object(span)));
        }
        Ok(())
    }
}

/// Returns the JSON object of a span.
fn span_object(span: &SpanData) -> Value {
    let attributes: Map<_, _> = span
        .attributes
        .iter()
        .map(|pair| (pair.key.to_string(), pair.value.to_string().into()))
        .collect();
    json!({
        "name": span.name,
        "trace_id": span.span_context.trace_id().to_string(),
        "span_id": span.span_context.span_id().to_string(),
        "parent_span_id": span.parent_span_id.to_string(),
        "start": seconds(span.start_time),
        "end": seconds(span.end_time),
        "attributes": attributes,
        "status": format!("{:?}", span.status),
    })
}

/// Returns a time in seconds since the Unix epoch.
fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs_f64()
}

// === impl MetricsWriter ===

impl MetricsWriter {
    pub(crate) fn start(registry: Registry, interval: Duration) -> Result<Self, TelemetryError> {
        let runtime = Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
        let registry_of_task = registry.clone();
        let task = runtime.spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                write_metrics(&registry_of_task);
            }
        });
        Ok(Self { registry, task })
    }
}

impl Drop for MetricsWriter {
    fn drop(&mut self) {
        self.task.abort();
        write_metrics(&self.registry);
    }
}

fn write_metrics(registry: &Registry) {
    match exposition(registry) {
        Ok(text) => write(&text),
        Err(error) => tracing::warn!(%error, "cannot write metrics to standard output"),
    }
}

/// Writes whole lines at once; errors are ignored, since they cannot be reported anywhere.
fn write(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}
