//! What the tests share: a runner with the functions a test writes, its clients, and a look at
//! what it holds.

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

/// Nothing that a test waits for takes this long on a machine that works.
pub const LIMIT: Duration = Duration::from_secs(30);

/// A small resource list.
pub const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings # kept
";

/// Looks again and again until something is there.
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
