//! Limits that apply to all functions.

use std::time::Duration;

use crate::Settings;

/// The settings of the pool itself.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum number of requests that wait for one function (`--max-queue-per-function`, 256).
    pub max_queue: usize,
    /// Time within which a pod must become ready (`--pod-ready-timeout`, 60 s).
    pub ready_timeout: Duration,
    /// Time within which a pod that lost a call must answer a probe (5 s).
    pub probe_timeout: Duration,
    /// Number of retries on other pods for a request whose pod was lost (`--max-grpc-retries`, 2).
    pub max_retries: u32,
    /// Number of functions that may start pods without a waiting request at the same time, for
    /// warm-up and template changes (8).
    pub max_background_starts: usize,
    /// Time that a request without a deadline waits while starts fail for transient reasons (60 s).
    pub patience: Duration,
    /// First and longest back-off after a start failure that is not transient (1 s, 60 s).
    pub start_backoff: (Duration, Duration),
    /// First and longest back-off after a transient start failure (200 ms, 10 s).
    pub retry_backoff: (Duration, Duration),
    /// Longest back-off after a failed start for a function without waiting requests (5 min).
    pub warm_backoff: Duration,
    /// Lag at which `reclaim-after` is written again (60 s, or an eighth of the TTL if that is
    /// less).
    ///
    /// Other replicas detect from the new value that the pod is in use.
    pub extend_step: Duration,
    /// Time for which extensions are collected before they are written together (1 s).
    pub extend_batch: Duration,
    /// Settings of functions that are known only from their pods.
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

    /// Returns the time after the last use by another replica at which that replica no longer
    /// counts as a user of the pod.
    ///
    /// It is twice the step, plus the batch time: a replica that uses a pod writes once per step,
    /// and the write takes a while.
    pub(crate) fn quiet(&self, ttl: Duration) -> Duration {
        self.step(ttl) * 2 + self.extend_batch
    }
}
