//! Metrics of registry access.

use std::time::Duration;

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram},
};

use crate::RegistryError;

/// The source of the result of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupResult {
    /// The result was in the cache.
    Hit,
    /// The result was in the cache and is being checked in the background.
    Stale,
    /// A failure was in the cache.
    Failure,
    /// The result came from a registry.
    Miss,
}

#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    lookups: Counter<u64>,
    errors: Counter<u64>,
    tags_moved: Counter<u64>,
    requests: Counter<u64>,
    duration: Histogram<f64>,
    retries: Counter<u64>,
    ca_fallbacks: Counter<u64>,
}

// === impl Metrics ===

impl Metrics {
    pub(crate) fn new() -> Self {
        let meter = opentelemetry::global::meter("function-runner");
        Self {
            lookups: meter
                .u64_counter("function_runner.registry.lookups")
                .with_description("Image lookups by source of the result")
                .build(),
            errors: meter
                .u64_counter("function_runner.registry.errors")
                .with_description("Image lookups that failed, by kind")
                .build(),
            tags_moved: meter
                .u64_counter("function_runner.registry.tags_moved")
                .with_description("Tags found to point at another image than before")
                .build(),
            requests: meter
                .u64_counter("function_runner.registry.requests")
                .with_description("Requests to registries and their token servers")
                .build(),
            duration: meter
                .f64_histogram("function_runner.registry.request.duration")
                .with_description("Time a registry took to answer a request")
                .with_unit("s")
                .build(),
            retries: meter
                .u64_counter("function_runner.registry.retries")
                .with_description("Requests to registries that were repeated")
                .build(),
            ca_fallbacks: meter
                .u64_counter("function_runner.registry.ca_fallbacks")
                .with_description(
                    "Times the custom CA was unusable and only system roots were trusted",
                )
                .build(),
        }
    }

    pub(crate) fn lookup(&self, result: LookupResult) {
        let result = match result {
            LookupResult::Hit => "hit",
            LookupResult::Stale => "stale",
            LookupResult::Failure => "failure",
            LookupResult::Miss => "miss",
        };
        self.lookups.add(1, &[KeyValue::new("result", result)]);
    }

    pub(crate) fn error(&self, error: &RegistryError) {
        self.errors.add(1, &[KeyValue::new("kind", error.kind())]);
    }

    pub(crate) fn tag_moved(&self) {
        self.tags_moved.add(1, &[]);
    }

    pub(crate) fn request(
        &self,
        registry: &str,
        operation: &'static str,
        status: Option<u16>,
        took: Duration,
    ) {
        let status = status.map_or("none".to_owned(), |status| status.to_string());
        let attributes = [
            KeyValue::new("registry", registry.to_owned()),
            KeyValue::new("operation", operation),
        ];
        self.duration.record(took.as_secs_f64(), &attributes);
        let [registry, operation] = attributes;
        self.requests
            .add(1, &[registry, operation, KeyValue::new("status", status)]);
    }

    pub(crate) fn retry(&self, registry: &str) {
        self.retries
            .add(1, &[KeyValue::new("registry", registry.to_owned())]);
    }

    pub(crate) fn ca_fallback(&self) {
        self.ca_fallbacks.add(1, &[]);
    }
}
