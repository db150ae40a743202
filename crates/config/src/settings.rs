//! How a function's pods are kept: the settings that override the runner's own defaults.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ResourceRequirements;

use crate::{BadDuration, Source, objects::TemplateOverrides, parse_duration};

/// Shortest time that an idle pod is kept. Less would remove pods before they are used.
pub const SHORTEST_TIME_TO_LIVE: Duration = Duration::from_secs(1);

/// Settings of one function's pods. What is `None` is the runner's default; cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSettings {
    /// How long an idle pod is kept; at least [`SHORTEST_TIME_TO_LIVE`].
    pub time_to_live: Option<Duration>,
    /// Number of pods kept for a warm version, whether used or not; never zero.
    pub min_pods: Option<u32>,
    /// The most pods at once; never zero.
    pub max_pods: Option<u32>,
    /// How many requests may wait for a pod before another is started; never zero.
    pub max_queue: Option<u32>,
    /// What differs from the pod template. The file's `resources` are those of the container here.
    pub overrides: Option<Arc<TemplateOverrides>>,
    /// Who says so.
    pub source: Option<Source>,
}

// === impl PodSettings ===

impl PodSettings {
    /// The resources of the function's container, where they are set.
    #[must_use]
    pub fn resources(&self) -> Option<&ResourceRequirements> {
        self.overrides
            .as_ref()?
            .container
            .as_ref()?
            .resources
            .as_ref()
    }
}

/// Parses a time to live. Returns it with the problem to report if it is too short and another one
/// is used: the value of `--pod-ttl` for 0, as the Go runner does, else the shortest one.
pub(crate) fn time_to_live(text: &str) -> Result<(Option<Duration>, Option<String>), BadDuration> {
    let parsed = parse_duration(text)?;
    if parsed.is_zero() {
        let problem = format!("{text} is too short: the value of --pod-ttl is used");
        return Ok((None, Some(problem)));
    }
    let problem = (parsed < SHORTEST_TIME_TO_LIVE)
        .then(|| format!("{text} is too short: {SHORTEST_TIME_TO_LIVE:?} is used"));
    Ok((Some(parsed.max(SHORTEST_TIME_TO_LIVE)), problem))
}

/// The first resource whose quantity Kubernetes would refuse.
pub(crate) fn malformed_quantity(resources: &ResourceRequirements) -> Option<(&str, &str)> {
    let lists = [&resources.requests, &resources.limits];
    lists
        .into_iter()
        .flatten()
        .flatten()
        .find(|(_, quantity)| !is_quantity(&quantity.0))
        .map(|(name, quantity)| (name.as_str(), quantity.0.as_str()))
}

/// A count where zero means "not set", as it always did in these places.
pub(crate) fn count(value: i64) -> Result<Option<u32>, String> {
    match u32::try_from(value) {
        Ok(0) => Ok(None),
        Ok(count) => Ok(Some(count)),
        Err(_) => Err(format!("{value} is not a count")),
    }
}

/// A Kubernetes quantity: a decimal number, then a binary or decimal suffix or an exponent.
fn is_quantity(text: &str) -> bool {
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

/// What follows a decimal number such as `12`, `1.5`, `.5` or `1.`.
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
    fn quantities_are_those_of_kubernetes(#[case] text: &str, #[case] good: bool) {
        assert_eq!(is_quantity(text), good);
    }
}
