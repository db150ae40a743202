//! Tests of a start without a reachable API server: executables are served, pods have to wait.

use std::{net::TcpListener, time::Duration};

use runner_core::Reason;
use runner_proto::health::{
    HealthCheckRequest,
    health_check_response::ServingStatus::{NotServing, Serving},
};
use runner_test_support::{LIMIT, LIST, Request, error_of, free_address, list_of};
use serde_json::Value;
use tokio::time::timeout;
use tonic::Code;

use crate::support::{Runner, Setup};

fn service(name: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: name.to_owned(),
    }
}

/// Starts a runner whose API server accepts connections and never answers.
async fn start() -> (Runner, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = Setup::with("cat", "cat").cluster(silent.local_addr().unwrap());
    (setup.start().await, silent)
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_liveness_and_runs_executables_from_the_start() {
    let (runner, _silent) = start().await;
    let client = runner.client().await;
    let liveness = client.health().check(service("liveness")).await.unwrap();
    assert_eq!(liveness.into_inner().status(), Serving);
    assert_eq!(list_of(client.call("cat").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_unavailable_until_the_configuration_is_known() {
    let (runner, _silent) = start().await;
    let request = Request::of("other").within(Duration::from_secs(5));
    let answer = runner.client().await.send(request).await;
    let error = error_of(answer, Code::Unavailable);
    assert_eq!(error.reason(), Reason::KubernetesUnreachable);
    let says = "function \"example.com/fn/other:v1\" cannot be evaluated yet";
    assert!(error.message().contains(says), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn becomes_ready_when_the_wait_for_the_api_server_ends() {
    let (runner, _silent) = start().await;
    let client = runner.client().await;
    let watch = client.health().watch(service("")).await.unwrap();
    let mut watch = watch.into_inner();
    let mut next = async || {
        let answer = timeout(LIMIT, watch.message()).await.unwrap();
        answer.unwrap().unwrap().status()
    };
    assert_eq!(next().await, NotServing);
    assert_eq!(next().await, Serving);
    runner.logged("has not answered within 10s").await;
    // From now on calls do not wait.
    let error = error_of(client.call("other").await, Code::Unavailable);
    assert_eq!(error.reason(), Reason::KubernetesUnreachable);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_an_outage_once_with_its_cause() {
    // Connections to a free port are refused.
    let runner = Setup::with("cat", "cat")
        .cluster(free_address())
        .start()
        .await;
    runner.logged("has not answered within 10s").await;
    // Calling a function without an executable adds one more failing request to the API server.
    let answer = runner.client().await.call("other").await;
    error_of(answer, Code::Unavailable);
    let log = runner.log();
    let text = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
    let troubles: Vec<String> = log
        .iter()
        .filter(|line| matches!(line["level"].as_str(), Some("warn" | "error")))
        .map(text)
        .collect();
    let [outage, waited] = &troubles[..] else {
        panic!("{troubles:#?}")
    };
    assert!(
        outage.contains("cannot be reached: Connection refused"),
        "{outage}"
    );
    assert!(waited.contains("has not answered"), "{waited}");
}
