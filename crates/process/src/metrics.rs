//! Metrics of the engine.
//!
//! Instruments belong to the meter provider that is installed when the first one is used.

use std::sync::OnceLock;

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram, UpDownCounter},
};

/// The instruments of the engine; docs/metrics.md describes them.
pub(crate) struct Instruments {
    pub(crate) running: UpDownCounter<i64>,
    pub(crate) queued: UpDownCounter<i64>,
    pub(crate) queue_wait: Histogram<f64>,
    standby_hits: Counter<u64>,
    standby_misses: Counter<u64>,
    standby_suspensions: Counter<u64>,
}

/// A guard that subtracts 1 from an up-down counter when it is dropped.
pub(crate) struct UpDownCounterGuard(&'static UpDownCounter<i64>);

/// Returns the instruments, created on the first call.
pub(crate) fn instruments() -> &'static Instruments {
    static INSTRUMENTS: OnceLock<Instruments> = OnceLock::new();
    INSTRUMENTS.get_or_init(|| {
        let meter = global::meter("function-runner");
        Instruments {
            running: meter
                .i64_up_down_counter("function_runner.running")
                .with_description("Function processes running now")
                .build(),
            queued: meter
                .i64_up_down_counter("function_runner.queued")
                .with_description("Evaluations waiting for a permit")
                .build(),
            queue_wait: meter
                .f64_histogram("function_runner.queue.wait")
                .with_unit("s")
                .with_description("Time that evaluations waited for a permit")
                .build(),
            standby_hits: meter
                .u64_counter("function_runner.standby.hits")
                .with_description("Evaluations that used a standby")
                .build(),
            standby_misses: meter
                .u64_counter("function_runner.standby.misses")
                .with_description("Evaluations without a standby, which started their process")
                .build(),
            standby_suspensions: meter
                .u64_counter("function_runner.standby.suspensions")
                .with_description(
                    "Programs whose standby was suspended: a process ended or wrote before its input arrived",
                )
                .build(),
        }
    })
}

impl Instruments {
    /// Counts an evaluation of a function with standby, by whether a standby was ready.
    pub(crate) fn record_standby(&self, function: &str, is_hit: bool) {
        let counter = if is_hit {
            &self.standby_hits
        } else {
            &self.standby_misses
        };
        counter.add(1, &[KeyValue::new("function", function.to_owned())]);
    }

    /// Counts a program that gets no more standbys.
    pub(crate) fn record_standby_suspension(&self, function: &str) {
        let function = KeyValue::new("function", function.to_owned());
        self.standby_suspensions.add(1, &[function]);
    }
}

impl UpDownCounterGuard {
    /// Adds 1 to a counter until the guard is dropped.
    pub(crate) fn increment(counter: &'static UpDownCounter<i64>) -> Self {
        counter.add(1, &[]);
        Self(counter)
    }
}

impl Drop for UpDownCounterGuard {
    fn drop(&mut self) {
        self.0.add(-1, &[]);
    }
}
