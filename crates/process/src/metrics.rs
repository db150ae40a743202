//! Metrics of the engine.
//!
//! Instruments belong to the meter provider that is installed when the first one is used.

use std::sync::OnceLock;

use opentelemetry::{
    KeyValue, global,
    metrics::{Counter, Histogram, UpDownCounter},
};

pub(crate) struct Instruments {
    pub(crate) running: UpDownCounter<i64>,
    pub(crate) queued: UpDownCounter<i64>,
    pub(crate) queue_wait: Histogram<f64>,
    standby_hits: Counter<u64>,
    standby_misses: Counter<u64>,
    standby_suspensions: Counter<u64>,
}

/// One unit of an up-down counter, subtracted when dropped.
pub(crate) struct Gauge(&'static UpDownCounter<i64>);

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
                .with_description("Evaluations waiting for a place to run")
                .build(),
            queue_wait: meter
                .f64_histogram("function_runner.queue.wait")
                .with_unit("s")
                .with_description("How long evaluations waited for a place to run")
                .build(),
            standby_hits: meter
                .u64_counter("function_runner.standby.hits")
                .with_description("Evaluations that found a process ready")
                .build(),
            standby_misses: meter
                .u64_counter("function_runner.standby.misses")
                .with_description("Evaluations that had to start their process")
                .build(),
            standby_suspensions: meter
                .u64_counter("function_runner.standby.suspensions")
                .with_description(
                    "Programs that lost their standby: a process ended or wrote before its input arrived",
                )
                .build(),
        }
    })
}

impl Instruments {
    pub(crate) fn standby(&self, function: &str, hit: bool) {
        let counter = if hit {
            &self.standby_hits
        } else {
            &self.standby_misses
        };
        counter.add(1, &[KeyValue::new("function", function.to_owned())]);
    }

    pub(crate) fn standby_suspended(&self, function: &str) {
        let function = KeyValue::new("function", function.to_owned());
        self.standby_suspensions.add(1, &[function]);
    }
}

impl Gauge {
    pub(crate) fn enter(counter: &'static UpDownCounter<i64>) -> Self {
        counter.add(1, &[]);
        Self(counter)
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.0.add(-1, &[]);
    }
}
