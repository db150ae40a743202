//! Exporters towards an OTLP collector, over HTTP or gRPC.
//!
//! The SDK runs them on threads of its own behind bounded queues, so a collector that is slow or
//! gone costs spans and nothing else. Connections belong to the process's runtime all the same:
//! the SDK's threads have none.

mod grpc;
mod http;
#[cfg(feature = "tls")]
mod tls;

use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};

use crate::{
    TelemetryError,
    settings::{Collector, Protocol},
};

pub(crate) fn metric_exporter(collector: &Collector) -> Result<MetricExporter, TelemetryError> {
    match collector.protocol {
        Protocol::Grpc => MetricExporter::builder()
            .with_tonic()
            .with_channel(grpc::channel(collector)?)
            .with_timeout(collector.timeout)
            .build(),
        Protocol::HttpProtobuf => MetricExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(collector.endpoint.to_string())
            .with_http_client(http::client(collector)?)
            .with_timeout(collector.timeout)
            .build(),
    }
    .map_err(|error| unusable("metrics", &error))
}

pub(crate) fn span_exporter(collector: &Collector) -> Result<SpanExporter, TelemetryError> {
    match collector.protocol {
        Protocol::Grpc => SpanExporter::builder()
            .with_tonic()
            .with_channel(grpc::channel(collector)?)
            .with_timeout(collector.timeout)
            .build(),
        Protocol::HttpProtobuf => SpanExporter::builder()
            .with_http()
            .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
            .with_endpoint(collector.endpoint.to_string())
            .with_http_client(http::client(collector)?)
            .with_timeout(collector.timeout)
            .build(),
    }
    .map_err(|error| unusable("traces", &error))
}

fn unusable(signal: &'static str, error: &ExporterBuildError) -> TelemetryError {
    TelemetryError::Exporter {
        signal,
        reason: error.to_string(),
    }
}
