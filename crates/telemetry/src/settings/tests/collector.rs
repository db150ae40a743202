//! Tests of the collector settings: accepted and rejected values of the variables.

use std::time::Duration;

use super::*;

const TRACES: (&str, &str) = ("OTEL_TRACES_EXPORTER", "otlp");
const METRICS: (&str, &str) = ("OTEL_METRICS_EXPORTER", "otlp");

/// Returns the collectors of metrics and of traces.
fn collectors(set: &[(&str, &str)]) -> [Collector; 2] {
    let settings = read(&[&[METRICS, TRACES], set].concat());
    match (settings.metrics, settings.traces) {
        (MetricsExporter::Otlp(metrics), TracesExporter::Otlp(traces)) => [*metrics, *traces],
        other => panic!("{other:?}"),
    }
}

fn endpoints(set: &[(&str, &str)]) -> [String; 2] {
    collectors(set).map(|collector| collector.endpoint.to_string())
}

#[test]
fn uses_http_to_a_local_collector_by_default() {
    for set in [&[][..], &[("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")]] {
        let [metrics, traces] = collectors(set);
        assert_eq!(metrics.endpoint, "http://localhost:4318/v1/metrics");
        assert_eq!(traces.endpoint, "http://localhost:4318/v1/traces");
        for collector in [metrics, traces] {
            assert_eq!(collector.protocol, Protocol::HttpProtobuf);
            assert_eq!(collector.timeout, Duration::from_secs(10));
        }
    }
}

#[test]
fn uses_port_4317_and_no_path_for_grpc() {
    for collector in collectors(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]) {
        assert_eq!(collector.protocol, Protocol::Grpc);
        assert_eq!(collector.endpoint, "http://localhost:4317/");
    }
}

#[test]
fn appends_the_signal_path_to_the_common_endpoint() {
    for common in ["http://c.example.com/otlp", "http://c.example.com/otlp/"] {
        assert_eq!(
            endpoints(&[("OTEL_EXPORTER_OTLP_ENDPOINT", common)]),
            [
                "http://c.example.com/otlp/v1/metrics",
                "http://c.example.com/otlp/v1/traces"
            ]
        );
    }
}

#[test]
fn uses_a_signal_specific_endpoint_unchanged() {
    let own = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c.example.com"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://t.example.com/spans?a=b",
        ),
    ];
    assert_eq!(
        endpoints(&own),
        [
            "http://c.example.com/v1/metrics",
            "http://t.example.com/spans?a=b"
        ]
    );
    let without_a_path = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "t.example.com:4318");
    assert_eq!(
        endpoints(&[without_a_path])[1],
        "http://t.example.com:4318/"
    );
}

#[test]
fn prefers_the_signal_specific_variable() {
    let [metrics, traces] = collectors(&[
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "500"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "700"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c.example.com:4317"),
    ]);
    assert_eq!(metrics.protocol, Protocol::HttpProtobuf);
    assert_eq!(metrics.timeout, Duration::from_millis(500));
    assert_eq!(metrics.endpoint, "http://c.example.com:4317/v1/metrics");
    assert_eq!(traces.protocol, Protocol::Grpc);
    assert_eq!(traces.timeout, Duration::from_millis(700));
    assert_eq!(traces.endpoint, "http://c.example.com:4317/");
}

#[cfg(feature = "tls")]
#[test]
fn uses_tls_according_to_the_scheme_or_else_insecure() {
    for (endpoint, insecure, tls) in [
        ("https://c.example.com", "", true),
        ("https://c.example.com", "true", true),
        ("http://c.example.com", "false", false),
        ("c.example.com:4318", "", false),
        ("c.example.com:4318", "true", false),
        ("c.example.com:4318", "false", true),
    ] {
        let set = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
            ("OTEL_EXPORTER_OTLP_INSECURE", insecure),
        ];
        for collector in collectors(&set) {
            assert_eq!(collector.tls.is_some(), tls, "{set:?}");
            let scheme = if tls { "https" } else { "http" };
            assert_eq!(collector.endpoint.scheme_str(), Some(scheme), "{set:?}");
        }
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn rejects_https_without_tls_support() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example.com");
    for set in [
        &[TRACES, endpoint][..],
        &[TRACES, endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
    ] {
        let warning = warning(set);
        assert!(warning.starts_with(endpoint.0), "{warning}");
        assert!(warning.contains("TLS, which is not supported"), "{warning}");
    }
}

#[test]
fn names_the_variable_of_an_unusable_value() {
    for (variable, value, hint) in [
        (
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "http/json",
            "supported: http/protobuf, grpc",
        ),
        (
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
            "thrift",
            "supported: http/protobuf, grpc",
        ),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "snappy", "none"),
        ("OTEL_EXPORTER_OTLP_INSECURE", "perhaps", "true, false"),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "ftp://c.example.com",
            "http://host:port",
        ),
        (
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://no host",
            "not a usable address",
        ),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "not a usable number"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "greater than 0"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "-1", "not a usable number"),
    ] {
        let warning = warning(&[TRACES, (variable, value)]);
        assert!(warning.starts_with(&format!("{variable}: ")), "{warning}");
        assert!(warning.contains(hint), "{warning}");
    }
    let interval = ("OTEL_METRIC_EXPORT_INTERVAL", "often");
    assert!(
        warning(&[METRICS, interval]).starts_with(interval.0),
        "the interval is checked"
    );
}

#[test]
fn reports_a_malformed_header_without_its_text() {
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "tenant=a,s3cret");
    assert_eq!(
        warning(&[TRACES, headers]),
        "OTEL_EXPORTER_OTLP_HEADERS: entry 2 is not of the form key=value"
    );
}
