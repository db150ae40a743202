//! What stops telemetry from starting, in the words a person reads.

use std::net::{Ipv4Addr, TcpListener};

use crate::child::{log_options, play};

/// Scenario: prints why telemetry does not start.
pub async fn start() {
    let error = runner_telemetry::init("telemetry-test", log_options()).expect_err("a refusal");
    eprintln!("{error}");
}

/// Scenario: the same outside of a runtime.
pub fn start_without_a_runtime() {
    let error = runner_telemetry::init("telemetry-test", log_options()).expect_err("a refusal");
    eprintln!("{error}");
}

/// Scenario: a second start in one process.
pub fn start_twice() {
    let _first = runner_telemetry::init("telemetry-test", log_options()).expect("a first start");
    start_without_a_runtime();
}

#[test]
fn a_value_without_meaning_is_a_warning() {
    let ended = play("forward", 2, &[("OTEL_METRICS_EXPORTER", "statsd")]);
    let warning = ended.line(
        "OTEL_METRICS_EXPORTER: \"statsd\" is not supported and is ignored; \
         supported: prometheus, otlp, console, none",
    );
    assert_eq!(warning["level"], "warn");
}

#[test]
fn a_busy_port_is_named() {
    let holder = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let ended = play(
        "start",
        2,
        &[
            ("OTEL_METRICS_EXPORTER", "prometheus"),
            ("OTEL_EXPORTER_PROMETHEUS_PORT", &port),
        ],
    );
    let expected = format!(
        "cannot serve metrics on localhost:{port} (OTEL_EXPORTER_PROMETHEUS_HOST, \
         OTEL_EXPORTER_PROMETHEUS_PORT): Address already in use"
    );
    assert!(ended.stderr.starts_with(&expected), "{}", ended.stderr);
}

#[test]
fn exporters_say_that_they_need_a_runtime() {
    for variable in ["OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER"] {
        let ended = play("start without a runtime", 2, &[(variable, "otlp")]);
        assert_eq!(
            ended.stderr,
            "exporters of metrics and traces need a Tokio runtime\n"
        );
    }
}

#[test]
fn one_process_has_one_telemetry() {
    let ended = play("start twice", 2, &[]);
    assert_eq!(
        ended.stderr,
        "telemetry is already running in this process\n"
    );
}
