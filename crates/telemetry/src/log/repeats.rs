//! Limits how often the same log line is written.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracing::callsite::Identifier;

/// Minimum time between two events of a callsite, 5 min.
const REPEAT_INTERVAL: Duration = Duration::from_secs(300);

/// A rate limiter that admits one event per callsite in 5 minutes.
#[derive(Default)]
pub(super) struct RepeatLimiter {
    last_admitted: Mutex<HashMap<Identifier, Instant>>,
}

// === impl RepeatLimiter ===

impl RepeatLimiter {
    /// Returns whether the event is the first of its callsite within the interval.
    pub(super) fn admit(&self, callsite: Identifier, now: Instant) -> bool {
        let mut last_admitted = self
            .last_admitted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match last_admitted.get(&callsite) {
            Some(last) if now.saturating_duration_since(*last) < REPEAT_INTERVAL => false,
            _ => {
                last_admitted.insert(callsite, now);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Callsite;

    use super::*;

    #[test]
    fn admits_a_callsite_again_after_the_interval() {
        let here =
            tracing::callsite! { name: "here", kind: tracing::metadata::Kind::EVENT, fields: };
        let there =
            tracing::callsite! { name: "there", kind: tracing::metadata::Kind::EVENT, fields: };
        let (here, there) = (here.metadata().callsite(), there.metadata().callsite());
        let limiter = RepeatLimiter::default();
        let start = Instant::now();
        let just_before = start + REPEAT_INTERVAL - Duration::from_millis(1);

        assert!(limiter.admit(here.clone(), start));
        assert!(!limiter.admit(here.clone(), just_before));
        assert!(
            limiter.admit(there, just_before),
            "callsites are limited independently"
        );
        assert!(limiter.admit(here, start + REPEAT_INTERVAL));
    }
}
