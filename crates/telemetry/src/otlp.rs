//! Exporters to an OTLP collector, over HTTP or gRPC.
//!
//! The SDK runs the exporters on its own threads behind bounded queues, so a slow or unreachable
//! collector only loses spans. The connections are driven by the process's Tokio runtime, because
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
    let builder = MetricExporter::builder();
    match collector.protocol {
        Protocol::Grpc => over_grpc(builder.with_tonic(), collector)?.build(),
        Protocol::HttpProtobuf => over_http(builder.with_http(), collector)?.build(),
    }
    .map_err(|error| unusable("metrics", &error))
}

pub(crate) fn span_exporter(collector: &Collector) -> Result<SpanExporter, TelemetryError> {
    let builder = SpanExporter::builder();
    match collector.protocol {
        Protocol::Grpc => over_grpc(builder.with_tonic(), collector)?.build(),
        Protocol::HttpProtobuf => over_http(builder.with_http(), collector)?.build(),
    }
    .map_err(|error| unusable("traces", &error))
}

fn over_grpc<B>(builder: B, collector: &Collector) -> Result<B, TelemetryError>
where
    B: WithTonicConfig + WithExportConfig,
{
    Ok(builder
        .with_channel(grpc::channel(collector)?)
        .with_timeout(collector.timeout))
}

fn over_http<B>(builder: B, collector: &Collector) -> Result<B, TelemetryError>
where
    B: WithHttpConfig + WithExportConfig,
{
    Ok(builder
        .with_protocol(opentelemetry_otlp::Protocol::HttpBinary)
        .with_endpoint(collector.endpoint.to_string())
        .with_http_client(http::client(collector)?)
        .with_timeout(collector.timeout))
}

fn unusable(signal: &'static str, error: &ExporterBuildError) -> TelemetryError {
    TelemetryError::Exporter {
        signal,
        reason: error.to_string(),
    }
}
