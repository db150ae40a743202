//! Tests of the log lines on standard error.

use runner_telemetry::LogFormat;

use crate::child::{log_options_as, play};

/// Scenario: logs a line of each level, without a runtime.
pub fn log(format: LogFormat) {
    let _telemetry =
        runner_telemetry::init("telemetry-test", log_options_as(format)).expect("a start");
    let span = tracing::info_span!(target: "runner_service", "evaluate", request_id = "r-1");
    span.in_scope(|| {
        tracing::error!(target: "runner_service", "an error");
        tracing::info!(target: "runner_service", function = "f", "an info");
        tracing::debug!(target: "runner_service", "a health check");
    });
}

#[test]
fn writes_json_lines_to_standard_error() {
    let ended = play("log", 2, &[]);
    let line = ended.line("an info");
    assert_eq!(line["level"], "info");
    assert_eq!(line["target"], "runner_service");
    assert_eq!(line["function"], "f");
    assert_eq!(line["request_id"], "r-1");
    assert!(line["time"].is_string());
    assert!(line.get("trace_id").is_none(), "nothing is traced");
    assert_eq!(ended.lines().len(), 2);
}

#[test]
fn level_0_keeps_the_request_id_of_errors() {
    let ended = play("log", 0, &[]);
    assert_eq!(ended.lines().len(), 1);
    assert_eq!(ended.line("an error")["request_id"], "r-1");
}

#[test]
fn level_3_adds_health_checks() {
    assert_eq!(play("log", 3, &[]).line("a health check")["level"], "debug");
}

#[test]
fn writes_plain_text_without_a_terminal() {
    let ended = play("log as text", 2, &[]);
    assert!(!ended.stderr.contains('\x1b'), "{:?}", ended.stderr);
    let line = ended
        .stderr
        .lines()
        .find(|line| line.contains("an info"))
        .expect("the line");
    for part in [
        " INFO ",
        "evaluate{request_id=\"r-1\"}",
        "runner_service",
        "function=\"f\"",
    ] {
        assert!(line.contains(part), "no {part:?} in {line:?}");
    }
}
