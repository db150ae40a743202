//! Shared parts of the tests: a wrapper in a configurable environment, its clients, and the
//! resources that it holds. Some modules are shared with the tests of the runner.

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

/// Time limit of everything that a test waits for, 60 s.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A small ResourceList.
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

/// Returns the log of a successful response as text.
pub fn log_of(answer: Answer) -> String {
    let answer = answer.unwrap_or_else(|status| panic!("{status:?}"));
    String::from_utf8(answer.log.to_vec()).unwrap()
}
