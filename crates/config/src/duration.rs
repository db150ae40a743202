//! Parses durations in Go's format: `30m`, `1h30m`, `500ms`.

use std::time::Duration;

/// The reason why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed duration {text:?}: {why}")]
pub struct BadDuration {
    text: String,
    why: &'static str,
}

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Parses a duration of one or more numbers with units, such as `1h30m` or `1.5s`, or a bare `0`.
///
/// Negative durations are refused: no setting has a meaning for them.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    let bad = |why| BadDuration {
        text: text.to_owned(),
        why,
    };
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.starts_with('-') {
        return Err(bad("it is negative"));
    }
    if rest.is_empty() {
        return Err(bad("it is empty: write a number and a unit, such as 30m"));
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let number_ends = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(number_ends);
        let unit_ends = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_ends);
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(bad("units are h, m, s, ms, us and ns, as in 1h30m"));
        };
        let part = scaled(number, *scale).ok_or_else(|| bad("it has a malformed number"))?;
        nanos = nanos
            .checked_add(part)
            .ok_or_else(|| bad("it is too long"))?;
        rest = after;
    }
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .map_err(|_| bad("it is too long"))
}

/// Returns `number × scale` for a decimal number, truncated to whole nanoseconds.
fn scaled(number: &str, scale: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanos = whole.checked_mul(scale)?;
    let mut weight = scale;
    for digit in fraction.bytes() {
        weight /= 10;
        nanos = nanos.checked_add(weight * u128::from(digit - b'0'))?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("0", 0)]
    #[case("0s", 0)]
    #[case("30m", 1_800_000_000_000)]
    #[case("1h30m", 5_400_000_000_000)]
    #[case("1h0m1s", 3_601_000_000_000)]
    #[case("500ms", 500_000_000)]
    #[case("1.5s", 1_500_000_000)]
    #[case(".5m", 30_000_000_000)]
    #[case("3.s", 3_000_000_000)]
    #[case("2us", 2_000)]
    #[case("2µs", 2_000)]
    #[case("7ns", 7)]
    #[case("+1s", 1_000_000_000)]
    fn parses_durations_as_go_does(#[case] text: &str, #[case] nanos: u64) {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)));
    }

    #[rstest]
    #[case("", "empty")]
    #[case("30", "units")]
    #[case("30 m", "units")]
    #[case("m", "malformed number")]
    #[case("1.2.3s", "malformed number")]
    #[case(".s", "malformed number")]
    #[case("1d", "units")]
    #[case("-5m", "negative")]
    #[case("99999999999h", "too long")]
    fn explains_a_malformed_duration(#[case] text: &str, #[case] says: &str) {
        let error = parse_duration(text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = parse_duration(&text);
        }

        #[test]
        fn whole_units_are_exact(hours in 0u64..10_000, minutes in 0u64..60, seconds in 0u64..60) {
            let text = format!("{hours}h{minutes}m{seconds}s");
            let expected = Duration::from_secs(hours * 3600 + minutes * 60 + seconds);
            prop_assert_eq!(parse_duration(&text), Ok(expected));
        }
    }
}
