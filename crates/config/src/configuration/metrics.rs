//! Metrics of the configuration.

use std::{collections::BTreeMap, sync::Weak};

use opentelemetry::{KeyValue, global, metrics::Counter};

use super::{Outcome, Shared};
use crate::Severity;

const SCOPE: &str = "runner-config";

/// The counter of applied and rejected changes of the sources.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    reloads: Counter<u64>,
}

// === impl Metrics ===

impl Metrics {
    /// Creates the counter; to be called after the metrics exporter is set up.
    ///
    /// For this reason it is created when the first change is awaited, not when files are loaded.
    pub(super) fn new() -> Self {
        let meter = global::meter(SCOPE);
        let reloads = meter
            .u64_counter("function_runner.config.reloads")
            .with_description("Changes of a configuration source, by source and outcome.")
            .build();
        Self { reloads }
    }

    pub(super) fn reloaded(&self, source: &'static str, outcome: Outcome) {
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

/// Registers a gauge for the number of problems of the table.
///
/// The gauge outlives the configuration, so it holds a weak reference to it.
pub(super) fn observe_problems(shared: Weak<Shared>) {
    global::meter(SCOPE)
        .u64_observable_gauge("function_runner.config.problems")
        .with_description("Problems of the configuration in use, by source and severity.")
        .with_callback(move |observer| {
            let Some(shared) = shared.upgrade() else {
                return;
            };
            // Zeroes are reported too, so that a corrected problem disappears from the metric.
            let sources = ["config", "pod-cache-config", "functionconfig"];
            let mut counts: BTreeMap<_, u64> = sources
                .into_iter()
                .flat_map(|source| [(source, "warning"), (source, "error")])
                .map(|key| (key, 0))
                .collect();
            for problem in shared.table.load().problems() {
                let severity = match problem.severity {
                    Severity::Warning => "warning",
                    Severity::Error => "error",
                };
                *counts.entry((problem.source.kind(), severity)).or_default() += 1;
            }
            for ((source, severity), count) in counts {
                let labels = [
                    KeyValue::new("source", source),
                    KeyValue::new("severity", severity),
                ];
                observer.observe(count, &labels);
            }
        })
        .build();
}
