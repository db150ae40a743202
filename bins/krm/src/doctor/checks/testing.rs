//! Runs checks against an API server with prepared answers.

use bytes::Bytes;
use clap::Parser;
use futures::future::{BoxFuture, join_all};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::doctor::{Doctor, context::Context, outcome::Outcome};

/// The function of a check.
type Run = for<'a> fn(&'a Context<'a>) -> BoxFuture<'a, Vec<Outcome>>;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    doctor: Doctor,
}

/// Returns the findings of a check, where `answer` maps a request path to a status code and a body.
pub(super) async fn examined(
    check: Run,
    answer: impl Fn(&str) -> (u16, Value) + Send + Sync + Clone + 'static,
) -> Vec<Outcome> {
    all_examined(&["doctor"], &[check], answer).await
}

/// Returns the findings of several checks for one command line.
pub(super) async fn all_examined(
    words: &[&str],
    checks: &[Run],
    answer: impl Fn(&str) -> (u16, Value) + Send + Sync + Clone + 'static,
) -> Vec<Outcome> {
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (code, body) = match request.uri().path() {
            "/version" => (200, version()),
            path => answer(path),
        };
        let body = match code {
            200 => body,
            code => json!({"kind": "Status", "status": "Failure", "code": code,
                "message": format!("code {code}"),
                "reason": if code == 404 { "NotFound" } else { "Forbidden" }}),
        };
        let answer = http::Response::builder()
            .status(code)
            .body(Full::new(Bytes::from(body.to_string())));
        async { answer }
    });
    let client = kube::Client::new(service, "default");
    let line = Line::parse_from(words);
    let context = Context::new(&line.doctor, client).await;
    let findings = join_all(checks.iter().map(|check| check(&context))).await;
    findings.into_iter().flatten().collect()
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
