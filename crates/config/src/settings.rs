//! Settings of a function's pods, which override the runner's defaults.

use std::{sync::Arc, time::Duration};

use runner_core::{BadDuration, parse_duration};
use serde::Serialize;

use crate::Source;

/// Shortest time that an idle pod is kept: 1 s. Less would remove pods before they are used.
pub const SHORTEST_TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// Settings of one function's pods; `None` means the runner's default. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSettings {
    /// Time that an idle pod is kept; at least [`SHORTEST_TIME_TO_LIVE`].
    pub time_to_live: Option<Duration>,
    /// Number of pods kept for a warm version, whether used or not; never zero.
    pub min_pods: Option<u32>,
    /// Largest number of pods at the same time; never zero.
    pub max_pods: Option<u32>,
    /// Number of evaluations that may wait for a pod before another is started; never zero.
    pub max_queue: Option<u32>,
    /// Overrides of the pod template; the file's `resources` are overrides of the container.
    pub overrides: Option<Arc<PodOverrides>>,
    /// Source of the settings.
    pub source: Option<Source>,
}

/// Overrides of the pod template: the `templateOverrides` of a `FunctionConfig` as JSON.
///
/// The table stores text, because Kubernetes types belong to the crate that renders pods. Values
/// of one type write their fields in a fixed order, so equal overrides have equal texts on every
/// replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOverrides {
    json: String,
}

/// The error for a number that is negative or larger than a `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a count")]
pub struct BadCount(i64);

// === impl PodOverrides ===

impl PodOverrides {
    /// Serializes overrides, which must have the fields of `templateOverrides`.
    ///
    /// # Panics
    /// Panics if `overrides` contains a map with keys that are not strings.
    #[must_use]
    pub fn new(overrides: &impl Serialize) -> Self {
        let json = serde_json::to_string(overrides).expect("overrides have only string keys");
        Self { json }
    }

    /// Returns the overrides as JSON.
    #[must_use]
    pub fn as_json(&self) -> &str {
        &self.json
    }
}

/// Parses a time to live; returns it with a problem to report if it is too short.
///
/// A time that is too short is replaced: 0 by the value of `--pod-ttl`, as in the Go runner, other
/// values by [`SHORTEST_TIME_TO_LIVE`].
///
/// # Errors
/// Fails if the text is not a duration.
pub fn parse_time_to_live(text: &str) -> Result<(Option<Duration>, Option<String>), BadDuration> {
    let parsed = parse_duration(text)?;
    if parsed.is_zero() {
        let problem = format!("{text} is too short: the value of --pod-ttl is used");
        return Ok((None, Some(problem)));
    }
    let problem = (parsed < SHORTEST_TIME_TO_LIVE)
        .then(|| format!("{text} is too short: {SHORTEST_TIME_TO_LIVE:?} is used"));
    Ok((Some(parsed.max(SHORTEST_TIME_TO_LIVE)), problem))
}

/// Converts a count in which zero means "not set", as in earlier runners.
///
/// # Errors
/// Fails if the number is negative or larger than a `u32`.
pub fn parse_count(value: i64) -> Result<Option<u32>, BadCount> {
    match u32::try_from(value) {
        Ok(0) => Ok(None),
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(BadCount(value)),
    }
}

/// Returns whether the text is a Kubernetes quantity.
///
/// A quantity is a decimal number, then a binary or decimal suffix or an exponent.
#[must_use]
pub fn is_quantity(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(suffix) = after_decimal(number) else {
        return false;
    };
    match suffix {
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => true,
        "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" => true,
        _ => suffix.strip_prefix(['e', 'E']).is_some_and(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            after_decimal(digits) == Some("")
        }),
    }
}

/// Returns the text after a decimal number such as `12`, `1.5`, `.5` or `1.`.
fn after_decimal(text: &str) -> Option<&str> {
    let whole = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = match whole.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => whole,
    };
    let number = &text[..text.len() - rest.len()];
    number.bytes().any(|b| b.is_ascii_digit()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("100m", true)]
    #[case("1", true)]
    #[case("1.5", true)]
    #[case(".5Gi", true)]
    #[case("256Mi", true)]
    #[case("1e3", true)]
    #[case("1E-3", true)]
    #[case("+1k", true)]
    #[case("1E", true)]
    #[case("", false)]
    #[case(".", false)]
    #[case("Mi", false)]
    #[case("256 Mi", false)]
    #[case("256MB", false)]
    #[case("1K", false)]
    #[case("1e", false)]
    fn accepts_the_quantities_of_kubernetes(#[case] text: &str, #[case] good: bool) {
        assert_eq!(is_quantity(text), good);
    }
}
