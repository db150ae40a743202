//! How long a function whose pods do not start is left alone.

use std::time::Duration;

use runner_core::EvaluationError;

use crate::{Time, limits::Limits};

/// What went wrong with a function's starts lately.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Failure>,
}

#[derive(Debug)]
pub(crate) struct Failure {
    /// No pod is created before.
    pub(crate) retry_at: Time,
    /// No pod that nobody waits for is created before.
    pub(crate) unasked_at: Time,
    /// Forgotten then, if nothing else failed.
    pub(crate) forget_at: Time,
    /// Whether waiting for the next try helps anybody.
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

    /// The failure that forbids a start now.
    pub(crate) fn active(&self, now: Time) -> Option<&Failure> {
        self.last.as_ref().filter(|failure| now < failure.retry_at)
    }

    /// When a pod may be started that nobody waits for, if not now.
    pub(crate) fn unasked_after(&self, now: Time) -> Option<Time> {
        let at = self.last.as_ref()?.unasked_at;
        (now < at).then_some(at)
    }

    /// The failure that is remembered, in force or not.
    pub(crate) fn last(&self) -> Option<&Failure> {
        self.last.as_ref()
    }

    /// A pod worked, or what pods are made from changed.
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
    fn waits_double_up_to_the_longest() {
        let (first, longest) = (Duration::from_secs(1), Duration::from_secs(60));
        let waits = [0, 1, 2, 5, 6, 31, 32, u32::MAX].map(|n| delay(n, first, longest).as_secs());
        assert_eq!(waits, [1, 2, 4, 32, 60, 60, 60, 60]);
    }
}
