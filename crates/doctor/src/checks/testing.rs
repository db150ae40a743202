//! Runs checks against an API server with prepared answers.

use futures::future::{BoxFuture, join_all};
use runner_client::Client;
use runner_test_support::{api_server, refusal};
use serde_json::{Value, json};

use crate::{Options, context::Context, outcome::Outcome};

/// The function of a check.
type Run = fn(&Context) -> BoxFuture<'_, Vec<Outcome>>;

/// Returns the outcomes of a check, where `answer` maps a request path to a status code and a body.
pub(super) async fn run_check(
    check: Run,
    answer: impl Fn(&str) -> (u16, Value) + Send + Sync + Clone + 'static,
) -> Vec<Outcome> {
    run_checks(&[check], None, answer).await
}

/// Returns the outcomes of several checks, with a runner at an address.
pub(super) async fn run_checks(
    checks: &[Run],
    runner: Option<&str>,
    answer: impl Fn(&str) -> (u16, Value) + Send + Sync + Clone + 'static,
) -> Vec<Outcome> {
    let (service, _) = api_server(move |(_, path, _)| {
        let path = path.split('?').next().unwrap_or_default();
        Some(match path {
            "/version" => (200, version()),
            path => match answer(path) {
                (200, body) => (200, body),
                (code, _) => refusal(code, &format!("code {code}")),
            },
        })
    });
    let client = kube::Client::new(service, "default");
    let runner = runner.map(|address| {
        let options = runner_client::Options::default();
        Client::new(address, &options).unwrap()
    });
    let context = Context::new(client, runner, Options::default()).await;
    let outcomes = join_all(checks.iter().map(|check| check(&context))).await;
    outcomes.into_iter().flatten().collect()
}

fn version() -> Value {
    let names = [
        "major",
        "minor",
        "gitVersion",
        "gitCommit",
        "gitTreeState",
        "buildDate",
        "goVersion",
        "compiler",
        "platform",
    ];
    names
        .iter()
        .map(|name| ((*name).to_owned(), json!("1")))
        .collect()
}
