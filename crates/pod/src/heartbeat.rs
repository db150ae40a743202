//! Detects that the driver no longer runs: it is stuck in a computation, or it panicked.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Time without a turn of the driver's loop after which the driver counts as stuck (30 s).
///
/// The loop turns at least every 5 s, so a driver that takes this long is not merely busy.
const STUCK_AFTER: Duration = Duration::from_secs(30);

/// The time of the last turn of the driver's loop.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    started: Instant,
    /// Milliseconds from `started` to the last turn.
    last: AtomicU64,
}

// === impl Heartbeat ===

impl Heartbeat {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            started: now,
            last: AtomicU64::new(0),
        }
    }

    /// Records a turn of the driver's loop.
    pub(crate) fn beat(&self, now: Instant) {
        self.last.store(self.milliseconds(now), Ordering::Relaxed);
    }

    /// Returns for how long the driver has not run, if it counts as stuck.
    pub(crate) fn stuck_for(&self, now: Instant) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed);
        let silent = Duration::from_millis(self.milliseconds(now).saturating_sub(last));
        (silent > STUCK_AFTER).then_some(silent)
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.started).as_millis();
        u64::try_from(elapsed).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_driver_that_has_not_run_for_30_seconds() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let heartbeat = Heartbeat::new(start);
        assert_eq!(heartbeat.stuck_for(at(30)), None);
        heartbeat.beat(at(30));
        assert_eq!(heartbeat.stuck_for(at(60)), None);
        assert_eq!(heartbeat.stuck_for(at(61)), Some(Duration::from_secs(31)));
        heartbeat.beat(at(62));
        assert_eq!(heartbeat.stuck_for(at(62)), None);
    }
}
