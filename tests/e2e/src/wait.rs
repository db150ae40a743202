//! Waits for conditions, with a limit.

use std::{
    panic::Location,
    time::{Duration, Instant},
};

/// Time limit for every wait; far more than is needed, because only failing tests wait that long.
pub const LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(20);

/// Waits until a condition is true.
///
/// # Panics
///
/// If the condition is not true within [`LIMIT`]; the message contains the caller's location.
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
