//! Tests with many concurrent callers that cancel half of their calls.

use std::time::Duration;

use futures::{StreamExt, stream::FuturesUnordered};
use runner_test_support::{Client, LIST, Request, eventually, exists, list_of};

use crate::support::{Runner, Setup};

const CALLERS: usize = 64;
const CALLS: usize = 10;

/// Runs a caller that cancels every other call at a random time.
async fn caller(client: Client, number: usize) -> usize {
    let mut answered = 0;
    for call in 0..CALLS {
        let list = format!("{LIST}# caller {number}, call {call}\n");
        let evaluation = client.send(Request::of("cat").list(list.clone()));
        if call % 2 == 0 {
            assert_eq!(list_of(evaluation.await), list, "somebody else's answer");
            answered += 1;
        } else {
            let patience = Duration::from_micros(fastrand::u64(0..200_000));
            let _ = tokio::time::timeout(patience, evaluation).await;
        }
    }
    answered
}

async fn crowd(runner: &Runner) {
    // A few connections, each shared by many callers, as real clients do.
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(runner.client().await);
    }
    let callers: FuturesUnordered<_> = (0..CALLERS)
        .map(|number| tokio::spawn(caller(clients[number % clients.len()].clone(), number)))
        .collect();
    let answered: Vec<_> = callers.map(Result::unwrap).collect().await;
    assert_eq!(answered.into_iter().sum::<usize>(), CALLERS * CALLS / 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaves_nothing_behind_after_many_canceled_calls() {
    for standby in [0, 1] {
        let runner = Setup::with("cat", "cat")
            .flag(format!("--standby={standby}"))
            .start()
            .await;
        let client = runner.client().await;
        client.call("cat").await.unwrap();
        // Starting a process needs more descriptors for a moment: wait until the counts are stable.
        let mut looks = Vec::new();
        let before = eventually("it is at rest", || {
            looks.push(runner.resources());
            let last = looks.iter().rev().take(10);
            let steady = looks.len() >= 10 && last.clone().all(|look| Some(look) == looks.last());
            let at_rest = steady && looks.last()?.children == standby;
            at_rest.then(|| looks.pop()).flatten()
        })
        .await;
        crowd(&runner).await;
        eventually(&format!("it holds {before:?} again"), || {
            runner.resources() == before
        })
        .await;
        let pid = runner.pid();
        drop(runner);
        assert!(!exists(pid));
    }
}
