//! Back-off for functions whose pods do not start.
//!
//! Not `backon`: the pool needs the time left at a virtual time, not an iterator of delays.

use std::time::Duration;

use runner_core::EvaluationError;

use crate::{Time, limits::Limits};

/// The recent start failures of a function.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Failure {
    /// Earliest time at which a pod is created.
    pub(crate) retry_at: Time,
    /// Earliest time at which a pod without a waiting request is created.
    pub(crate) unasked_at: Time,
    /// Time at which the failure is forgotten, unless another one follows.
    pub(crate) forget_at: Time,
    /// Whether the failure is transient, so that requests may wait for the next attempt.
    pub(crate) passing: bool,
    pub(crate) error: EvaluationError,
}

// === impl Backoff ===

impl Backoff {
    pub(crate) fn failed(
        &mut self,
        now: Time,
        passing: bool,
        error: EvaluationError,
        limits: &Limits,
    ) -> &Failure {
        let (first, longest) = if passing {
            limits.retry_backoff
        } else {
            limits.start_backoff
        };
        let retry_at = now + delay(self.failures, first, longest);
        let unasked_at = now + delay(self.failures, first, longest.max(limits.warm_backoff));
        self.failures = self.failures.saturating_add(1);
        self.last.insert(Failure {
            retry_at,
            unasked_at,
            forget_at: unasked_at.max(retry_at) + longest,
            passing,
            error,
        })
    }

    /// Returns the failure that forbids a start now.
    pub(crate) fn active(&self, now: Time) -> Option<&Failure> {
        self.last.as_ref().filter(|failure| now < failure.retry_at)
    }

    /// Returns the earliest time of a start without a waiting request, or `None` if that is now.
    pub(crate) fn unasked_after(&self, now: Time) -> Option<Time> {
        let at = self.last.as_ref()?.unasked_at;
        (now < at).then_some(at)
    }

    /// Returns the last failure, whether or not it still forbids a start.
    pub(crate) fn last(&self) -> Option<&Failure> {
        self.last.as_ref()
    }

    /// Forgets all failures, because a pod served a request or the template changed.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn forget(&mut self, now: Time) {
        if self
            .last
            .as_ref()
            .is_some_and(|failure| failure.forget_at <= now)
        {
            self.reset();
        }
    }
}

fn delay(failures: u32, first: Duration, longest: Duration) -> Duration {
    first
        .saturating_mul(1_u32.checked_shl(failures).unwrap_or(u32::MAX))
        .min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_the_delay_up_to_the_maximum() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let waits = [0, 1, 2, 5, 6, 31, 32, u32::MAX].map(|n| delay(n, first, longest).as_secs());
        assert_eq!(waits, [1, 2, 4, 32, 60, 60, 60, 60]);
    }
}
