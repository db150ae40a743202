//! Durations, as users write and read them.
//!
//! Flags and configuration use Go's format (`1h30m`), which existing installations contain. `krm`
//! also accepts blanks and units as words (`1h 30min`, `2 days`).

use std::{fmt, time::Duration};

/// The reason why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed duration {text:?}: {why}")]
pub struct BadDuration {
    text: String,
    why: &'static str,
}

/// Shows a duration for people: `1h 30m`, `1s 500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayDuration(pub Duration);

/// A unit of time: the ways to write it, and its length in nanoseconds.
type Unit = (&'static [&'static str], u128);

const SECOND: u128 = 1_000_000_000;
const DAY: u128 = 24 * 3600 * SECOND;

/// The units of Go.
const GO_UNITS: &[Unit] = &[
    (&["ns"], 1),
    (&["us", "µs", "μs"], 1_000),
    (&["ms"], 1_000_000),
    (&["s"], SECOND),
    (&["m"], 60 * SECOND),
    (&["h"], 3600 * SECOND),
];

/// Further units of `krm`. A month has 30.44 days, a year 365.25.
const WORD_UNITS: &[Unit] = &[
    (&["nanos", "nsec"], 1),
    (&["usec"], 1_000),
    (&["millis", "msec"], 1_000_000),
    (&["seconds", "second", "secs", "sec"], SECOND),
    (&["minutes", "minute", "mins", "min"], 60 * SECOND),
    (&["hours", "hour", "hrs", "hr"], 3600 * SECOND),
    (&["days", "day", "d"], DAY),
    (&["weeks", "week", "wks", "wk", "w"], 7 * DAY),
    (&["months", "month", "M"], 3044 * DAY / 100),
    (&["years", "year", "yrs", "yr", "y"], 36525 * DAY / 100),
];

/// Parses a duration of one or more numbers with units, such as `1h30m` or `1.5s`, or a bare `0`.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(runner_core::parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
/// ```
///
/// # Errors
/// The text has another format, or is negative: no setting has a meaning for that.
pub fn parse_duration(text: &str) -> Result<Duration, BadDuration> {
    parse(text, text, &[GO_UNITS])
}

/// Parses a duration as [`parse_duration`] does, and also with blanks and with units as words.
///
/// # Errors
/// The text has another format, or is negative.
pub fn parse_worded_duration(text: &str) -> Result<Duration, BadDuration> {
    let compact: String = text.split_whitespace().collect();
    parse(text, &compact, &[GO_UNITS, WORD_UNITS])
}

fn parse(text: &str, compact: &str, units: &[&[Unit]]) -> Result<Duration, BadDuration> {
    let bad = |why| BadDuration {
        text: text.to_owned(),
        why,
    };
    let mut rest = compact.strip_prefix('+').unwrap_or(compact);
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
        let mut units = units.iter().copied().flatten();
        let Some((_, scale)) = units.find(|(names, _)| names.contains(&unit)) else {
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

// === impl DisplayDuration ===

impl fmt::Display for DisplayDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0.as_secs(), u64::from(self.0.subsec_nanos()));
        if self.0.is_zero() {
            return f.write_str("0s");
        }
        let days = seconds / 86_400;
        let mut separator = "";
        for (amount, unit) in [
            (days, if days == 1 { "day" } else { "days" }),
            (seconds / 3600 % 24, "h"),
            (seconds / 60 % 60, "m"),
            (seconds % 60, "s"),
            (nanos / 1_000_000, "ms"),
            (nanos / 1_000 % 1_000, "us"),
            (nanos % 1_000, "ns"),
        ] {
            if amount > 0 {
                write!(f, "{separator}{amount}{unit}")?;
                separator = " ";
            }
        }
        Ok(())
    }
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

    #[rstest]
    #[case("0", 0)]
    #[case("5m", 300)]
    #[case(" 1h 30min ", 5_400)]
    #[case("2 days 1 hr", 176_400)]
    #[case("1week", 604_800)]
    #[case("1M", 2_630_016)]
    #[case("1y", 31_557_600)]
    fn parses_units_as_words(#[case] text: &str, #[case] seconds: u64) {
        assert_eq!(
            parse_worded_duration(text),
            Ok(Duration::from_secs(seconds))
        );
    }

    #[rstest]
    #[case(0, "0s")]
    #[case(5_400_000_000_000, "1h 30m")]
    #[case(1_500_000_000, "1s 500ms")]
    #[case(86_400_000_000_000, "1day")]
    #[case(176_400_000_000_000, "2days 1h")]
    #[case(1_002, "1us 2ns")]
    fn shows_every_unit_that_is_not_zero(#[case] nanos: u64, #[case] text: &str) {
        let duration = Duration::from_nanos(nanos);
        assert_eq!(DisplayDuration(duration).to_string(), text);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,40}") {
            let _ = parse_duration(&text);
            let _ = parse_worded_duration(&text);
        }

        #[test]
        fn parses_what_it_shows(nanos: u64) {
            let duration = Duration::from_nanos(nanos);
            let shown = DisplayDuration(duration).to_string();
            prop_assert_eq!(parse_worded_duration(&shown), Ok(duration));
        }

        #[test]
        fn whole_units_are_exact(hours in 0u64..10_000, minutes in 0u64..60, seconds in 0u64..60) {
            let text = format!("{hours}h{minutes}m{seconds}s");
            let expected = Duration::from_secs(hours * 3600 + minutes * 60 + seconds);
            prop_assert_eq!(parse_duration(&text), Ok(expected));
        }
    }
}
