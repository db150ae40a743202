//! Tests of metrics served to a scraper.

use std::net::SocketAddr;

use http_body_util::{BodyExt, Empty};
use hyper::{Method, Request, StatusCode, body::Bytes};
use hyper_util::rt::TokioIo;
use opentelemetry::{KeyValue, global};
use tokio::net::TcpStream;

use crate::child::{log_options, play};

/// An instrument as listed in docs/metrics.md.
pub struct Documented {
    instrument: &'static str,
    prometheus: &'static str,
    kind: &'static str,
    unit: &'static str,
}

/// Returns the documented metrics that other crates record.
pub fn documented() -> Vec<Documented> {
    let mut rows = rows("| `function_runner.");
    rows.extend(self::rows("| `rpc."));
    rows
}

/// Returns the documented metrics of the process itself.
pub fn of_the_process() -> Vec<Documented> {
    rows("| `process.")
}

fn rows(start: &str) -> Vec<Documented> {
    include_str!("../../../../docs/metrics.md")
        .lines()
        .filter(|line| line.starts_with(start))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let (kind, unit) = cells[3].split_once(", ").unwrap_or((cells[3], ""));
            Documented {
                instrument: cells[1].trim_matches('`'),
                prometheus: cells[2].trim_matches('`'),
                kind,
                unit,
            }
        })
        .collect()
}

/// Records one value with every documented instrument.
pub fn record() {
    let meter = global::meter("function-runner");
    let attributes = [KeyValue::new("runtime", "exec")];
    for metric in documented() {
        let (name, unit) = (metric.instrument, metric.unit);
        match metric.kind {
            "counter" => {
                let counter = meter.u64_counter(name).with_unit(unit).build();
                counter.add(2, &attributes);
            }
            "histogram" => {
                let histogram = meter.f64_histogram(name).with_unit(unit).build();
                histogram.record(0.003, &attributes);
            }
            "gauge" => {
                let level = meter.i64_up_down_counter(name).with_unit(unit).build();
                level.add(2, &attributes);
            }
            other => panic!("{name} is documented as {other:?}"),
        }
    }
}

/// Scenario: records metrics and scrapes them over HTTP.
pub async fn scrape() {
    let telemetry = runner_telemetry::init("telemetry-test", log_options()).expect("a start");
    let address = telemetry.metrics_address().expect("metrics are served");
    assert!(address.ip().is_loopback(), "{address}");
    record();

    let (status, kind, text) = ask(address, Method::GET, "/metrics").await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(kind, "text/plain; version=0.0.4");
    let documented = documented();
    assert!(documented.len() >= 9, "the table was found");
    let has = |line: String| assert!(text.contains(&line), "no {line} in\n{text}");
    for Documented {
        prometheus, kind, ..
    } in documented
    {
        let labels = "runtime=\"exec\",otel_scope_name=\"function-runner\"";
        has(format!("# TYPE {prometheus} {kind}\n"));
        if kind == "histogram" {
            for (bound, count) in [("0.0005", 0), ("0.0025", 0), ("0.005", 1), ("300", 1)] {
                has(format!(
                    "{prometheus}_bucket{{{labels},le=\"{bound}\"}} {count}\n"
                ));
            }
        } else {
            has(format!("{prometheus}{{{labels}}} 2\n"));
        }
    }
    let process = of_the_process();
    assert_eq!(process.len(), 6, "the table was found");
    for Documented {
        prometheus, kind, ..
    } in process
    {
        has(format!("# TYPE {prometheus} {kind}\n"));
        let value = text.lines().find_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            name.starts_with(&format!("{prometheus}{{"))
                .then_some(value)
        });
        let value: f64 = value.expect("a sample").parse().expect("a number");
        assert!(value > 0.0, "{prometheus} is {value}");
    }
    has("target_info{".to_owned());
    has("service_name=\"telemetry-test\"".to_owned());

    let (status, ..) = ask(address, Method::GET, "/").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, ..) = ask(address, Method::POST, "/metrics").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);

    telemetry.shutdown().await;
    let refused = TcpStream::connect(address).await;
    assert!(refused.is_err(), "the server outlived its telemetry");
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
fn serves_every_documented_metric() {
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
fn accepts_an_ip_address_as_host() {
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
