//! The end: what runs is finished, what is new is refused, nothing is left behind.

use std::time::Instant;

use rustix::process::Signal;
use tonic::Code;

use crate::support::{Client, Gate, LIMIT, LIST, Runner, Setup, eventually, exists, list_of};

/// So many calls of the gate's function, all of them running.
async fn held(
    gate: &Gate,
    client: &Client,
    calls: usize,
) -> Vec<tokio::task::JoinHandle<crate::support::Answer>> {
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
async fn a_first_signal_finishes_what_runs_and_ends_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let gate = Gate::new();
        let mut runner = runner(&gate, "1m").await;
        let calls = held(&gate, &runner.client().await, 4).await;
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
async fn an_idle_runner_ends_at_once_whatever_connections_are_open() {
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
async fn the_drain_timeout_ends_what_still_runs() {
    let gate = Gate::new();
    let mut runner = runner(&gate, "200ms").await;
    let calls = held(&gate, &runner.client().await, 4).await;
    let functions = gate.holds(4).await;
    runner.signal(Signal::TERM);
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().code(), Code::Unavailable);
    }
    assert_eq!(runner.ended().await.code(), Some(0));
    // They are killed by then; the system takes a moment to clear them away.
    eventually("no function is left", || {
        (!functions.iter().copied().any(exists)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_at_once_and_leaves_neither_function_nor_file() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let gate = Gate::new();
        let mut runner = runner(&gate, "1h").await;
        let calls = held(&gate, &runner.client().await, 4).await;
        let functions = gate.holds(4).await;
        runner.signal(signal);
        runner.logged("draining").await;
        runner.signal(signal);
        assert_eq!(runner.ended().await.code(), Some(code));
        eventually("no function is left", || {
            (!functions.iter().copied().any(exists)).then_some(())
        })
        .await;
        assert_no_scratch(&runner);
        for call in calls {
            assert!(call.await.unwrap().is_err());
        }
    }
}
