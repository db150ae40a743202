//! Tests of every error of the exec runtime: code, message and facts.

use std::time::{Duration, Instant};

use futures::future::{Either, select};
use runner_core::Reason;
use runner_test_support::{Gate, LIST, Request, error_of, eventually, list_of, peak_memory};
use rustix::process::Signal;
use tonic::Code;

use crate::support::{Runner, Setup};

/// Deadline long enough for a call to start on a busy machine, and short enough to wait for.
const DEADLINE: Duration = Duration::from_millis(1500);

#[tokio::test(flavor = "multi_thread")]
async fn returns_not_found_for_an_unknown_image() {
    let runner = Setup::with("cat", "cat").start().await;
    let client = runner.client().await;
    for (image, tag, resolved) in [
        ("example.com/fn/other:v1", "", "example.com/fn/other:v1"),
        ("example.com/fn/cat:v2", "", "example.com/fn/cat:v2"),
        ("example.com/fn/cat", ">= 2", "example.com/fn/cat"),
        ("cat:v1", "", "ghcr.io/kptdev/krm-functions-catalog/cat:v1"),
    ] {
        let answer = client.send(Request::image(image).tag(tag)).await;
        let error = error_of(answer, Code::NotFound);
        assert_eq!(error.reason(), Reason::FunctionNotFound, "{image}");
        assert_eq!(error.fact("image"), Some(resolved));
        let says = format!("function \"{resolved}\" not found");
        assert_eq!(error.message(), says);
        assert_eq!(error.fact("tag").unwrap_or_default(), tag);
        let explanation = error.fact("explanation").unwrap();
        assert!(explanation.contains("no executable is configured"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_invalid_argument_for_a_malformed_image_or_tag() {
    let runner = Setup::with("cat", "cat").start().await;
    let client = runner.client().await;
    for (image, tag, says) in [
        ("", "", "names no image"),
        ("example.com/UPPER/fn:v1", "", "example.com/UPPER/fn:v1"),
        ("example.com/fn/cat:v1:v2", "", "example.com/fn/cat:v1:v2"),
        ("example.com/fn/cat@sha256:beef", "", "sha256:beef"),
        ("example.com/fn/cat", ">= nonsense", ">= nonsense"),
        ("example.com/fn/cat", "not a tag", "not a tag"),
    ] {
        let answer = client.send(Request::image(image).tag(tag)).await;
        let error = error_of(answer, Code::InvalidArgument);
        assert_eq!(error.reason(), Reason::BadImage, "{image} {tag}");
        assert!(error.message().contains(says), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_failure_with_exit_code_and_stderr() {
    let runner = Setup::with("fail", "cat >/dev/null; echo too few >&2; exit 3")
        .start()
        .await;
    let error = error_of(runner.client().await.call("fail").await, Code::Internal);
    assert_eq!(error.reason(), Reason::FunctionFailed);
    assert_eq!(
        error.message(),
        "Failed to execute function \"example.com/fn/fail:v1\": exit status 3 (too few\n)"
    );
    assert_eq!(error.fact("exit_code"), Some("3"));
    assert_eq!(error.fact("signal"), None);
    assert_eq!(error.fact("evaluator"), Some("exec"));
    assert_eq!(error.fact("image"), Some("example.com/fn/fail:v1"));
    assert!(error.fact("request_id").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_the_signal_of_a_killed_function() {
    let runner = Setup::with("die", "kill -SEGV $$").start().await;
    let error = error_of(runner.client().await.call("die").await, Code::Internal);
    assert_eq!(error.reason(), Reason::FunctionFailed);
    assert!(error.message().contains("signal: segmentation fault"));
    assert_eq!(error.fact("signal"), Some("11"));
    assert_eq!(error.fact("exit_code"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_results_of_a_failure_in_message_and_fact() {
    let script = "cat; printf 'results:\\n- message: too few\\n  severity: error\\n'; exit 1";
    let runner = Setup::with("validate", script).start().await;
    let error = error_of(runner.client().await.call("validate").await, Code::Internal);
    assert_eq!(error.fact("results"), Some("[error]: too few"));
    assert_eq!(
        error.message(),
        "Failed to execute function \"example.com/fn/validate:v1\": exit status 1 () \
         with structured results: [error]: too few"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn shortens_a_long_failure_message() {
    let script =
        "cat >/dev/null; echo first >&2; head -c 1000000 /dev/zero >&2; echo last >&2; exit 1";
    let runner = Setup::with("shout", script).start().await;
    let error = error_of(runner.client().await.call("shout").await, Code::Internal);
    assert_eq!(error.fact("exit_code"), Some("1"));
    let message = error.message();
    assert!(
        message.contains("(first\n") && message.ends_with("last\n)"),
        "{message:?}"
    );
    assert!(message.contains("bytes cut"), "{message:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_success_without_a_resource_list_as_bad_output() {
    let runner = Setup::with("chat", "cat >/dev/null; echo hello; echo oh >&2")
        .function("silent", "cat >/dev/null")
        .function("other", "printf 'apiVersion: v1\\nkind: List\\n'")
        .start()
        .await;
    let client = runner.client().await;
    for (name, stderr) in [("chat", "'oh'"), ("silent", "''"), ("other", "''")] {
        let error = error_of(client.call(name).await, Code::Internal);
        assert_eq!(error.reason(), Reason::BadOutput, "{name}");
        let words = format!(
            "failed to parse the output of function \"example.com/fn/{name}:v1\" with stderr {stderr}: "
        );
        assert!(error.message().starts_with(&words), "{error}");
        assert_eq!(error.fact("evaluator"), Some("exec"));
    }
}

async fn small_messages() -> Runner {
    Setup::with("cat", "cat")
        .function("flood", "cat; yes too much | head -c 200000")
        .flag("--max-request-body-size=100000")
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn names_flag_and_sizes_for_a_request_over_the_limit() {
    let runner = small_messages().await;
    let client = runner.client().await;
    let answer = client
        .send(Request::of("cat").list(vec![b'x'; 150_000]))
        .await;
    let error = error_of(answer, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::MessageTooLarge);
    assert_eq!(error.fact("limit"), Some("100000"));
    let size: usize = error.fact("size").unwrap().parse().unwrap();
    assert!((150_000..150_100).contains(&size), "{size}");
    for part in ["--max-request-body-size", "100000", &size.to_string()] {
        assert!(error.message().contains(part), "{error}");
    }
    assert_eq!(
        list_of(client.call("cat").await),
        LIST,
        "the connection goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_a_compression_bomb_before_expanding_it() {
    let runner = small_messages().await;
    let client = runner.client().await;
    client.call("cat").await.unwrap();
    let before = peak_memory(runner.pid());
    let bomb = Request::of("cat").list(vec![0; 64 << 20]).gzip();
    let error = error_of(client.send(bomb).await, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::MessageTooLarge);
    assert_eq!(error.fact("limit"), Some("100000"));
    assert!(
        error.message().contains("--max-request-body-size"),
        "{error}"
    );
    let grown = peak_memory(runner.pid()) - before;
    assert!(grown < 16 << 20, "it took {grown} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_flag_and_limit_for_an_output_over_the_limit() {
    let runner = small_messages().await;
    let client = runner.client().await;
    let error = error_of(client.call("flood").await, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::MessageTooLarge);
    assert_eq!(error.fact("limit"), Some("100000"));
    assert_eq!(error.fact("image"), Some("example.com/fn/flood:v1"));
    assert!(
        error.message().contains("--max-request-body-size"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejects_an_output_that_exceeds_the_limit_only_as_a_message() {
    // The message around a list needs a few bytes as well.
    let room = 100_000 - LIST.len();
    let pad = |missing: usize| format!("cat; printf '#%*s' {} ''", room - missing - 1);
    let runner = Setup::with("fits", &pad(6))
        .function("over", &pad(0))
        .flag("--max-request-body-size=100000")
        .start()
        .await;
    let client = runner.client().await;
    assert_eq!(list_of(client.call("fits").await).len(), 100_000 - 6);
    let error = error_of(client.call("over").await, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::MessageTooLarge);
    for part in ["--max-request-body-size", "100000"] {
        assert!(error.message().contains(part), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refuses_with_a_retry_delay_if_the_queue_is_full() {
    let gate = Gate::new();
    let runner = Setup::with("hold", &gate.script())
        .flag("--max-parallel-executions=1")
        .flag("--max-queued-executions=1")
        .flag("--standby=0")
        .start()
        .await;
    let client = runner.client().await;
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.call("hold").await }
    });
    gate.holds(1).await;
    // One of these calls is queued, the other finds the queue full.
    let two = [client.call("hold"), client.call("hold")].map(Box::pin);
    let [one, other] = two;
    let (refused, waiting) = match select(one, other).await {
        Either::Left(ended) => ended,
        Either::Right(ended) => ended,
    };
    let error = error_of(refused, Code::ResourceExhausted);
    assert_eq!(error.reason(), Reason::QueueFull);
    assert!(
        error
            .retry_after()
            .is_some_and(|delay| delay >= Duration::from_millis(100))
    );
    assert!(error.message().contains("1 evaluations wait"), "{error}");
    gate.open();
    assert_eq!(list_of(running.await.unwrap()), LIST);
    assert_eq!(list_of(waiting.await), LIST);
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_deadline_while_running_before_the_caller_gives_up() {
    let runner = Setup::with("slow", "echo thinking >&2; exec sleep 600")
        .start()
        .await;
    let client = runner.client().await;
    let started = Instant::now();
    let answer = client.send(Request::of("slow").within(DEADLINE)).await;
    assert!(started.elapsed() < DEADLINE, "the caller had left");
    let error = error_of(answer, Code::DeadlineExceeded);
    assert_eq!(error.reason(), Reason::DeadlineExceeded);
    let milliseconds = |fact| error.fact(fact).unwrap().parse::<u128>().unwrap();
    assert!(
        milliseconds("running_ms") > DEADLINE.as_millis() / 2,
        "{error}"
    );
    assert!(
        milliseconds("queued_ms") < DEADLINE.as_millis() / 2,
        "{error}"
    );
    assert!(error.message().contains("caller's deadline"), "{error}");
    assert!(error.message().contains("thinking"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_a_deadline_reached_in_the_queue() {
    let gate = Gate::new();
    let runner = Setup::with("hold", &gate.script())
        .function("cat", "cat")
        .flag("--max-parallel-executions=1")
        .flag("--standby=0")
        .start()
        .await;
    let client = runner.client().await;
    let running = tokio::spawn({
        let client = client.clone();
        async move { client.call("hold").await }
    });
    gate.holds(1).await;
    let answer = client.send(Request::of("cat").within(DEADLINE)).await;
    let error = error_of(answer, Code::DeadlineExceeded);
    let milliseconds = |fact| error.fact(fact).unwrap().parse::<u128>().unwrap();
    assert!(
        milliseconds("queued_ms") > DEADLINE.as_millis() / 2,
        "{error}"
    );
    assert_eq!(milliseconds("running_ms"), 0, "{error}");
    gate.open();
    running.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn applies_function_timeout_to_callers_without_a_deadline() {
    let runner = Setup::with("slow", "exec sleep 600")
        .flag("--function-timeout=300ms")
        .start()
        .await;
    let error = error_of(
        runner.client().await.call("slow").await,
        Code::DeadlineExceeded,
    );
    assert!(error.message().contains("--function-timeout"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_the_function_of_a_canceled_call() {
    let gate = Gate::new();
    let runner = Setup::with("hold", &gate.script())
        .flag("--standby=0")
        .start()
        .await;
    let client = runner.client().await;
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call("hold").await }
    });
    gate.holds(1).await;
    call.abort();
    eventually("the function is gone", || runner.resources().children == 0).await;
    assert!(
        client.call("nobody").await.is_err(),
        "the connection goes on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_unavailable_after_the_drain_timeout() {
    let gate = Gate::new();
    let mut runner = Setup::with("hold", &gate.script())
        .flag("--drain-timeout=200ms")
        .start()
        .await;
    let client = runner.client().await;
    let call = tokio::spawn(async move { client.call("hold").await });
    gate.holds(1).await;
    runner.signal(Signal::TERM);
    let error = error_of(call.await.unwrap(), Code::Unavailable);
    assert_eq!(error.reason(), Reason::Draining);
    assert!(error.retry_after().is_some());
    assert_eq!(runner.ended().await.code(), Some(0));
}
