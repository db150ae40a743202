//! Tests with grpcurl, a client that discovers the service by reflection.

use base64::{Engine, prelude::BASE64_STANDARD};
use runner_test_support::{LIST, grpcurl};
use serde_json::{Value, json};

use crate::support::Setup;

const EVALUATE: &str = "evaluator.FunctionEvaluator/EvaluateFunction";

fn request() -> String {
    let list = BASE64_STANDARD.encode(LIST);
    json!({"image": "example.com/fn/fn:v1", "resourceList": list}).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn discovers_the_service_and_evaluates() {
    let wrapper = Setup::script("echo done >&2; cat").start().await;
    let services = grpcurl(wrapper.address, &[], &["list"]).await.stdout;
    let services = String::from_utf8(services).unwrap();
    for service in ["evaluator.FunctionEvaluator", "grpc.health.v1.Health"] {
        assert!(services.lines().any(|line| line == service), "{services}");
    }
    let output = grpcurl(wrapper.address, &["-d", &request()], &[EVALUATE]).await;
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["resourceList"], BASE64_STANDARD.encode(LIST));
    assert_eq!(answer["log"], BASE64_STANDARD.encode("done\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_the_details_of_a_failure() {
    let wrapper = Setup::script("cat; echo oh >&2; exit 4").start().await;
    let output = grpcurl(wrapper.address, &["-d", &request()], &[EVALUATE]).await;
    let status: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(status["code"], 13, "{status}");
    let info = &status["details"][0];
    assert_eq!(info["reason"], "FUNCTION_FAILED", "{status}");
    assert_eq!(info["domain"], "fn.kpt.dev", "{status}");
    assert_eq!(info["metadata"]["exit_code"], "4", "{status}");
}
