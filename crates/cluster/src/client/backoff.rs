//! Back-off between attempts to restart a failed watch.

use std::time::{Duration, Instant, SystemTime};

use kube::runtime::utils::Backoff;

const FIRST: Duration = Duration::from_millis(500);

/// Longest wait, kept short because changes go unnoticed meanwhile and callers wait for them.
const LONGEST: Duration = Duration::from_secs(5);

/// Exponential back-off, capped at 5 s, with jitter so that replicas do not retry in step.
///
/// It starts over by itself if a retry is not followed by a failure within 5 s.
#[derive(Debug, Default)]
pub(crate) struct WatchBackoff {
    last: Option<(Instant, Duration)>,
}

// === impl WatchBackoff ===

impl WatchBackoff {
    fn wait(&mut self, now: Instant) -> Duration {
        let wait = match self.last {
            Some((failed, waited)) if now < failed + waited + LONGEST => (waited * 2).min(LONGEST),
            _ => FIRST,
        };
        self.last = Some((now, wait));
        wait
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let off = f64::from(now.subsec_micros() % 1000) / 2000.0;
        Some(self.wait(Instant::now()).mul_f64(0.75 + off))
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
        let mut waits = Vec::new();
        for _ in 0..6 {
            let wait = backoff.wait(now);
            backoff.reset();
            waits.push(wait.as_millis());
            now += wait;
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 5000, 5000]);
        now += LONGEST;
        assert_eq!(backoff.wait(now), FIRST);
    }

    #[test]
    fn limits_the_wait_including_jitter() {
        let longest = WatchBackoff::default().take(20).max();
        assert!(longest.is_some_and(|wait| wait <= LONGEST.mul_f64(1.25)));
    }
}
