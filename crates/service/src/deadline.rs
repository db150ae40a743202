//! The caller's deadline, from the `grpc-timeout` header.

use std::time::{Duration, Instant};

use http::HeaderMap;

/// The answer has to reach the caller before the caller stops listening.
const MARGIN: Duration = Duration::from_millis(100);

/// When to answer at the latest; none if the caller waits for ever.
pub(crate) fn of(headers: &HeaderMap, now: Instant) -> Option<Instant> {
    let timeout = parse(headers.get("grpc-timeout")?.to_str().ok()?)?;
    now.checked_add(timeout - MARGIN.min(timeout / 10))
}

/// At most eight digits and a unit.
fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let amount: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(amount * 3600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_in_every_unit() {
        for (text, seconds) in [("2H", 7200.0), ("3M", 180.0), ("4S", 4.0), ("5m", 0.005)] {
            assert_eq!(
                parse(text),
                Some(Duration::from_secs_f64(seconds)),
                "{text}"
            );
        }
        assert_eq!(parse("6u"), Some(Duration::from_micros(6)));
        assert_eq!(parse("7n"), Some(Duration::from_nanos(7)));
    }

    #[test]
    fn nonsense_is_no_deadline() {
        for text in ["", "S", "5", "5x", "-5S", "123456789S", "µ"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_answer_leaves_before_the_caller_does() {
        let now = Instant::now();
        let mut headers = HeaderMap::new();
        assert_eq!(of(&headers, now), None);
        headers.insert("grpc-timeout", "1S".parse().unwrap());
        assert_eq!(of(&headers, now), Some(now + Duration::from_millis(900)));
        headers.insert("grpc-timeout", "10m".parse().unwrap());
        assert_eq!(of(&headers, now), Some(now + Duration::from_millis(9)));
    }
}
