//! A start while the Kubernetes API server is away: executables are served, pods wait.

use std::{net::TcpListener, time::Duration};

use runner_core::Reason;
use runner_proto::health::{
    HealthCheckRequest,
    health_check_response::ServingStatus::{NotServing, Serving},
};
use serde_json::Value;
use tokio::time::timeout;
use tonic::Code;

use crate::support::{LIMIT, LIST, Request, Runner, Setup, error_of, list_of};

fn service(name: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: name.to_owned(),
    }
}

/// Starts a runner whose API server takes connections and never answers.
async fn start() -> (Runner, TcpListener) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let setup = Setup::with("cat", "cat").cluster(silent.local_addr().unwrap());
    (setup.start().await, silent)
}

#[tokio::test(flavor = "multi_thread")]
async fn liveness_is_serving_and_executables_run_from_the_start() {
    let (runner, _silent) = start().await;
    let client = runner.client().await;
    let liveness = client.health().check(service("liveness")).await.unwrap();
    assert_eq!(liveness.into_inner().status(), Serving);
    assert_eq!(list_of(client.call("cat").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_whose_configuration_is_not_known_is_unavailable() {
    let (runner, _silent) = start().await;
    let request = Request::of("other").within(Duration::from_secs(5));
    let answer = runner.client().await.send(request).await;
    let error = error_of(answer, Code::Unavailable);
    assert_eq!(error.reason(), Reason::KubernetesUnreachable);
    let says = "function \"example.com/fn/other:v1\" cannot be evaluated yet";
    assert!(error.message().contains(says), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_when_the_wait_for_the_api_server_is_over() {
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
    // From now on nobody waits.
    let error = error_of(client.call("other").await, Code::Unavailable);
    assert_eq!(error.reason(), Reason::KubernetesUnreachable);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_is_logged_once_with_its_cause() {
    // Nobody listens at this address any more.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let runner = Setup::with("cat", "cat")
        .cluster(address.unwrap())
        .start()
        .await;
    runner.logged("has not answered within 10s").await;
    // A call for a pod is one more request that the API server does not answer.
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
