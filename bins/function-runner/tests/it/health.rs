//! Tests of the standard health service.

use runner_proto::health::{
    HealthCheckRequest, HealthListRequest,
    health_check_response::ServingStatus::{self, NotServing, ServiceUnknown, Serving},
};
use runner_test_support::{Gate, LIMIT, LIST, list_of};
use rustix::process::Signal;
use tokio::time::timeout;
use tonic::Code;

use crate::support::Setup;

fn service(name: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: name.to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_the_server_and_its_services() {
    let runner = Setup::new().start().await;
    let mut health = runner.client().await.health();
    for name in ["", "evaluator.FunctionEvaluator", "liveness"] {
        let answer = health.check(service(name)).await.unwrap().into_inner();
        assert_eq!(answer.status(), Serving, "{name}");
    }
    let unknown = health.check(service("evaluator.Other")).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let all = health
        .list(HealthListRequest {})
        .await
        .unwrap()
        .into_inner();
    let mut names: Vec<_> = all.statuses.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["", "evaluator.FunctionEvaluator", "liveness"]);
    assert!(
        all.statuses
            .values()
            .all(|answer| answer.status() == Serving)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn notifies_watchers_immediately_when_draining() {
    let gate = Gate::new();
    let mut runner = Setup::with("hold", &gate.script()).start().await;
    let client = runner.client().await;
    let mut health = client.health();
    let call = tokio::spawn(async move { client.call("hold").await });
    gate.holds(1).await;
    let mut watched = health.watch(service("")).await.unwrap().into_inner();
    let mut next = async || -> Option<ServingStatus> {
        let answer = timeout(LIMIT, watched.message()).await;
        Some(answer.expect("an answer in time").unwrap()?.status())
    };
    assert_eq!(next().await, Some(Serving));
    runner.signal(Signal::TERM);
    assert_eq!(next().await, Some(NotServing));
    assert!(!call.is_finished(), "what runs may finish");
    gate.open();
    assert_eq!(list_of(call.await.unwrap()), LIST);
    assert_eq!(next().await, None, "a watch does not hold up the end");
    assert_eq!(runner.ended().await.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn keeps_a_watch_of_an_unknown_service_open() {
    let runner = Setup::new().start().await;
    let mut health = runner.client().await.health();
    let watched = health.watch(service("evaluator.Other")).await.unwrap();
    let first = watched.into_inner().message().await.unwrap().unwrap();
    assert_eq!(first.status(), ServiceUnknown);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_health_checks_from_level_3() {
    for (level, logged) in [(2, false), (3, true)] {
        let runner = Setup::new()
            .flag(format!("--log-level={level}"))
            .start()
            .await;
        let client = runner.client().await;
        client.health().check(service("")).await.unwrap();
        // Every level logs this line, and it follows the line in question.
        runner.signal(Signal::TERM);
        runner.logged("draining").await;
        let found = runner
            .log()
            .iter()
            .any(|line| line["message"] == "health check");
        assert_eq!(found, logged, "level {level}");
    }
}
