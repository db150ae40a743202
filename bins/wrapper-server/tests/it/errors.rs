//! Tests of all other errors, each with its code and facts.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use runner_core::Reason;
use runner_test_support::{Client, Gate, LIST, Request, error_of, eventually, exists, list_of};
use rustix::process::Signal;
use tokio::task::JoinSet;
use tonic::Code;

use crate::support::Setup;

#[tokio::test(flavor = "multi_thread")]
async fn names_size_and_flag_for_a_request_over_the_limit() {
    let wrapper = Setup::script("cat")
        .flag("--max-request-body-size=2000")
        .start()
        .await;
    let client = wrapper.client().await;
    let large = Request::of("fn").list("x".repeat(3000));
    let error = error_of(client.send(large).await, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::MessageTooLarge);
    assert_eq!(error.fact("limit"), Some("2000"));
    assert!(
        error.message().contains("--max-request-body-size"),
        "{error:?}"
    );
    let size: usize = error.fact("size").unwrap().parse().unwrap();
    assert!((3000..3100).contains(&size), "{size}");
    assert_eq!(list_of(client.call("fn").await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_output_over_the_limit() {
    for script in ["cat; yes | head -c 3000", "cat; exec yes"] {
        let wrapper = Setup::script(script)
            .flag("--max-request-body-size=2000")
            .start()
            .await;
        let error = error_of(
            wrapper.client().await.call("fn").await,
            Code::ResourceExhausted,
        );
        assert_eq!(error.reason(), Reason::MessageTooLarge, "{script}");
        assert!(
            error.message().contains("--max-request-body-size"),
            "{error:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_the_function_at_the_deadline_and_reports_stderr() {
    let wrapper = Setup::script("echo $$ >&2; cat > /dev/null; sleep 600; exit 1")
        .start()
        .await;
    let request = Request::of("fn").within(Duration::from_secs(2));
    let error = error_of(
        wrapper.client().await.send(request).await,
        Code::DeadlineExceeded,
    );
    assert_eq!(error.reason(), Reason::DeadlineExceeded);
    assert!(
        error.message().contains("the caller's deadline"),
        "{error:?}"
    );
    for fact in ["queued_ms", "running_ms"] {
        error.fact(fact).unwrap().parse::<u64>().unwrap();
    }
    let pid: u32 = error
        .message()
        .rsplit("stderr: ")
        .next()
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    eventually("the function is gone", || !exists(pid)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_function_timeout_to_callers_without_a_deadline() {
    let wrapper = Setup::script("exec sleep 600")
        .flag("--function-timeout=1")
        .start()
        .await;
    let error = error_of(
        wrapper.client().await.call("fn").await,
        Code::DeadlineExceeded,
    );
    assert!(
        error.message().contains("1s (--function-timeout)"),
        "{error:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_the_function_of_a_canceled_call() {
    let gate = Gate::new();
    let wrapper = Setup::script(&gate.script()).start().await;
    let client = wrapper.client().await;
    let call = tokio::spawn(async move { client.call("fn").await });
    let functions = gate.holds(1).await;
    call.abort();
    eventually("the function is gone", || !exists(functions[0])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_with_a_retry_delay_beyond_1000_queued_evaluations() {
    let wrapper = Setup::script("exec sleep 600")
        .flag("--max-parallel=1")
        .flag("--standby=0")
        .start()
        .await;
    let mut calls = JoinSet::new();
    for _ in 0..8 {
        let client: Client = wrapper.client().await;
        for _ in 0..150 {
            let client = client.clone();
            calls.spawn(async move { client.call("fn").await });
        }
    }
    let first = calls.join_next().await.unwrap().unwrap();
    let error = error_of(first, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::QueueFull);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_unavailable_after_the_drain_timeout() {
    let wrapper = Setup::script("exec sleep 600")
        .flag("--drain-timeout=0")
        .flag("--standby=0")
        .start()
        .await;
    let client = wrapper.client().await;
    let call = tokio::spawn(async move { client.call("fn").await });
    eventually("the function runs", || wrapper.children().pop()).await;
    wrapper.signal(Signal::TERM);
    let error = error_of(call.await.unwrap(), Code::Unavailable);
    assert_eq!(error.reason(), Reason::Draining);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn fails_only_calls_made_while_the_entrypoint_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("fn");
    fs::write(&program, "#!/bin/sh\ncat\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let wrapper = Setup::new(&[&program]).flag("--standby=0").start().await;
    let client = wrapper.client().await;
    fs::rename(&program, directory.path().join("away")).unwrap();
    let error = error_of(client.call("fn").await, Code::Internal);
    assert_eq!(error.reason(), Reason::FunctionFailed);
    assert_eq!(
        error.message(),
        format!(
            "Failed to execute function \"example.com/fn/fn:v1\": fork/exec {}: no such file or directory ()",
            program.display()
        )
    );
    fs::rename(directory.path().join("away"), &program).unwrap();
    assert_eq!(list_of(client.call("fn").await), LIST);
}
