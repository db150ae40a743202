//! Durations of single calls.

use std::time::Duration;

/// A set of durations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<Duration>);

// === impl Samples ===

impl Samples {
    pub(crate) fn push(&mut self, sample: Duration) {
        self.0.push(sample);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the duration that `percent` % of the samples do not exceed, or zero without samples.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(rank).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.percentile(50)
    }
}

impl FromIterator<Self> for Samples {
    fn from_iter<I: IntoIterator<Item = Self>>(bags: I) -> Self {
        Self(bags.into_iter().flat_map(|bag| bag.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let mut samples = Samples::default();
        assert_eq!(samples.median(), Duration::ZERO);
        for milliseconds in (1..=100).rev() {
            samples.push(Duration::from_millis(milliseconds));
        }
        assert_eq!(samples.median(), Duration::from_millis(50));
        assert_eq!(samples.percentile(99), Duration::from_millis(99));
        assert_eq!(samples.percentile(100), Duration::from_millis(100));
    }
}
