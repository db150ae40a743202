//! How soon a watch that failed is tried again.

use std::time::{Duration, Instant, SystemTime};

use kube::runtime::utils::Backoff;

const FIRST: Duration = Duration::from_millis(500);

/// After trouble a watch is tried again this soon at the latest: things change while nobody looks,
/// and callers wait for them.
const LONGEST: Duration = Duration::from_secs(5);

/// Twice as long each time, up to five seconds, and a little off so that replicas do not all come
/// at once. It starts over by itself when a watch has gone well for a while.
#[derive(Debug, Default)]
pub struct Again {
    last: Option<(Instant, Duration)>,
}

// === impl Again ===

impl Again {
    fn wait(&mut self, now: Instant) -> Duration {
        let wait = match self.last {
            Some((failed, waited)) if now < failed + waited + LONGEST => (waited * 2).min(LONGEST),
            _ => FIRST,
        };
        self.last = Some((now, wait));
        wait
    }
}

impl Iterator for Again {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let off = f64::from(now.subsec_micros() % 1000) / 2000.0;
        Some(self.wait(Instant::now()).mul_f64(0.75 + off))
    }
}

impl Backoff for Again {
    /// A watcher says this as soon as it begins, before it knows whether it may: not a reason to
    /// hurry.
    fn reset(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_until_things_go_well() {
        let mut again = Again::default();
        let mut now = Instant::now();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let wait = again.wait(now);
            again.reset();
            waits.push(wait.as_millis());
            now += wait;
        }
        assert_eq!(waits, [500, 1000, 2000, 4000, 5000, 5000]);
        now += LONGEST;
        assert_eq!(again.wait(now), FIRST);
    }

    #[test]
    fn nobody_waits_much_longer_than_said() {
        let longest = Again::default().take(20).max();
        assert!(longest.is_some_and(|wait| wait <= LONGEST.mul_f64(1.25)));
    }
}
