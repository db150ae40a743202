//! Exports the spans of this project's own crates.
//!
//! Spans of dependencies are not exported. They are of little use, and exporting the spans of the
//! exporter's own connection would create new spans without end.

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracerProvider, TracerProviderBuilder},
};
use tracing::{Level, Metadata, Subscriber, level_filters::LevelFilter};
use tracing_subscriber::{Layer, filter::FilterFn, registry::LookupSpan};

use crate::{
    TelemetryError,
    log::is_own,
    settings::{Settings, TracesExporter},
};

/// Returns the tracer provider of the configured exporter, or `None` without an exporter.
pub(crate) fn provider(
    settings: &Settings,
    resource: &Resource,
) -> Result<Option<SdkTracerProvider>, TelemetryError> {
    match &settings.traces {
        TracesExporter::None => Ok(None),
        #[cfg(feature = "console")]
        TracesExporter::Console => Ok(Some(
            builder(settings, resource)
                .with_batch_exporter(crate::console::SpanWriter)
                .build(),
        )),
        #[cfg(feature = "otlp")]
        TracesExporter::Otlp(collector) => Ok(Some(
            builder(settings, resource)
                .with_batch_exporter(crate::otlp::span_exporter(collector)?)
                .build(),
        )),
    }
}

fn builder(settings: &Settings, resource: &Resource) -> TracerProviderBuilder {
    SdkTracerProvider::builder()
        .with_resource(resource.clone())
        .with_sampler(settings.sampler.clone())
}

/// Returns the layer that turns `tracing` spans into OpenTelemetry spans.
pub(crate) fn layer<S>(provider: &SdkTracerProvider) -> impl Layer<S> + Send + Sync + use<S>
where
    S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
{
    tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("function-runner"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        // Entering a span must not start the OpenTelemetry span, because its parent may not have
        // been read from the request's headers yet.
        .with_context_activation(false)
        .with_filter(
            FilterFn::new(is_exported as fn(&Metadata<'_>) -> bool)
                .with_max_level_hint(LevelFilter::DEBUG),
        )
}

/// Returns whether a span or event is exported, independent of the log level.
fn is_exported(metadata: &Metadata<'_>) -> bool {
    let limit = if metadata.is_span() {
        Level::DEBUG
    } else {
        Level::INFO
    };
    is_own(metadata.target()) && *metadata.level() <= limit
}
