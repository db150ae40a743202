//! Waiting for things to come true, with a limit.

use std::{
    panic::Location,
    time::{Duration, Instant},
};

/// How long anything on the test bed may take. Far more than it does: only failing tests wait.
pub const LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(20);

/// Asks until the answer is yes; fails the test where it was called when the limit has passed.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let asked_at = Location::caller();
    async move {
        let started = Instant::now();
        while !is_so().await {
            assert!(
                started.elapsed() < LIMIT,
                "{what}: not within {} s, waited for at {asked_at}",
                LIMIT.as_secs()
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}
