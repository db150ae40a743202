//! Collects the recorded metrics and exports them to Prometheus, a collector or the console.

#[cfg(feature = "prometheus")]
mod scrape;
#[cfg(feature = "console")]
pub(crate) use scrape::exposition;

use std::net::SocketAddr;

use opentelemetry_sdk::{
    Resource,
    metrics::{
        Aggregation, Instrument, InstrumentKind, MeterProviderBuilder, SdkMeterProvider, Stream,
    },
};

use crate::{
    TelemetryError,
    settings::{MetricsExporter, Settings},
};

/// Upper bounds of histogram buckets in seconds, from a warm standby (0.5 ms) to a function that
/// runs for the full 5 minutes.
const DURATION_BUCKETS: [f64; 19] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0, 180.0, 300.0,
];

/// The running export of metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    provider: SdkMeterProvider,
    destination: Destination,
}

/// The destination of metrics; dropping it stops the server or task that delivers them.
#[derive(Debug)]
enum Destination {
    /// A server that Prometheus scrapes.
    #[cfg(feature = "prometheus")]
    Scrape(scrape::Server),
    /// An OTLP collector; the provider owns the exporter.
    #[cfg(feature = "otlp")]
    Collector,
    /// Standard output.
    #[cfg(feature = "console")]
    Console(#[expect(dead_code, reason = "kept until metrics stop")] crate::console::MetricsWriter),
}

/// Starts the configured exporter; returns `None` without one.
pub(crate) fn start(
    settings: &Settings,
    resource: &Resource,
) -> Result<Option<Metrics>, TelemetryError> {
    let builder = builder(resource);
    let (builder, destination) = match &settings.metrics {
        MetricsExporter::None => return Ok(None),
        #[cfg(feature = "prometheus")]
        MetricsExporter::Prometheus { host, port } => {
            let (reader, registry) = scrape::reader()?;
            let server = scrape::Server::start(host, *port, registry)?;
            (builder.with_reader(reader), Destination::Scrape(server))
        }
        #[cfg(feature = "otlp")]
        MetricsExporter::Otlp(collector) => {
            let exporter = crate::otlp::metric_exporter(collector)?;
            let builder = builder.with_periodic_exporter(exporter);
            (builder, Destination::Collector)
        }
        #[cfg(feature = "console")]
        MetricsExporter::Console { interval } => {
            let (reader, registry) = scrape::reader()?;
            let console = crate::console::MetricsWriter::start(registry, *interval)?;
            (builder.with_reader(reader), Destination::Console(console))
        }
    };
    Ok(Some(Metrics {
        provider: builder.build(),
        destination,
    }))
}

fn builder(resource: &Resource) -> MeterProviderBuilder {
    SdkMeterProvider::builder()
        .with_resource(resource.clone())
        .with_view(duration_buckets)
}

/// Selects the buckets of histograms in seconds; the SDK's defaults are meant for milliseconds.
fn duration_buckets(instrument: &Instrument) -> Option<Stream> {
    if instrument.kind() != InstrumentKind::Histogram || instrument.unit() != "s" {
        return None;
    }
    let aggregation = Aggregation::ExplicitBucketHistogram {
        boundaries: DURATION_BUCKETS.to_vec(),
        record_min_max: false,
    };
    Stream::builder().with_aggregation(aggregation).build().ok()
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn provider(&self) -> &SdkMeterProvider {
        &self.provider
    }

    /// Returns the address on which metrics are served, if they are.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match &self.destination {
            #[cfg(feature = "prometheus")]
            Destination::Scrape(server) => Some(server.address()),
            #[cfg(any(feature = "otlp", feature = "console"))]
            _ => None,
        }
    }

    /// Stops the server or task that delivers metrics and returns the provider for the last flush.
    pub(crate) fn into_provider(self) -> SdkMeterProvider {
        self.provider
    }
}
