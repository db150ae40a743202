//! Tests of the server's metrics.

use std::net::{Ipv4Addr, TcpListener};

use runner_proto::health::HealthCheckRequest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tonic::Code;

use crate::support::{LIST, Setup, error_of, list_of};

async fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
        .await
        .unwrap();
    let request = b"GET /metrics HTTP/1.1\r\nHost: runner\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_calls_by_method_and_status() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let runner = Setup::with("cat", "cat")
        .environment("OTEL_METRICS_EXPORTER", "prometheus")
        .environment("OTEL_EXPORTER_PROMETHEUS_HOST", "127.0.0.1")
        .environment("OTEL_EXPORTER_PROMETHEUS_PORT", port.to_string())
        .start()
        .await;
    let client = runner.client().await;
    assert_eq!(list_of(client.call("cat").await), LIST);
    assert_eq!(list_of(client.call("cat").await), LIST);
    error_of(client.call("other").await, Code::NotFound);
    let check = HealthCheckRequest::default();
    client.health().check(check).await.unwrap();

    let page = scrape(port).await;
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
