//! What holds for all functions alike.

use std::time::Duration;

use crate::Settings;

/// The pool's own settings.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Requests that may wait for one function (`--max-queue-per-function`).
    pub max_queue: usize,
    /// How long a pod may take until it is ready (`--pod-ready-timeout`).
    pub ready_timeout: Duration,
    /// How long a pod that lost a call has to answer a probe.
    pub probe_timeout: Duration,
    /// How often a request whose pod was lost is tried again on another (`--max-grpc-retries`).
    pub max_retries: u32,
    /// Functions that start a pod at a time for nobody in particular: warm-up and roll-over.
    pub max_background_starts: usize,
    /// How long a request without a deadline waits while the API server refuses to answer.
    pub patience: Duration,
    /// First and longest wait after a start that failed for the function's own reasons.
    pub start_backoff: (Duration, Duration),
    /// First and longest wait after a start that failed for passing reasons.
    pub retry_backoff: (Duration, Duration),
    /// Longest wait until a failed start is tried again for a function that nobody calls.
    pub warm_backoff: Duration,
    /// `reclaim-after` is written when it is at least this much behind (or an eighth of the TTL, if
    /// that is less): what a replica must see to know that another uses the pod.
    pub extend_step: Duration,
    /// Extensions are gathered for this long and written together.
    pub extend_batch: Duration,
    /// The settings of functions known only by their pods.
    pub adopted: Settings,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_queue: 256,
            ready_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            max_retries: 2,
            max_background_starts: 8,
            patience: Duration::from_secs(60),
            start_backoff: (Duration::from_secs(1), Duration::from_secs(60)),
            retry_backoff: (Duration::from_millis(200), Duration::from_secs(10)),
            warm_backoff: Duration::from_secs(5 * 60),
            extend_step: Duration::from_secs(60),
            extend_batch: Duration::from_secs(1),
            adopted: Settings::default(),
        }
    }
}

impl Limits {
    pub(crate) fn step(&self, ttl: Duration) -> Duration {
        self.extend_step.min(ttl / 8)
    }

    /// How long after another replica's last sign of use a pod may count as unused by it. Twice the
    /// step: a replica that uses a pod writes once a step, and the write takes a while.
    pub(crate) fn quiet(&self, ttl: Duration) -> Duration {
        self.step(ttl) * 2 + self.extend_batch
    }
}
