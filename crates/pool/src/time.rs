//! The pool's time: passed in, never asked for.

use std::{
    ops::Add,
    time::{Duration, Instant, SystemTime},
};

/// A moment, counted from the Unix epoch so that `reclaim-after` means the same to every replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

/// Ties the monotonic clock to [`Time`] once, so that a step of the wall clock neither expires
/// requests nor ages pods.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    instant: Instant,
    time: Time,
}

// === impl Time ===

impl Time {
    /// The moment that long after the Unix epoch.
    #[must_use]
    pub const fn from_unix(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// The moment an annotation in Unix seconds names.
    #[must_use]
    pub const fn from_unix_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Whole seconds since the Unix epoch, as annotations hold them.
    #[must_use]
    pub const fn unix_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// How long after `earlier` this is; zero if it is not after.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// The next whole second: what survives a trip through an annotation unchanged.
    #[must_use]
    pub const fn to_next_second(self) -> Self {
        let seconds = self.0.as_secs();
        Self(Duration::from_secs(if self.0.subsec_nanos() == 0 {
            seconds
        } else {
            seconds + 1
        }))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    /// Saturates: an absurd TTL means "never", not a panic.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

// === impl Anchor ===

impl Anchor {
    /// Says that both clocks showed these values at one moment.
    #[must_use]
    pub fn new(instant: Instant, wall: SystemTime) -> Self {
        let since_epoch = wall
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            instant,
            time: Time(since_epoch),
        }
    }

    /// The pool's name for an instant. One before the anchor is the anchor itself.
    #[must_use]
    pub fn time(&self, instant: Instant) -> Time {
        self.time + instant.saturating_duration_since(self.instant)
    }

    /// The instant of a moment, for a timer; none if it is too far away to be one.
    #[must_use]
    pub fn instant(&self, time: Time) -> Option<Instant> {
        self.instant.checked_add(time.since(self.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_brings_back_the_same_moment() {
        let time = Time::from_unix(Duration::from_millis(1_500)).to_next_second();
        assert_eq!(Time::from_unix_secs(time.unix_secs()), time);
        assert_eq!(time.unix_secs(), 2);
        assert_eq!(time.to_next_second(), time);
    }

    #[test]
    fn an_anchor_goes_both_ways() {
        let start = Instant::now();
        let anchor = Anchor::new(start, SystemTime::UNIX_EPOCH + Duration::from_secs(100));
        let later = start + Duration::from_millis(2_500);
        assert_eq!(
            anchor.time(later),
            Time::from_unix(Duration::from_millis(102_500))
        );
        assert_eq!(anchor.instant(anchor.time(later)), Some(later));
        assert_eq!(anchor.instant(Time::from_unix(Duration::MAX)), None);
    }
}
