//! Waits for conditions, with a limit.

use std::{
    panic::Location,
    time::{Duration, Instant},
};

/// Time limit of everything that a test waits for, 60 s.
///
/// It is far longer than needed, because only failing tests wait that long.
pub const LIMIT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(10);

/// The result of one check of a condition: `true` or `Some` if it is met.
pub trait Condition {
    /// The value that the wait returns.
    type Value;

    /// Returns the value if the condition is met.
    fn met(self) -> Option<Self::Value>;
}

// === impl Condition ===

impl Condition for bool {
    type Value = ();

    fn met(self) -> Option<()> {
        self.then_some(())
    }
}

impl<T> Condition for Option<T> {
    type Value = T;

    fn met(self) -> Option<T> {
        self
    }
}

/// Polls every 10 ms until the condition is met, and returns its value.
///
/// # Panics
///
/// Panics if the condition is not met within [`LIMIT`]; the message names the caller's location.
#[track_caller]
pub fn eventually<C: Condition>(
    what: &str,
    mut check: impl FnMut() -> C,
) -> impl Future<Output = C::Value> {
    eventually_async(what, move || std::future::ready(check()))
}

/// Polls an asynchronous condition every 10 ms until it is met, and returns its value.
///
/// # Panics
///
/// Panics if the condition is not met within [`LIMIT`]; the message names the caller's location.
#[track_caller]
pub fn eventually_async<C: Condition>(
    what: &str,
    mut check: impl AsyncFnMut() -> C,
) -> impl Future<Output = C::Value> {
    let caller = Location::caller();
    async move {
        let started = Instant::now();
        loop {
            if let Some(value) = check().await.met() {
                return value;
            }
            assert!(
                started.elapsed() < LIMIT,
                "{what}: not met within {LIMIT:?}, waited for at {caller}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}
