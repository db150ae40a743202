//! Exports over HTTP, which is what an unset protocol means.

use std::net::{Ipv4Addr, TcpListener};

use crate::{child::play, http_collector::HttpCollector, metrics};

#[test]
fn spans_and_metrics_arrive_at_their_paths() {
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
fn a_signals_own_endpoint_is_taken_as_it_is() {
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
fn exports_are_compressed_where_asked_for() {
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
fn a_process_of_one_thread_exports_too() {
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
fn a_talkative_log_does_not_trace_the_client_itself() {
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
fn the_log_says_why_a_collector_was_not_reached() {
    // Bound and closed again, so nothing listens there.
    let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .unwrap()
        .local_addr()
        .unwrap();
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
