//! Tests of the shutdown: running evaluations finish, new ones are refused, nothing is left behind.

use std::time::Instant;

use runner_test_support::{Client, Gate, LIMIT, LIST, eventually, exists, list_of};
use rustix::process::Signal;
use tonic::Code;

use crate::support::{Runner, Setup};

/// Starts the given number of calls of the gate's function and waits until all of them run.
async fn running_calls(
    gate: &Gate,
    client: &Client,
    calls: usize,
) -> Vec<tokio::task::JoinHandle<runner_test_support::Answer>> {
    let running = (0..calls).map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.call("hold").await })
    });
    let running = running.collect();
    gate.holds(calls).await;
    running
}

async fn runner(gate: &Gate, drain: &str) -> Runner {
    Setup::with("hold", &gate.script())
        .flag("--max-parallel-executions=4")
        .flag(format!("--drain-timeout={drain}"))
        .start()
        .await
}

fn assert_no_scratch(runner: &Runner) {
    let scratch = std::fs::read_dir(runner.setup.path("tmp")).unwrap();
    assert_eq!(scratch.count(), 0, "its scratch directories are gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn finishes_running_evaluations_after_the_first_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let gate = Gate::new();
        let mut runner = runner(&gate, "1m").await;
        let calls = running_calls(&gate, &runner.client().await, 4).await;
        runner.signal(signal);
        runner.logged("draining").await;
        eventually("new connections are refused", || {
            std::net::TcpStream::connect(runner.address).err()
        })
        .await;
        gate.open();
        for call in calls {
            assert_eq!(list_of(call.await.unwrap()), LIST);
        }
        assert_eq!(runner.ended().await.code(), Some(0));
        assert_no_scratch(&runner);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_immediately_when_idle_despite_open_connections() {
    let mut runner = runner(&Gate::new(), "1m").await;
    let client = runner.client().await;
    let refused = client.call("nobody").await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    let started = Instant::now();
    runner.signal(Signal::TERM);
    assert_eq!(runner.ended().await.code(), Some(0));
    assert!(started.elapsed() < LIMIT / 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_running_functions_after_the_drain_timeout() {
    let gate = Gate::new();
    let mut runner = runner(&gate, "200ms").await;
    let calls = running_calls(&gate, &runner.client().await, 4).await;
    let functions = gate.holds(4).await;
    runner.signal(Signal::TERM);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code(), Code::Unavailable);
    }
    assert_eq!(runner.ended().await.code(), Some(0));
    // The functions are killed by then; the kernel needs a moment to remove them.
    eventually("no function is left", || {
        !functions.iter().copied().any(exists)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exits_immediately_after_a_second_signal_and_cleans_up() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let gate = Gate::new();
        let mut runner = runner(&gate, "1h").await;
        let calls = running_calls(&gate, &runner.client().await, 4).await;
        let functions = gate.holds(4).await;
        runner.signal(signal);
        runner.logged("draining").await;
        runner.signal(signal);
        assert_eq!(runner.ended().await.code(), Some(code));
        eventually("no function is left", || {
            !functions.iter().copied().any(exists)
        })
        .await;
        assert_no_scratch(&runner);
        for call in calls {
            assert!(call.await.unwrap().is_err());
        }
    }
}
