//! The time of the pool, which comes with each event.

use std::{
    ops::Add,
    time::{Duration, Instant, SystemTime},
};

/// A moment, counted from the Unix epoch so that `reclaim-after` means the same to every replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

/// A fixed relation between the monotonic clock and [`Time`].
///
/// It is taken once, so that a step of the wall clock neither expires requests nor ages pods.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    instant: Instant,
    time: Time,
}

// === impl Time ===

impl Time {
    /// Returns the moment `since_epoch` after the Unix epoch.
    #[must_use]
    pub const fn from_unix(since_epoch: Duration) -> Self {
        Self(since_epoch)
    }

    /// Returns the moment given by an annotation in Unix seconds.
    #[must_use]
    pub const fn from_unix_secs(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }

    /// Returns the whole seconds since the Unix epoch, as annotations hold them.
    #[must_use]
    pub const fn unix_secs(self) -> u64 {
        self.0.as_secs()
    }

    /// Returns the duration since `earlier`, or zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Rounds up to whole seconds, so that an annotation holds the same value.
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

    /// Adds and saturates: a TTL that is too large means "never" and does not panic.
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(rhs))
    }
}

// === impl Anchor ===

impl Anchor {
    /// Creates an anchor from the values of both clocks at the same moment.
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

    /// Converts an instant; instants before the anchor yield the anchor's time.
    #[must_use]
    pub fn time(&self, instant: Instant) -> Time {
        self.time + instant.saturating_duration_since(self.instant)
    }

    /// Converts a moment to an instant for a timer; `None` if it is too far in the future.
    #[must_use]
    pub fn instant(&self, time: Time) -> Option<Instant> {
        self.instant.checked_add(time.since(self.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_a_round_trip_through_an_annotation() {
        let time = Time::from_unix(Duration::from_millis(1_500)).to_next_second();
        assert_eq!(Time::from_unix_secs(time.unix_secs()), time);
        assert_eq!(time.unix_secs(), 2);
        assert_eq!(time.to_next_second(), time);
    }

    #[test]
    fn converts_between_instants_and_moments() {
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
