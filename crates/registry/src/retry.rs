//! Retries of requests to registries.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBuilder};
use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};

/// Exponential delays; jitter adds up to the same time again, so that many runners do not retry at
/// the same time.
const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(100))
    .with_max_delay(Duration::from_millis(25_600))
    .without_max_times()
    .with_jitter();
/// Maximum delay (24 h) that `Retry-After` can set: a longer one could overflow an `Instant`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns whether the same request may succeed later.
pub(crate) fn is_retryable(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
        )
}

/// Returns the delay of a `Retry-After` header, which is in seconds or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let delay = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?;
            date.duration_since(now).unwrap_or(Duration::ZERO)
        }
    };
    Some(delay.min(MAX_RETRY_AFTER))
}

/// Returns the delays after the first, second, third … attempt, without an end.
pub(crate) fn backoff() -> impl Iterator<Item = Duration> {
    DELAYS.build()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("7", Some(7))]
    #[case(" 0 ", Some(0))]
    #[case("Thu, 01 Jan 1970 00:01:40 GMT", Some(40))]
    #[case("Thu, 01 Jan 1970 00:00:00 GMT", Some(0))]
    #[case("18446744073709551615", Some(86_400))]
    #[case("Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400))]
    #[case("soon", None)]
    fn parses_retry_after_as_seconds_or_a_date(#[case] text: &str, #[case] seconds: Option<u64>) {
        let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(60);
        assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs));
    }

    #[test]
    fn doubles_the_delay_with_every_attempt() {
        for (attempt, delay) in backoff().take(12).enumerate() {
            let max = Duration::from_millis(200) * (1 << attempt.min(8));
            assert!(delay >= max / 2 && delay <= max, "{delay:?}");
        }
    }
}
