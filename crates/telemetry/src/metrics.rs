//! Collects what instruments record and hands it to a scraper or a collector.

#[cfg(feature = "prometheus")]
mod scrape;

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

/// Upper bounds for everything measured in seconds, from a warm standby to a function that takes
/// its full five minutes.
const SECONDS: [f64; 19] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0, 180.0, 300.0,
];

/// Metrics being exported.
#[derive(Debug)]
pub(crate) struct Metrics {
    provider: SdkMeterProvider,
    #[cfg(feature = "prometheus")]
    scrape: Option<scrape::Server>,
}

/// Starts the exporter that was asked for, if any.
pub(crate) fn start(
    settings: &Settings,
    resource: &Resource,
) -> Result<Option<Metrics>, TelemetryError> {
    match &settings.metrics {
        MetricsExporter::None => Ok(None),
        #[cfg(feature = "prometheus")]
        MetricsExporter::Prometheus { host, port } => {
            let (reader, registry) = scrape::reader()?;
            let scrape = scrape::Server::start(host, *port, registry)?;
            let provider = builder(resource).with_reader(reader).build();
            Ok(Some(Metrics {
                provider,
                scrape: Some(scrape),
            }))
        }
        #[cfg(feature = "otlp")]
        MetricsExporter::Otlp(collector) => {
            let provider = builder(resource)
                .with_periodic_exporter(crate::otlp::metric_exporter(collector)?)
                .build();
            Ok(Some(Metrics {
                provider,
                #[cfg(feature = "prometheus")]
                scrape: None,
            }))
        }
    }
}

fn builder(resource: &Resource) -> MeterProviderBuilder {
    SdkMeterProvider::builder()
        .with_resource(resource.clone())
        .with_view(buckets_for_seconds)
}

/// The SDK's own buckets are meant for milliseconds.
fn buckets_for_seconds(instrument: &Instrument) -> Option<Stream> {
    if instrument.kind() != InstrumentKind::Histogram || instrument.unit() != "s" {
        return None;
    }
    let aggregation = Aggregation::ExplicitBucketHistogram {
        boundaries: SECONDS.to_vec(),
        record_min_max: false,
    };
    Stream::builder().with_aggregation(aggregation).build().ok()
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn provider(&self) -> &SdkMeterProvider {
        &self.provider
    }

    /// Where they are served, if they are.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        #[cfg(feature = "prometheus")]
        let address = self.scrape.as_ref().map(scrape::Server::address);
        #[cfg(not(feature = "prometheus"))]
        let address = None;
        address
    }

    /// Stops serving them.
    pub(crate) fn into_provider(self) -> SdkMeterProvider {
        self.provider
    }
}
