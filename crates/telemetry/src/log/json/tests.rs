use std::{
    io,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tracing_subscriber::{Registry, layer::SubscriberExt};

use super::*;
use crate::log::verbosity::Verbosity;

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the lines that `work` logs at the given level, without their times.
fn lines(level: u8, work: impl FnOnce()) -> Vec<Value> {
    let sink = Sink::default();
    let writer = sink.clone();
    let json = JsonLines::new(move || writer.clone()).with_filter(Verbosity::new(level));
    tracing::subscriber::with_default(Registry::default().with(json), work);
    let bytes = sink.0.lock().unwrap().clone();
    String::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            let time = line.as_object_mut().unwrap().remove("time").unwrap();
            assert!(time.as_str().unwrap().ends_with('Z'), "{time}");
            line
        })
        .collect()
}

#[test]
fn writes_flat_lines_and_keeps_value_types() {
    let logged = lines(2, || {
        tracing::info!(
            target: "runner_service",
            exit_code = 3, share = 0.5, nothing = f64::NAN, cached = true, name = "a \"b\"\n",
            "function {} failed", "x"
        );
    });
    let expected = json!({
        "level": "info", "target": "runner_service", "message": "function x failed",
        "exit_code": 3, "share": 0.5, "nothing": "NaN", "cached": true, "name": "a \"b\"\n",
    });
    assert_eq!(logged, [expected]);
}

#[test]
fn adds_span_fields_to_every_line_within_the_span() {
    let logged = lines(0, || {
        let evaluate = tracing::info_span!(
            target: "runner_service", "evaluate",
            request_id = "r1", function = "outer", outcome = tracing::field::Empty
        );
        let _evaluate = evaluate.enter();
        evaluate.record("outcome", "failed");
        let _run =
            tracing::info_span!(target: "runner_service", "run", function = "inner").entered();
        tracing::error!(target: "runner_service", "no");
    });
    let expected = json!({
        "level": "error", "target": "runner_service", "message": "no",
        "request_id": "r1", "function": "inner", "outcome": "failed",
    });
    assert_eq!(logged, [expected]);
}

#[test]
fn renames_fields_that_collide_with_standard_ones() {
    let logged = lines(2, || {
        tracing::info!(target: "runner_service", level = 9, target = "x", "text");
    });
    assert_eq!(logged[0]["level"], "info");
    assert_eq!(logged[0]["target"], "runner_service");
    assert_eq!(logged[0]["field.level"], 9);
    assert_eq!(logged[0]["field.target"], "x");
}

#[test]
fn logs_an_error_with_its_sources() {
    let error = crate::TelemetryError::Bind {
        address: "localhost:1".to_owned(),
        source: io::Error::other("refused"),
    };
    let logged = lines(2, || {
        let error: &dyn std::error::Error = &error;
        tracing::info!(target: "runner_service", error, "text");
    });
    let text = logged[0]["error"].as_str().unwrap();
    assert!(text.ends_with("PROMETHEUS_PORT): refused"), "{text}");
}

#[test]
fn logs_more_lines_at_each_level() {
    let everything = || {
        tracing::error!(target: "runner_service", "own error");
        tracing::warn!(target: "runner_service", "own warning");
        tracing::info!(target: "runner_service", "own info");
        tracing::debug!(target: "runner_service", "own debug");
        tracing::trace!(target: "runner_service", "own trace");
        tracing::error!(target: "h2", "their error");
        tracing::warn!(target: "h2", "their warning");
        tracing::info!(target: "h2", "their info");
        tracing::debug!(target: "h2", "their debug");
        tracing::trace!(target: "h2", "their trace");
    };
    let own = [
        "own error",
        "own warning",
        "own info",
        "own debug",
        "own trace",
    ];
    let their = [
        "their error",
        "their warning",
        "their info",
        "their debug",
        "their trace",
    ];
    for (level, own_lines, their_lines) in [
        (0, 1, 1),
        (1, 2, 2),
        (2, 3, 2),
        (3, 4, 2),
        (4, 5, 3),
        (5, 5, 5),
        (9, 5, 5),
    ] {
        let logged = lines(level, everything);
        let logged: Vec<_> = logged
            .iter()
            .map(|line| line["message"].as_str().unwrap())
            .collect();
        assert_eq!(
            logged,
            [&own[..own_lines], &their[..their_lines]].concat(),
            "level {level}"
        );
    }
}

#[test]
fn logs_a_repeated_exporter_failure_once() {
    let failing = || {
        for _ in 0..3 {
            tracing::error!(name: "ExportError", target: "opentelemetry_sdk", error = "refused");
        }
    };
    let logged = lines(2, failing);
    assert_eq!(logged.len(), 1);
    assert_eq!(logged[0]["message"], "ExportError");
    assert_eq!(lines(5, failing).len(), 3, "but always at level 5");
}
