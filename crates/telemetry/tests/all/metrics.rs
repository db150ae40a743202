//! Metrics as a scraper sees them.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::{Method, Request, StatusCode, body::Bytes};
use hyper_util::rt::TokioIo;
use opentelemetry::{KeyValue, global};
use tokio::net::TcpStream;

use crate::child::{log_options, play};

const DOCUMENTED: &str = include_str!("../../../../docs/metrics.md");

/// Records once with every documented instrument.
pub fn record() {
    let meter = global::meter("function-runner");
    let function = || KeyValue::new("function", "ghcr.io/example/set-label:v1");
    let runtime = || KeyValue::new("runtime", "exec");
    let outcome = || KeyValue::new("outcome", "ok");

    let counter = |name| meter.u64_counter(name).build();
    counter("function_runner.evaluations").add(1, &[function(), runtime(), outcome()]);
    counter("function_runner.standby.hits").add(1, &[function()]);
    counter("function_runner.standby.misses").add(1, &[function()]);
    counter("function_runner.config.reloads")
        .add(1, &[KeyValue::new("source", "config"), outcome()]);
    let bytes = meter
        .u64_counter("function_runner.bytes")
        .with_unit("By")
        .build();
    bytes.add(4096, &[KeyValue::new("direction", "in")]);

    let seconds = |name| meter.f64_histogram(name).with_unit("s").build();
    seconds("function_runner.evaluation.duration").record(0.003, &[runtime(), outcome()]);
    seconds("function_runner.queue.wait").record(0.0001, &[]);

    let level = |name| meter.i64_up_down_counter(name).build();
    level("function_runner.running").add(2, &[]);
    level("function_runner.queued").add(3, &[]);
}

/// Scenario: records, and scrapes itself over HTTP.
pub async fn scrape() {
    let telemetry = runner_telemetry::init("telemetry-test", log_options()).expect("a start");
    let address = telemetry.metrics_address().expect("metrics are served");
    assert!(address.ip().is_loopback(), "{address}");
    record();

    let (status, kind, text) = ask(address, Method::GET, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(kind, "text/plain; version=0.0.4");
    let documented = documented_names();
    assert_eq!(documented.len(), 9, "{documented:?}");
    for name in documented {
        assert!(
            text.contains(&format!("# TYPE {name} ")),
            "no {name} in\n{text}"
        );
    }
    for sample in [
        "function_runner_bytes_total{direction=\"in\",otel_scope_name=\"function-runner\"} 4096",
        "function_runner_running{otel_scope_name=\"function-runner\"} 2",
        "function_runner_evaluation_duration_seconds_bucket{outcome=\"ok\",runtime=\"exec\",\
         otel_scope_name=\"function-runner\",le=\"0.0025\"} 0",
        "function_runner_evaluation_duration_seconds_bucket{outcome=\"ok\",runtime=\"exec\",\
         otel_scope_name=\"function-runner\",le=\"0.005\"} 1",
        "function_runner_queue_wait_seconds_bucket{otel_scope_name=\"function-runner\",\
         le=\"0.0005\"} 1",
        "function_runner_queue_wait_seconds_bucket{otel_scope_name=\"function-runner\",\
         le=\"300\"} 1",
        "service_name=\"telemetry-test\"",
    ] {
        assert!(text.contains(sample), "no {sample} in\n{text}");
    }

    let (status, ..) = ask(address, Method::GET, "/").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, ..) = ask(address, Method::POST, "/metrics").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);

    telemetry.shutdown().await;
    let refused = TcpStream::connect(address).await;
    assert!(refused.is_err(), "the server outlived its telemetry");
}

/// The Prometheus names in the documentation.
fn documented_names() -> Vec<&'static str> {
    let mut names: Vec<_> = DOCUMENTED
        .split('`')
        .filter(|word| {
            word.starts_with("function_runner_")
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

async fn ask(address: SocketAddr, method: Method, path: &str) -> (StatusCode, String, String) {
    let stream = TcpStream::connect(address)
        .await
        .expect("the server accepts");
    let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP/1");
    tokio::spawn(connection);
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", address.to_string())
        .body(Empty::<Bytes>::new())
        .expect("a request");
    let response = client.send_request(request).await.expect("an answer");
    let status = response.status();
    let kind = response
        .headers()
        .get("content-type")
        .map(|kind| kind.to_str().expect("ASCII").to_owned())
        .unwrap_or_default();
    let body = response
        .into_body()
        .collect()
        .await
        .expect("a body")
        .to_bytes();
    (
        status,
        kind,
        String::from_utf8(body.to_vec()).expect("UTF-8"),
    )
}

#[test]
fn a_scraper_finds_every_documented_metric() {
    play(
        "scrape",
        2,
        &[
            ("OTEL_METRICS_EXPORTER", "prometheus"),
            ("OTEL_EXPORTER_PROMETHEUS_PORT", "0"),
        ],
    );
}

#[test]
fn the_host_may_be_an_address() {
    play(
        "scrape",
        2,
        &[
            ("OTEL_METRICS_EXPORTER", "prometheus"),
            ("OTEL_EXPORTER_PROMETHEUS_HOST", "127.0.0.1"),
            ("OTEL_EXPORTER_PROMETHEUS_PORT", "0"),
        ],
    );
}
