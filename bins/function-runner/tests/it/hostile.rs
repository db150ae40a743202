//! Tests of functions that cannot start or misbehave.

use runner_core::Reason;
use runner_test_support::{LIST, Request, error_of, eventually, list_of};
use tonic::Code;

use crate::support::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn reports_why_a_function_cannot_start() {
    let setup = Setup::with("cat", "cat")
        .entry("missing", &["example.com/fn/missing:v1"])
        .entry("plain", &["example.com/fn/plain:v1"])
        .entry("interpreter", &["example.com/fn/interpreter:v1"])
        .entry("noise", &["example.com/fn/noise:v1"]);
    setup.file("plain", "#!/bin/sh\ncat\n", 0o644);
    setup.file("interpreter", "#!/no/such/interpreter\n", 0o755);
    setup.file("noise", "no magic here\n", 0o755);
    let runner = setup.start().await;
    let client = runner.client().await;
    for (name, says, why) in [
        ("missing", "no such file or directory", "no such file"),
        (
            "plain",
            "permission denied",
            "it is not executable (chmod +x)",
        ),
        (
            "interpreter",
            "no such file or directory",
            "its interpreter (the #! line)",
        ),
        (
            "noise",
            "exec format error",
            "neither a program for this machine",
        ),
    ] {
        let error = error_of(client.call(name).await, Code::Internal);
        assert_eq!(error.reason(), Reason::FunctionFailed, "{name}");
        let words = format!("Failed to execute function \"example.com/fn/{name}:v1\": fork/exec ");
        assert!(error.message().starts_with(&words), "{error}");
        let end = format!("functions/{name}: {says} ()");
        assert!(error.message().ends_with(&end), "{error}");
        assert!(error.fact("explanation").unwrap().contains(why), "{error}");
        assert_eq!(error.fact("evaluator"), Some("exec"));
    }
    assert_eq!(list_of(client.call("cat").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_unusable_executables_at_start() {
    let setup = Setup::new().entry("missing", &["example.com/fn/missing:v1"]);
    let runner = setup.start().await;
    let line = runner.logged("cannot be used").await;
    assert!(line["source"].as_str().unwrap().contains("config.yaml:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_and_cleans_up_misbehaving_functions() {
    let list = LIST.replace('\n', "\\n");
    let runner = Setup::with("early", &format!("printf '{list}'"))
        .function(
            "closed",
            &format!("printf '{list}'; exec 1>&- 2>&-; cat >/dev/null"),
        )
        .function("nanny", &format!("printf '{list}'; sleep 600 & exit 0"))
        .function(
            "daemon",
            &format!("printf '{list}'; setsid sleep 600 & exit 0"),
        )
        .function("deaf", "trap '' TERM INT; while :; do sleep 1; done")
        .function("flood", "exec cat /dev/zero")
        .function("shout", "exec cat /dev/zero >&2")
        .function(
            "swarm",
            "for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait",
        )
        .flag("--standby=0")
        .flag("--function-timeout=1s")
        .start()
        .await;
    let client = runner.client().await;
    client.call("early").await.unwrap();
    let before = runner.resources();
    let list = vec![b' '; 1 << 20];
    for name in ["early", "closed", "nanny", "daemon"] {
        let answer = client.send(Request::of(name).list(list.clone())).await;
        assert_eq!(list_of(answer), LIST, "{name}");
    }
    for (name, code) in [
        ("deaf", Code::DeadlineExceeded),
        ("flood", Code::ResourceExhausted),
        ("shout", Code::DeadlineExceeded),
        ("swarm", Code::DeadlineExceeded),
    ] {
        let answer = client.send(Request::of(name).list(list.clone())).await;
        error_of(answer, code);
    }
    eventually("nothing is left", || runner.resources() == before).await;
}
