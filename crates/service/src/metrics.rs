//! Metrics of evaluations.

use std::{sync::OnceLock, time::Instant};

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram},
};
use runner_core::{EvaluationError, Output, Reason};

struct Instruments {
    evaluations: Counter<u64>,
    duration: Histogram<f64>,
    bytes: Counter<u64>,
}

/// An evaluation that is recorded when it ends; if it is dropped before, as cancelled.
pub(crate) struct EvaluationMetrics {
    function: String,
    started: Instant,
    recorded: bool,
}

fn instruments() -> &'static Instruments {
    static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();
    INSTRUMENTS.get_or_init(|| {
        let meter = global::meter("function-runner");
        Instruments {
            evaluations: meter
                .u64_counter("function_runner.evaluations")
                .with_description("Evaluations that ended")
                .build(),
            duration: meter
                .f64_histogram("function_runner.evaluation.duration")
                .with_unit("s")
                .with_description("From a request's arrival to its answer")
                .build(),
            bytes: meter
                .u64_counter("function_runner.bytes")
                .with_unit("By")
                .with_description("Resource lists received and sent")
                .build(),
        }
    })
}

// === impl EvaluationMetrics ===

impl EvaluationMetrics {
    pub(crate) fn new(image: &str, bytes: usize, started: Instant) -> Self {
        instruments()
            .bytes
            .add(bytes as u64, &[KeyValue::new("direction", "in")]);
        Self {
            function: name(image).to_owned(),
            started,
            recorded: false,
        }
    }

    pub(crate) fn succeeded(mut self, output: &Output) {
        let bytes = output.resource_list.len() as u64;
        instruments()
            .bytes
            .add(bytes, &[KeyValue::new("direction", "out")]);
        self.record(output.runtime.to_owned(), "ok");
    }

    pub(crate) fn failed(mut self, error: &EvaluationError) {
        if matches!(error.reason(), Reason::FunctionNotFound | Reason::BadImage) {
            // Image names invented by a client must not become time series.
            "unknown".clone_into(&mut self.function);
        }
        let runtime = error.fact("evaluator").unwrap_or("none").to_owned();
        self.record(runtime, error.reason().as_str());
    }

    fn record(&mut self, runtime: String, outcome: &'static str) {
        self.recorded = true;
        let runtime = KeyValue::new("runtime", runtime);
        let outcome = KeyValue::new("outcome", outcome);
        let elapsed = self.started.elapsed().as_secs_f64();
        instruments()
            .duration
            .record(elapsed, &[runtime.clone(), outcome.clone()]);
        let function = KeyValue::new("function", std::mem::take(&mut self.function));
        instruments()
            .evaluations
            .add(1, &[function, runtime, outcome]);
    }
}

impl Drop for EvaluationMetrics {
    fn drop(&mut self) {
        if !self.recorded {
            self.record("none".to_owned(), Reason::Cancelled.as_str());
        }
    }
}

/// Returns the last path segment of an image, without tag and digest.
fn name(image: &str) -> &str {
    let path = image.split('@').next().unwrap_or(image);
    let last = path.rsplit('/').next().unwrap_or(path);
    last.split(':').next().unwrap_or(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_named_without_origin_and_version() {
        assert_eq!(name("ghcr.io/x/set-namespace:v0.4.1"), "set-namespace");
        assert_eq!(name("localhost:5000/fn@sha256:00"), "fn");
        assert_eq!(name("fn"), "fn");
    }
}
