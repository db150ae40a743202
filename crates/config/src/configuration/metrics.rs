//! What the configuration tells about itself.

use opentelemetry::{KeyValue, global, metrics::Counter};

use super::Outcome;

/// Counts looks at the sources that changed something, or should have.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    reloads: Counter<u64>,
}

// === impl Metrics ===

impl Metrics {
    /// Made when the first change is awaited, not at load: the exporter is set up in between.
    pub(crate) fn new() -> Self {
        let meter = global::meter("runner-config");
        let reloads = meter
            .u64_counter("function_runner.config.reloads")
            .with_description("Changes of a configuration source, by source and outcome.")
            .build();
        Self { reloads }
    }

    pub(crate) fn reloaded(&self, source: &'static str, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Unchanged => return,
            Outcome::Applied => "applied",
            Outcome::Rejected => "rejected",
        };
        self.reloads.add(
            1,
            &[
                KeyValue::new("source", source),
                KeyValue::new("outcome", outcome),
            ],
        );
    }
}
