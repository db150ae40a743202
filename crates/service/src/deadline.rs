//! The caller's deadline, from the `grpc-timeout` header.

use std::time::{Duration, Instant};

use http::HeaderMap;

/// Time reserved for the response to reach the caller before its deadline (100 ms, or a tenth of
/// the timeout if that is less).
const RESPONSE_MARGIN: Duration = Duration::from_millis(100);

/// Returns the latest time to answer, or none if the caller sets no deadline.
pub(crate) fn from_headers(headers: &HeaderMap, now: Instant) -> Option<Instant> {
    let timeout = parse(headers.get("grpc-timeout")?.to_str().ok()?)?;
    now.checked_add(timeout - RESPONSE_MARGIN.min(timeout / 10))
}

/// Parses at most eight digits and a unit.
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
    fn ignores_malformed_timeouts() {
        for text in ["", "S", "5", "5x", "-5S", "123456789S", "µ"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn answers_before_the_callers_deadline() {
        let now = Instant::now();
        let mut headers = HeaderMap::new();
        assert_eq!(from_headers(&headers, now), None);
        headers.insert("grpc-timeout", "1S".parse().unwrap());
        assert_eq!(
            from_headers(&headers, now),
            Some(now + Duration::from_millis(900))
        );
        headers.insert("grpc-timeout", "10m".parse().unwrap());
        assert_eq!(
            from_headers(&headers, now),
            Some(now + Duration::from_millis(9))
        );
    }
}
