//! Tests with grpcurl, a client that discovers the service by reflection.

use base64::{Engine, prelude::BASE64_STANDARD};
use runner_test_support::{Gate, LIST, grpcurl};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Runner, Setup};

const EVALUATE: &str = "evaluator.FunctionEvaluator/EvaluateFunction";

/// Returns the standard output of a successful grpcurl call.
async fn prints(runner: &Runner, flags: &[&str], words: &[&str]) -> String {
    let output = grpcurl(runner.address, flags, words).await;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?} {words:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn request(image: &str, tag: &str, list: &str) -> String {
    let list = BASE64_STANDARD.encode(list);
    json!({"image": image, "tag": tag, "resourceList": list}).to_string()
}

/// Returns the code, the reason and the whole status of a failed call.
async fn refusal(runner: &Runner, flags: &[&str], request: &str) -> (u64, String, Value) {
    let flags: Vec<&str> = flags.iter().copied().chain(["-d", request]).collect();
    let output = grpcurl(runner.address, &flags, &[EVALUATE]).await;
    let status: Value =
        serde_json::from_slice(&output.stderr).unwrap_or_else(|_| panic!("no status: {output:?}"));
    let info = status["details"]
        .as_array()
        .and_then(|details| details.iter().find(|detail| is(detail, "ErrorInfo")))
        .unwrap_or_else(|| panic!("no details: {status}"));
    assert_eq!(info["domain"], "fn.kpt.dev", "{status}");
    let reason = info["reason"].as_str().unwrap().to_owned();
    (status["code"].as_u64().unwrap(), reason, status.clone())
}

fn is(detail: &Value, kind: &str) -> bool {
    detail["@type"]
        .as_str()
        .is_some_and(|name| name.ends_with(kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_describes_the_services() {
    let runner = Setup::new().start().await;
    let services = prints(&runner, &[], &["list"]).await;
    for service in [
        "evaluator.FunctionEvaluator",
        "grpc.health.v1.Health",
        "krm.status.v1.RunnerStatus",
    ] {
        assert!(services.lines().any(|line| line == service), "{services}");
    }
    assert!(
        !services.contains("announce"),
        "not on this port: {services}"
    );
    let status = prints(&runner, &[], &["krm.status.v1.RunnerStatus/GetStatus"]).await;
    assert!(status.contains(r#""phase": "PHASE_SERVING""#), "{status}");
    let described = prints(&runner, &[], &["describe", "evaluator.FunctionEvaluator"]).await;
    assert!(described.contains("rpc EvaluateFunction"), "{described}");
    let described = prints(
        &runner,
        &[],
        &["describe", "evaluator.EvaluateFunctionRequest"],
    )
    .await;
    for field in [
        "bytes resource_list = 1;",
        "string image = 2;",
        "string tag = 3;",
    ] {
        assert!(described.contains(field), "{described}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_health() {
    let runner = Setup::new().start().await;
    let answer = prints(&runner, &[], &["grpc.health.v1.Health/Check"]).await;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["status"], "SERVING");
}

#[tokio::test(flavor = "multi_thread")]
async fn evaluates_a_function() {
    let runner = Setup::with("cat", "echo done >&2; cat").start().await;
    let request = request("example.com/fn/cat", "v1", LIST);
    for flags in [&["-d", &request][..], &["-use-reflection", "-d", &request]] {
        let answer: Value =
            serde_json::from_str(&prints(&runner, flags, &[EVALUATE]).await).unwrap();
        assert_eq!(answer["resourceList"], BASE64_STANDARD.encode(LIST));
        assert_eq!(answer["log"], BASE64_STANDARD.encode("done\n"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_every_error_with_details() {
    let runner = Setup::with("cat", "cat")
        .function("fail", "cat >/dev/null; echo oh >&2; exit 4")
        .function("chat", "echo hello")
        .function("slow", "exec sleep 600")
        .flag("--max-request-body-size=2000")
        .start()
        .await;
    let big = "x".repeat(3000);
    for (image, tag, list, code, reason) in [
        ("example.com/fn/other:v1", "", LIST, 5, "FUNCTION_NOT_FOUND"),
        ("", "", LIST, 3, "BAD_IMAGE"),
        ("example.com/fn/cat", "><", LIST, 3, "BAD_IMAGE"),
        ("example.com/fn/fail:v1", "", LIST, 13, "FUNCTION_FAILED"),
        ("example.com/fn/chat:v1", "", LIST, 13, "BAD_OUTPUT"),
        ("example.com/fn/cat:v1", "", &big, 8, "MESSAGE_TOO_LARGE"),
        ("example.com/fn/slow:v1", "", LIST, 4, "DEADLINE_EXCEEDED"),
    ] {
        let request = request(image, tag, list);
        let told = refusal(&runner, &["-max-time", "2"], &request).await;
        assert_eq!((told.0, told.1.as_str()), (code, reason), "{}", told.2);
        let facts = told.2.to_string();
        let expected: &[&str] = match reason {
            "FUNCTION_FAILED" => &[
                r#""exit_code":"4""#,
                r#""evaluator":"exec""#,
                "exit status 4 (oh",
            ],
            "MESSAGE_TOO_LARGE" => &[
                "--max-request-body-size",
                r#""limit":"2000""#,
                r#""size":"30"#,
            ],
            "DEADLINE_EXCEEDED" => &["queued_ms", "running_ms"],
            _ => &[],
        };
        for fact in expected {
            assert!(facts.contains(fact), "{fact} in {facts}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_a_complete_failure_message() {
    let script = "cat >/dev/null; seq 5000 >&2; exit 1";
    let runner = Setup::with("trace", script).start().await;
    let request = request("example.com/fn/trace:v1", "", LIST);
    let (_, _, status) = refusal(&runner, &[], &request).await;
    let message = status["message"].as_str().unwrap();
    let lines: Vec<String> = (1..=5000).map(|line| line.to_string()).collect();
    assert!(
        message.ends_with(&format!("({}\n)", lines.join("\n"))),
        "{message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn receives_a_retry_delay_for_a_full_queue_and_when_draining() {
    let gate = Gate::new();
    let runner = Setup::with("hold", &gate.script())
        .flag("--max-parallel-executions=1")
        .flag("--max-queued-executions=0")
        .flag("--drain-timeout=100ms")
        .start()
        .await;
    let request = request("example.com/fn/hold:v1", "", LIST);
    let running = refusal(&runner, &[], &request);
    let meanwhile = async {
        gate.holds(1).await;
        let told = refusal(&runner, &[], &request).await;
        runner.signal(Signal::TERM);
        told
    };
    let (ended, refused) = tokio::join!(running, meanwhile);
    for (told, code, reason) in [(ended, 14, "DRAINING"), (refused, 8, "QUEUE_FULL")] {
        assert_eq!((told.0, told.1.as_str()), (code, reason), "{}", told.2);
        let details = told.2["details"].as_array().unwrap().clone();
        let retry = details.iter().find(|detail| is(detail, "RetryInfo"));
        assert_eq!(
            retry.map(|retry| &retry["retryDelay"]),
            Some(&json!("1s")),
            "{}",
            told.2
        );
    }
}
