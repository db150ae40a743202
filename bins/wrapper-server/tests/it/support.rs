//! What the tests share: a wrapper in surroundings of a test's choice, its clients, and a look at
//! what it holds. Clients, gates and that look are those of the runner's tests.

#[path = "../../../function-runner/tests/it/support/client.rs"]
#[allow(dead_code, reason = "the runner's tests use all of it")]
mod client;
#[path = "../../../function-runner/tests/it/support/gate.rs"]
mod gate;
#[path = "../../../function-runner/tests/it/support/held.rs"]
#[allow(dead_code, reason = "the runner's tests use all of it")]
mod held;
mod pod_limit;
mod programs;
mod root;
mod setup;
mod wrapper;

pub use client::{Answer, Client, Request, error_of, list_of};
pub use gate::{Gate, exists};
pub use pod_limit::PodLimit;
pub use programs::{repository, set_label, set_namespace, wrapper_for_arm, wrapper_server};
pub use root::Root;
pub use setup::Setup;
pub use wrapper::{Ended, Wrapper};

use std::time::{Duration, Instant};

/// Nothing that a test waits for takes this long on a machine that works.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A small resource list.
pub const LIST: &str = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings # kept
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  data: {label: tier, value: front, namespace: there}
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

/// The log of a success, as text.
pub fn log_of(answer: Answer) -> String {
    let answer = answer.unwrap_or_else(|status| panic!("{status:?}"));
    String::from_utf8(answer.log.to_vec()).unwrap()
}
