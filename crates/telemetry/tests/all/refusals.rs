//! Tests of the errors that prevent telemetry from starting.

use std::net::{Ipv4Addr, TcpListener};

use crate::child::{log_options, play};

/// Scenario: prints the error of starting telemetry.
pub async fn start() {
    let error = runner_telemetry::init("telemetry-test", log_options()).expect_err("a refusal");
    eprintln!("{error}");
}

/// Scenario: prints the error of starting telemetry outside of a runtime.
pub fn start_without_a_runtime() {
    let error = runner_telemetry::init("telemetry-test", log_options()).expect_err("a refusal");
    eprintln!("{error}");
}

/// Scenario: prints the error of starting telemetry a second time.
pub fn start_twice() {
    let _first = runner_telemetry::init("telemetry-test", log_options()).expect("a first start");
    start_without_a_runtime();
}

#[test]
fn warns_about_an_unsupported_value() {
    let ended = play("forward", 2, &[("OTEL_METRICS_EXPORTER", "statsd")]);
    let warning = ended.line(
        "OTEL_METRICS_EXPORTER: \"statsd\" is not supported and is ignored; \
         supported: prometheus, otlp, console, none",
    );
    assert_eq!(warning["level"], "warn");
}

#[test]
fn names_a_port_that_is_in_use() {
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
fn reports_that_exporters_need_a_runtime() {
    for variable in ["OTEL_METRICS_EXPORTER", "OTEL_TRACES_EXPORTER"] {
        let ended = play("start without a runtime", 2, &[(variable, "otlp")]);
        assert_eq!(
            ended.stderr,
            "exporters of metrics and traces need a Tokio runtime\n"
        );
    }
}

#[test]
fn rejects_a_second_start() {
    let ended = play("start twice", 2, &[]);
    assert_eq!(
        ended.stderr,
        "telemetry is already running in this process\n"
    );
}
