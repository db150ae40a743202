//! Tests of exports over gRPC, including collectors that are unreachable.

use std::{
    net::{Ipv4Addr, TcpListener},
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use runner_telemetry::propagation;
use runner_test_support::{
    free_address,
    otlp::{Collector, attribute, hex},
};

use crate::{
    child::{Log, log_options, play},
    metrics,
};

const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Scenario: creates the spans of one evaluation, as the service does.
pub async fn evaluate() {
    let telemetry = runner_telemetry::init("telemetry-test", log_options()).expect("a start");
    metrics::record();

    let evaluate = tracing::info_span!(
        target: "runner_service", "evaluate",
        otel.kind = "server", request_id = "r-1", function = "set-label"
    );
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", HeaderValue::from_static(CALLER));
    propagation::set_parent(&evaluate, &headers);
    evaluate.in_scope(|| {
        tracing::info_span!(target: "runner_process", "queue").in_scope(|| {});
        tracing::info_span!(target: "runner_process", "spawn").in_scope(|| {});
        tracing::debug_span!(target: "runner_process", "run").in_scope(|| {
            tracing::info!(target: "runner_process", "the function runs");
            tracing::trace!(target: "runner_process", "a resource list");
            tracing::info_span!(target: "h2", "a dependency's span").in_scope(|| {});
        });
    });
    drop(evaluate);
    telemetry.shutdown().await;
}

/// Scenario: records far more spans than any queue holds, then shuts down.
pub async fn flood() {
    let telemetry = runner_telemetry::init("telemetry-test", log_options()).expect("a start");
    metrics::record();
    let start = Instant::now();
    for _ in 0..20_000 {
        tracing::info_span!(target: "runner_service", "evaluate").in_scope(|| {});
    }
    let spent = start.elapsed();
    assert!(spent < Duration::from_secs(10), "spans took {spent:?}");

    let start = Instant::now();
    telemetry.shutdown().await;
    let spent = start.elapsed();
    assert!(spent < Duration::from_secs(5), "the end took {spent:?}");
}

/// Runs the scenario "evaluate" with spans exported to the collector over gRPC.
fn export_spans(collector: &Collector, log_level: u8, more: &[(&str, &str)]) -> Log {
    let endpoint = collector.endpoint();
    let mut variables = vec![
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ];
    variables.extend(more);
    play("evaluate", log_level, &variables)
}

#[test]
fn exports_the_spans_of_an_evaluation() {
    let collector = Collector::start();
    let ended = export_spans(
        &collector,
        2,
        &[
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue%20sky"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ],
    );

    let spans = collector.spans();
    let span = |name: &str| {
        let mut found = spans.iter().filter(|(_, span)| span.name == name);
        let (service, span) = found.next().unwrap_or_else(|| panic!("no span {name:?}"));
        assert!(found.next().is_none(), "two spans {name:?}");
        assert_eq!(service, "telemetry-test");
        span.clone()
    };
    let evaluate = span("evaluate");
    assert_eq!(hex(&evaluate.trace_id), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(hex(&evaluate.parent_span_id), "b7ad6b7169203331");
    assert_eq!(attribute(&evaluate.attributes, "request_id"), "r-1");
    for name in ["queue", "spawn", "run"] {
        assert_eq!(span(name).parent_span_id, evaluate.span_id, "{name}");
        assert_eq!(span(name).trace_id, evaluate.trace_id, "{name}");
    }
    let events: Vec<_> = span("run")
        .events
        .into_iter()
        .map(|event| event.name)
        .collect();
    assert_eq!(events, ["the function runs"], "no resource lists");
    assert_eq!(spans.len(), 4, "and none of a dependency");

    assert_eq!(
        collector.trace_headers().get("x-tenant").unwrap(),
        "blue sky"
    );
    assert_eq!(
        collector.trace_headers().get("grpc-encoding").unwrap(),
        "gzip"
    );

    let line = ended.line("the function runs");
    assert_eq!(line["trace_id"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(line["request_id"], "r-1");
}

#[test]
fn does_not_trace_the_exporter_at_log_level_5() {
    let collector = Collector::start();
    let ended = export_spans(&collector, 5, &[]);
    let own_connection =
        |line: &serde_json::Value| line["target"].as_str().unwrap().starts_with("h2");
    assert!(
        ended.lines().iter().any(own_connection),
        "level 5 shows dependencies"
    );
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn traces_do_not_depend_on_the_log_level() {
    let collector = Collector::start();
    let ended = export_spans(&collector, 0, &[]);
    assert_eq!(ended.stderr, "");
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn exports_only_sampled_spans() {
    let collector = Collector::start();
    export_spans(&collector, 2, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    assert_eq!(collector.spans().len(), 0);
}

#[test]
fn uses_the_service_name_of_the_environment() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    play(
        "evaluate",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_SERVICE_NAME", "porch-runner"),
        ],
    );
    assert!(
        collector
            .spans()
            .iter()
            .all(|(service, _)| service == "porch-runner")
    );
    assert_eq!(collector.spans().len(), 4);
}

#[test]
fn exports_metrics_at_shutdown() {
    let collector = Collector::start();
    let endpoint = collector.endpoint();
    play(
        "evaluate",
        2,
        &[
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ],
    );
    let metrics = collector.metrics();
    let documented = metrics::documented().len() + metrics::of_the_process().len();
    assert_eq!(metrics.len(), documented);
    let duration = metrics
        .iter()
        .find(|metric| metric.name == "function_runner.evaluation.duration")
        .expect("names are as the instruments have them");
    assert_eq!(duration.unit, "s");
    let Some(Data::Histogram(histogram)) = &duration.data else {
        panic!("{duration:?}")
    };
    let bounds = &histogram.data_points[0].explicit_bounds;
    assert_eq!(
        (bounds.first(), bounds.last()),
        (Some(&0.0005), Some(&300.0))
    );
    assert_eq!(collector.spans().len(), 0, "traces were not asked for");
}

#[test]
fn sends_nothing_if_the_sdk_is_disabled() {
    let collector = Collector::start();
    let ended = export_spans(&collector, 2, &[("OTEL_SDK_DISABLED", "true")]);
    assert_eq!(collector.spans().len(), 0);
    assert!(ended.line("the function runs").get("trace_id").is_none());
}

#[test]
fn logs_a_few_lines_for_an_unreachable_collector() {
    // Connections to a free port are refused.
    let address = free_address();
    for protocol in ["grpc", "http/protobuf"] {
        without_a_collector(&address.to_string(), protocol);
    }
}

#[test]
fn logs_a_few_lines_for_a_collector_that_never_answers() {
    // The kernel completes connections that are never accepted.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for protocol in ["grpc", "http/protobuf"] {
        without_a_collector(&listener.local_addr().unwrap().to_string(), protocol);
    }
}

fn without_a_collector(endpoint: &str, protocol: &str) {
    let ended = play(
        "flood",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_BSP_SCHEDULE_DELAY", "10"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "10"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "100"),
        ],
    );
    let lines = ended.lines();
    assert!(!lines.is_empty(), "somebody should be told");
    assert!(lines.len() <= 8, "{}", ended.stderr);
}
