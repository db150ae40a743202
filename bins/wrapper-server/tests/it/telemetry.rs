//! Tests of the `OTEL_*` variables.

#[path = "../../../../crates/telemetry/tests/all/collector.rs"]
#[allow(dead_code, reason = "the telemetry crate's tests use all of it")]
mod collector;

use std::net::{Ipv4Addr, TcpListener};

use collector::Collector;
use runner_proto::evaluator::{
    EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient,
};
use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::transport::Endpoint;

use crate::support::{LIST, Setup, eventually, list_of};

#[tokio::test(flavor = "multi_thread")]
async fn serves_metrics() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let wrapper = Setup::script("cat")
        .env("OTEL_METRICS_EXPORTER", "prometheus")
        .env("OTEL_EXPORTER_PROMETHEUS_HOST", "127.0.0.1")
        .env("OTEL_EXPORTER_PROMETHEUS_PORT", &port.to_string())
        .start()
        .await;
    assert_eq!(
        list_of(wrapper.client().await.call("set-label").await),
        LIST
    );
    let mut scrape = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: wrapper\r\nConnection: close\r\n\r\n";
    scrape.write_all(request).await.unwrap();
    let mut page = String::new();
    scrape.read_to_string(&mut page).await.unwrap();
    for start in [
        "rpc_server_call_duration_seconds_count{",
        "process_resident_memory_bytes{",
        "target_info{",
    ] {
        assert!(page.lines().any(|line| line.starts_with(start)), "{page}");
    }
    let counted = page
        .lines()
        .find(|line| line.starts_with("function_runner_evaluations_total{"))
        .unwrap_or_else(|| panic!("{page}"));
    assert!(counted.ends_with(" 1"), "{counted}");
    for label in [
        "function=\"set-label\"",
        "runtime=\"wrapper\"",
        "outcome=\"ok\"",
    ] {
        assert!(counted.contains(label), "{counted}");
    }
}

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

#[test]
fn joins_the_trace_of_the_caller() {
    let parent = format!("00-{TRACE}-{CALLER}-01");
    joins_a_trace("tracecontext,baggage", "traceparent", &parent);
}

#[test]
fn joins_a_trace_in_b3_and_jaeger_headers() {
    joins_a_trace("b3", "b3", &format!("{TRACE}-{CALLER}-1"));
    joins_a_trace("jaeger", "uber-trace-id", &format!("{TRACE}:{CALLER}:0:1"));
}

/// Calls a wrapper with one trace header and checks that the exported span belongs to that trace.
///
/// Must be called outside of a runtime: the collector has its own runtime, which cannot be dropped
/// inside another.
fn joins_a_trace(propagators: &str, header: &'static str, value: &str) {
    let collector = Collector::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut wrapper = Setup::script("cat")
            .env("OTEL_TRACES_EXPORTER", "otlp")
            .env("OTEL_PROPAGATORS", propagators)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint())
            .env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
            .start()
            .await;
        let endpoint = Endpoint::from_shared(format!("http://{}", wrapper.address)).unwrap();
        let mut client = FunctionEvaluatorClient::new(endpoint.connect().await.unwrap());
        let mut request = tonic::Request::new(EvaluateFunctionRequest {
            resource_list: LIST.into(),
            ..EvaluateFunctionRequest::default()
        });
        request
            .metadata_mut()
            .insert(header, value.parse().unwrap());
        client.evaluate_function(request).await.unwrap();
        drop(client);
        wrapper.signal(Signal::TERM);
        assert_eq!(wrapper.ended().await.code(), Some(0));
        let (service, span) = eventually("the span of the evaluation", || {
            let mut spans = collector.spans().into_iter();
            spans.find(|(_, span)| span.name == "evaluate")
        })
        .await;
        assert_eq!(service, "wrapper-server");
        assert_eq!(hex(&span.trace_id), TRACE);
        assert_eq!(hex(&span.parent_span_id), CALLER);
    });
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
