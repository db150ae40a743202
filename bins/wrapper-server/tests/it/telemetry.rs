//! Tests of the `OTEL_*` variables.

use runner_proto::evaluator::{
    EvaluateFunctionRequest, function_evaluator_client::FunctionEvaluatorClient,
};
use runner_test_support::{
    LIST, eventually, free_address, list_of, metrics_page,
    otlp::{Collector, hex},
};
use rustix::process::Signal;
use tonic::transport::Endpoint;

use crate::support::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn serves_metrics() {
    let metrics = free_address();
    let wrapper = Setup::script("cat")
        .env("OTEL_METRICS_EXPORTER", "prometheus")
        .env("OTEL_EXPORTER_PROMETHEUS_HOST", "127.0.0.1")
        .env("OTEL_EXPORTER_PROMETHEUS_PORT", &metrics.port().to_string())
        .start()
        .await;
    assert_eq!(
        list_of(wrapper.client().await.call("set-label").await),
        LIST
    );
    let page = metrics_page(metrics).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn joins_the_trace_of_the_caller() {
    let parent = format!("00-{TRACE}-{CALLER}-01");
    joins_a_trace("tracecontext,baggage", "traceparent", &parent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn joins_a_trace_in_b3_and_jaeger_headers() {
    joins_a_trace("b3", "b3", &format!("{TRACE}-{CALLER}-1")).await;
    let jaeger = format!("{TRACE}:{CALLER}:0:1");
    joins_a_trace("jaeger", "uber-trace-id", &jaeger).await;
}

/// Calls a wrapper with one trace header and checks that the exported span belongs to that trace.
async fn joins_a_trace(propagators: &str, header: &'static str, value: &str) {
    let collector = Collector::start();
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
}
