//! Tests of trace propagation through the process.

use http::{HeaderMap, HeaderName, HeaderValue};
use runner_telemetry::propagation;
use runner_test_support::free_address;
use serde_json::Value;

use crate::child::{log_options, play};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Variables with the name and value of a header to send instead of `traceparent`.
const HEADER: [&str; 2] = ["TELEMETRY_HEADER", "TELEMETRY_HEADER_VALUE"];

/// Scenario: receives a request and sends another one from a child span.
pub async fn forward() {
    let _telemetry = runner_telemetry::init("telemetry-test", log_options()).expect("a start");
    let mut incoming = HeaderMap::new();
    match HEADER.map(|variable| std::env::var(variable).ok()) {
        [Some(name), Some(value)] => {
            let name: HeaderName = name.parse().expect("a name");
            incoming.insert(name, value.parse().expect("a value"));
        }
        _ => {
            incoming.insert("traceparent", HeaderValue::from_static(CALLER));
        }
    }
    incoming.insert("tracestate", HeaderValue::from_static("vendor=1"));
    incoming.insert("baggage", HeaderValue::from_static("tenant=blue"));

    let evaluate = tracing::info_span!(target: "runner_service", "evaluate");
    let _entered = evaluate.enter();
    propagation::set_parent(&evaluate, &incoming);
    let run = tracing::info_span!(target: "runner_pod", "run");
    let mut outgoing = HeaderMap::new();
    propagation::inject(&run, &mut outgoing);

    let sent = |name: &str| {
        outgoing
            .get(name)
            .map(|value| value.to_str().expect("ASCII"))
    };
    tracing::info!(
        target: "runner_service",
        b3 = sent("b3"), b3_trace = sent("x-b3-traceid"), b3_span = sent("x-b3-spanid"),
        b3_sampled = sent("x-b3-sampled"), jaeger = sent("uber-trace-id"), "other forms"
    );
    tracing::info!(
        target: "runner_service",
        parent = sent("traceparent"), state = sent("tracestate"), baggage = sent("baggage"),
        "forwarded"
    );

    let lonely = tracing::info_span!(target: "runner_service", parent: None, "lonely");
    propagation::set_parent(&lonely, &HeaderMap::new());
    let mut outgoing = HeaderMap::new();
    propagation::inject(&lonely, &mut outgoing);
    tracing::info!(target: "runner_service", names = outgoing.len(), "without a caller");
}

fn forwarded(variables: &[(&str, &str)]) -> (Value, Value) {
    let ended = play("forward", 2, variables);
    (ended.line("forwarded"), ended.line("without a caller"))
}

#[test]
fn continues_the_trace_from_its_own_span() {
    // The scenario ends before anything is sent.
    let endpoint = free_address().to_string();
    let (line, lonely) = forwarded(&[
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
    ]);
    let parent = line["parent"].as_str().unwrap();
    assert!(
        parent.starts_with(&format!("00-{TRACE}-")) && parent.ends_with("-01"),
        "{parent}"
    );
    assert_ne!(parent, CALLER, "the parent is a span of this process");
    assert_eq!(line["state"], "vendor=1");
    assert_eq!(line["baggage"], "tenant=blue");
    assert!(
        lonely["names"].as_u64().unwrap() > 0,
        "a trace may start here"
    );
}

#[test]
fn passes_a_trace_through_unchanged_without_an_exporter() {
    for variables in [
        &[][..],
        &[
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_EXPORTER", "otlp"),
        ],
    ] {
        let (line, lonely) = forwarded(variables);
        assert_eq!(line["parent"], CALLER);
        assert_eq!(line["state"], "vendor=1");
        assert_eq!(line["baggage"], "tenant=blue");
        assert_eq!(lonely["names"], 0);
    }
}

#[test]
fn uses_only_the_configured_propagators() {
    let (line, _) = forwarded(&[("OTEL_PROPAGATORS", "tracecontext")]);
    assert_eq!(line["parent"], CALLER);
    assert!(line.get("baggage").is_none());

    let (line, _) = forwarded(&[("OTEL_PROPAGATORS", "baggage")]);
    assert!(line.get("parent").is_none());
    assert_eq!(line["baggage"], "tenant=blue");

    let (line, _) = forwarded(&[("OTEL_PROPAGATORS", "none")]);
    assert!(line.get("parent").is_none() && line.get("baggage").is_none());
}

#[test]
fn propagates_zipkin_and_jaeger_headers() {
    const SPAN: &str = "b7ad6b7169203331";
    let b3 = format!("{TRACE}-{SPAN}-1");
    let jaeger = format!("{TRACE}:{SPAN}:0:1");
    for (propagator, header, value, sent) in [
        ("b3", "b3", &b3, "b3"),
        ("jaeger", "uber-trace-id", &jaeger, "jaeger"),
    ] {
        let ended = play(
            "forward",
            2,
            &[
                ("OTEL_PROPAGATORS", propagator),
                (HEADER[0], header),
                (HEADER[1], value),
            ],
        );
        assert_eq!(ended.line("other forms")[sent], **value);
    }
    let ended = play(
        "forward",
        2,
        &[
            ("OTEL_PROPAGATORS", "b3multi"),
            (HEADER[0], "b3"),
            (HEADER[1], &b3),
        ],
    );
    let line = ended.line("other forms");
    assert_eq!(line["b3_trace"], TRACE);
    assert_eq!(line["b3_span"], SPAN);
    assert_eq!(line["b3_sampled"], "1");
}
