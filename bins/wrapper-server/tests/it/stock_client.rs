//! Tests with grpcurl, a client that discovers the service by reflection.

use std::process::{Command, Output};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::support::{LIST, Setup, Wrapper, repository};

const EVALUATE: &str = "evaluator.FunctionEvaluator/EvaluateFunction";

/// Returns the grpcurl that tests/tools/build has built.
fn grpcurl() -> Command {
    let mut build = Command::new(repository("tests/tools/build"));
    let found = build.args(["--path", "grpcurl"]).output().unwrap();
    let said = |text: &[u8]| String::from_utf8_lossy(text).trim().to_owned();
    assert!(found.status.success(), "{}", said(&found.stderr));
    Command::new(said(&found.stdout))
}

async fn call(wrapper: &Wrapper, flags: &[&str], method: &str) -> Output {
    let mut command = grpcurl();
    command
        .args(["-plaintext", "-format-error"])
        .args(flags)
        .args([&wrapper.address.to_string(), method]);
    spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn request() -> String {
    let list = BASE64_STANDARD.encode(LIST);
    json!({"image": "example.com/fn/fn:v1", "resourceList": list}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn discovers_the_service_and_evaluates() {
    let wrapper = Setup::script("echo done >&2; cat").start().await;
    let services = call(&wrapper, &[], "list").await.stdout;
    let services = String::from_utf8(services).unwrap();
    for service in ["evaluator.FunctionEvaluator", "grpc.health.v1.Health"] {
        assert!(services.lines().any(|line| line == service), "{services}");
    }
    let output = call(&wrapper, &["-d", &request()], EVALUATE).await;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["resourceList"], BASE64_STANDARD.encode(LIST));
    assert_eq!(answer["log"], BASE64_STANDARD.encode("done\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_the_details_of_a_failure() {
    let wrapper = Setup::script("cat; echo oh >&2; exit 4").start().await;
    let output = call(&wrapper, &["-d", &request()], EVALUATE).await;
    let status: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(status["code"], 13, "{status}");
    let info = &status["details"][0];
    assert_eq!(info["reason"], "FUNCTION_FAILED", "{status}");
    assert_eq!(info["domain"], "fn.kpt.dev", "{status}");
    assert_eq!(info["metadata"]["exit_code"], "4", "{status}");
}
