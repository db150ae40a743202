//! Tests of the server's metrics.

use runner_proto::health::HealthCheckRequest;
use runner_test_support::{LIST, error_of, free_address, list_of, metrics_page};
use tonic::Code;

use crate::support::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn counts_calls_by_method_and_status() {
    let metrics = free_address();
    let runner = Setup::with("cat", "cat")
        .environment("OTEL_METRICS_EXPORTER", "prometheus")
        .environment("OTEL_EXPORTER_PROMETHEUS_HOST", "127.0.0.1")
        .environment("OTEL_EXPORTER_PROMETHEUS_PORT", metrics.port().to_string())
        .start()
        .await;
    let client = runner.client().await;
    assert_eq!(list_of(client.call("cat").await), LIST);
    assert_eq!(list_of(client.call("cat").await), LIST);
    error_of(client.call("other").await, Code::NotFound);
    let check = HealthCheckRequest::default();
    client.health().check(check).await.unwrap();

    let page = metrics_page(metrics).await;
    for (method, code, count) in [
        ("evaluator.FunctionEvaluator/EvaluateFunction", "OK", 2),
        (
            "evaluator.FunctionEvaluator/EvaluateFunction",
            "NOT_FOUND",
            1,
        ),
        ("grpc.health.v1.Health/Check", "OK", 1),
    ] {
        let labels = [
            format!("rpc_method=\"{method}\""),
            format!("rpc_response_status_code=\"{code}\""),
            "rpc_system_name=\"grpc\"".to_owned(),
        ];
        let counted = page.lines().any(|line| {
            line.starts_with("rpc_server_call_duration_seconds_count{")
                && labels.iter().all(|label| line.contains(label))
                && line.ends_with(&format!(" {count}"))
        });
        assert!(counted, "{method} {code}: {page}");
    }
}
