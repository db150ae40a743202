//! Exporters towards an OTLP collector over gRPC.
//!
//! The SDK runs them on threads of its own behind bounded queues, so a collector that is slow or
//! gone costs spans and nothing else.

use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig, WithTonicConfig};
use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint};

use crate::{TelemetryError, settings::Collector};

pub(crate) fn metric_exporter(collector: &Collector) -> Result<MetricExporter, TelemetryError> {
    MetricExporter::builder()
        .with_tonic()
        .with_channel(channel(collector)?)
        .with_timeout(collector.timeout)
        .build()
        .map_err(|error| TelemetryError::Exporter {
            signal: "metrics",
            reason: error.to_string(),
        })
}

pub(crate) fn span_exporter(collector: &Collector) -> Result<SpanExporter, TelemetryError> {
    SpanExporter::builder()
        .with_tonic()
        .with_channel(channel(collector)?)
        .with_timeout(collector.timeout)
        .build()
        .map_err(|error| TelemetryError::Exporter {
            signal: "traces",
            reason: error.to_string(),
        })
}

/// A connection that is made when first used, and again after it broke.
///
/// Left alone, the exporter would wait for an address that swallows packets as long as the kernel
/// does, minutes; the time limit for exporting does not cover connecting.
fn channel(collector: &Collector) -> Result<Channel, TelemetryError> {
    Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
    Ok(Endpoint::from(collector.endpoint.clone())
        .timeout(collector.timeout)
        .connect_timeout(collector.timeout)
        .connect_lazy())
}
