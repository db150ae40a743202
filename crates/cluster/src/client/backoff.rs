//! Back-off between attempts to restart a failed watch.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use kube::runtime::utils::Backoff;

/// Longest wait, kept short because changes go unnoticed meanwhile and callers wait for them.
const LONGEST: Duration = Duration::from_secs(5);

/// Exponential waits; jitter adds up to the same time again.
const WAITS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(400))
    .with_max_delay(Duration::from_millis(2500))
    .without_max_times()
    .with_jitter();

/// Exponential back-off, capped at 5 s, with jitter so that replicas do not retry in step.
///
/// It starts over by itself if a retry is not followed by a failure within 5 s.
#[derive(Debug)]
pub(crate) struct WatchBackoff {
    waits: ExponentialBackoff,
    /// End of the last wait.
    retried: Option<Instant>,
}

// === impl WatchBackoff ===

impl WatchBackoff {
    fn wait(&mut self, now: Instant) -> Duration {
        if self.retried.is_some_and(|retried| now >= retried + LONGEST) {
            self.waits = WAITS.build();
        }
        let wait = self.waits.next().unwrap_or(LONGEST);
        self.retried = Some(now + wait);
        wait
    }
}

impl Default for WatchBackoff {
    fn default() -> Self {
        Self {
            waits: WAITS.build(),
            retried: None,
        }
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.wait(Instant::now()))
    }
}

impl Backoff for WatchBackoff {
    /// Does nothing: a watcher calls this at its start, before the API server has accepted it.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_the_wait_until_a_pause_without_failures() {
        let mut backoff = WatchBackoff::default();
        let mut now = Instant::now();
        for shortest in [400, 800, 1600, 2500, 2500, 2500] {
            let shortest = Duration::from_millis(shortest);
            let wait = backoff.wait(now);
            backoff.reset();
            assert!(wait >= shortest && wait <= shortest * 2, "{wait:?}");
            assert!(wait <= LONGEST, "{wait:?}");
            now += wait;
        }
        now += LONGEST;
        let first = backoff.wait(now);
        assert!(first <= Duration::from_millis(800), "{first:?}");
    }
}
