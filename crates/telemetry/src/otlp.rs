//! Exporters to an OTLP collector, over HTTP or gRPC.
//!
//! The SDK runs the exporters on its own threads behind bounded queues, so a slow or unreachable
//! collector only loses spans. The connections are driven by the process's Tokio runtime, because
//! the SDK's threads have none.

mod http;
#[cfg(feature = "tls")]
mod tls;

use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use tokio::runtime::Handle;
use tonic::transport::{Channel, Endpoint};

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
    .map_err(|error| TelemetryError::BuildExporter {
        signal: "metrics",
        source: error.into(),
    })
}

pub(crate) fn span_exporter(collector: &Collector) -> Result<SpanExporter, TelemetryError> {
    let builder = SpanExporter::builder();
    match collector.protocol {
        Protocol::Grpc => over_grpc(builder.with_tonic(), collector)?.build(),
        Protocol::HttpProtobuf => over_http(builder.with_http(), collector)?.build(),
    }
    .map_err(|error| TelemetryError::BuildExporter {
        signal: "traces",
        source: error.into(),
    })
}

fn over_grpc<B>(builder: B, collector: &Collector) -> Result<B, TelemetryError>
where
    B: WithTonicConfig + WithExportConfig,
{
    Ok(builder
        .with_channel(channel(collector)?)
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

/// Returns a channel that connects on first use and reconnects after a failure.
///
/// The connect timeout is set here because the exporter's time limit does not cover connecting:
/// an address that drops packets would block an export until the kernel gives up, after minutes.
fn channel(collector: &Collector) -> Result<Channel, TelemetryError> {
    Handle::try_current().map_err(|_| TelemetryError::NoRuntime)?;
    let endpoint = Endpoint::from(collector.endpoint.clone())
        .timeout(collector.timeout)
        .connect_timeout(collector.timeout);
    #[cfg(feature = "tls")]
    let endpoint = match &collector.tls {
        Some(files) => tls::with_tls(endpoint, files)?,
        None => endpoint,
    };
    Ok(endpoint.connect_lazy())
}
