//! Tests of exports over HTTP, the default protocol.

use runner_test_support::{free_address, otlp::HttpCollector};

use crate::{child::play, metrics};

#[test]
fn sends_spans_and_metrics_to_their_paths() {
    let collector = HttpCollector::start();
    let endpoint = format!("{}/otlp/", collector.endpoint());
    let ended = play(
        "evaluate",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=blue%20sky"),
        ],
    );
    let exports = collector.exports();
    for export in &exports {
        assert_eq!(export.header("content-type"), "application/x-protobuf");
        assert_eq!(export.header("x-tenant"), "blue sky");
    }
    let at = |path: &str| {
        let mut found = exports.iter().filter(|export| export.path == path);
        let export = found.next().unwrap_or_else(|| panic!("nothing at {path}"));
        assert!(found.next().is_none(), "two exports at {path}");
        export
    };
    assert_eq!(at("/otlp/v1/traces").spans().len(), 4);
    assert_eq!(
        at("/otlp/v1/metrics").metrics().len(),
        metrics::documented().len() + metrics::of_the_process().len()
    );
    assert_eq!(exports.len(), 2);
    assert_eq!(ended.lines().len(), 1, "{}", ended.stderr);
}

#[test]
fn uses_a_signal_specific_endpoint_unchanged() {
    let collector = HttpCollector::start();
    let traces = format!("{}/spans?tenant=blue", collector.endpoint());
    let metrics = collector.endpoint();
    play(
        "evaluate",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &traces),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", &metrics),
        ],
    );
    let mut paths = collector.paths();
    paths.sort();
    assert_eq!(paths, ["/", "/spans?tenant=blue"]);
}

#[test]
fn compresses_exports_if_configured() {
    let collector = HttpCollector::start();
    play(
        "evaluate",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ],
    );
    let exports = collector.exports();
    assert_eq!(exports[0].header("content-encoding"), "gzip");
    assert_eq!(exports[0].spans().len(), 4);
}

#[test]
fn exports_from_a_single_threaded_runtime() {
    let collector = HttpCollector::start();
    play(
        "evaluate on one thread",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_METRICS_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
        ],
    );
    let mut paths = collector.paths();
    paths.sort();
    assert_eq!(paths, ["/v1/metrics", "/v1/traces"]);
}

#[test]
fn does_not_trace_the_http_client_at_log_level_5() {
    let collector = HttpCollector::start();
    play(
        "evaluate",
        5,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
        ],
    );
    let exports = collector.exports();
    assert_eq!(exports.len(), 1);
    assert_eq!(exports[0].spans().len(), 4);
}

#[test]
fn logs_why_the_collector_was_not_reached() {
    // Connections to a free port are refused.
    let address = free_address();
    let ended = play(
        "evaluate",
        2,
        &[
            ("OTEL_TRACES_EXPORTER", "otlp"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &address.to_string()),
        ],
    );
    let error = ended.line("the collector was not reached")["error"].to_string();
    assert!(error.contains("Connection refused"), "{error}");
}
