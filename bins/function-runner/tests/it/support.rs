//! Shared parts of the tests: a runner with the functions of a test, its clients, and the resources
//! that it holds.

mod client;
mod gate;
mod held;
mod runner;
mod setup;

pub use client::{Answer, Client, Request, error_of, list_of};
pub use gate::{Gate, exists};
pub use held::{Held, peak_memory};
pub use runner::{Ended, Runner};
pub use setup::Setup;

use std::time::{Duration, Instant};

/// Time limit of everything that a test waits for, 30 s.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A small ResourceList.
pub const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings # kept
";

/// Polls until `look` returns a value.
pub async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let limit = Instant::now() + LIMIT;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            Instant::now() < limit,
            "within {LIMIT:?} this did not come true: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
