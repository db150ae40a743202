//! Limits how often the same log line is written.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use tracing::callsite::Identifier;

const QUIET_TIME: Duration = Duration::from_secs(300);

/// A rate limiter that admits one event per callsite in 5 minutes.
#[derive(Default)]
pub(super) struct Repeats {
    spoken: Mutex<HashMap<Identifier, Instant>>,
}

// === impl Repeats ===

impl Repeats {
    pub(super) fn admit(&self, place: Identifier, now: Instant) -> bool {
        let mut spoken = self.spoken.lock().unwrap_or_else(PoisonError::into_inner);
        match spoken.get(&place) {
            Some(last) if now.saturating_duration_since(*last) < QUIET_TIME => false,
            _ => {
                spoken.insert(place, now);
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
    fn admits_a_callsite_again_after_the_quiet_time() {
        let here =
            tracing::callsite! { name: "here", kind: tracing::metadata::Kind::EVENT, fields: };
        let there =
            tracing::callsite! { name: "there", kind: tracing::metadata::Kind::EVENT, fields: };
        let (here, there) = (here.metadata().callsite(), there.metadata().callsite());
        let repeats = Repeats::default();
        let start = Instant::now();
        let just_before = start + QUIET_TIME - Duration::from_millis(1);

        assert!(repeats.admit(here.clone(), start));
        assert!(!repeats.admit(here.clone(), just_before));
        assert!(
            repeats.admit(there, just_before),
            "places do not share their quiet time"
        );
        assert!(repeats.admit(here, start + QUIET_TIME));
    }
}
