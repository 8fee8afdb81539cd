//! Decides whether and when a failed attempt is retried. Pure: the time and the random number are arguments, so that
//! the policy is tested without sleeping; transport.rs acts on it.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

use crate::transport::clock::{bounded, time_of_seconds};
use crate::wire::error::ErrorKind;

/// Pause before the first retry; the pause doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Maximum of the doubled pause.
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// Random share of the pause, so that clients that failed together do not retry together.
const JITTER: f64 = 0.25;
/// A longer `retry-after` is not waited for: the call fails immediately, and its error carries the value.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

/// Error codes that no retry can fix, whatever the status.
const NEVER_RETRIED_CODES: &[&str] = &["insufficient_quota"];

/// The facts about a failed attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure<'a> {
    pub(crate) kind: ErrorKind,
    /// Code and type of the error body.
    pub(crate) code: Option<&'a str>,
    pub(crate) error_type: Option<&'a str>,
    /// Headers of the response, if there was one.
    pub(crate) headers: Option<&'a HeaderMap>,
}

/// The circumstances that decide on a retry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryContext {
    /// Retries made so far.
    pub(crate) retries: u32,
    pub(crate) max_retries: u32,
    /// Time left of the call's total deadline.
    pub(crate) remaining: Duration,
    /// For `retry-after` as a date.
    pub(crate) now: SystemTime,
    /// Between 0 and 1; other values are clamped.
    pub(crate) random: f64,
}

/// The pause before the next attempt; none if the failure is final.
pub(crate) fn pause(failure: Failure<'_>, attempt: RetryContext) -> Option<Duration> {
    if attempt.retries >= attempt.max_retries || !is_retryable(failure) {
        return None;
    }
    let requested = failure.headers.and_then(|headers| retry_after(headers, attempt.now));
    let pause = match requested {
        Some(pause) if pause <= MAX_RETRY_AFTER => pause,
        Some(_) => return None,
        None => backoff(attempt.retries, attempt.random),
    };
    // A pause beyond the deadline would end in a timeout that hides the actual failure.
    (pause < attempt.remaining).then_some(pause)
}

pub(crate) fn is_retryable(failure: Failure<'_>) -> bool {
    let spent = |word: Option<&str>| word.is_some_and(|word| NEVER_RETRIED_CODES.contains(&word));
    if spent(failure.code) || spent(failure.error_type) {
        return false;
    }
    match failure.headers.and_then(|headers| headers.get("x-should-retry")).map(http::HeaderValue::as_bytes) {
        Some(b"true") => true,
        Some(b"false") => false,
        _ => failure.kind.is_retryable(),
    }
}

fn backoff(retries: u32, random: f64) -> Duration {
    let doubled = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(retries));
    let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
    doubled.min(MAX_PAUSE).mul_f64(1.0 - JITTER * random)
}

/// The wait that a response asks for: `retry-after-ms`, otherwise `retry-after` in seconds or as a date. None if
/// neither can be parsed. A date in the past means no wait, and no wait is longer than
/// [`MAX_TIME`](crate::MAX_TIME).
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let seconds = |text: &str, unit: f64| {
        let seconds = text.parse::<f64>().ok()? / unit;
        if seconds == 0.0 { Some(Duration::ZERO) } else { time_of_seconds(seconds) }
    };
    if let Some(wait) = text("retry-after-ms").and_then(|text| seconds(text, 1000.0)) {
        return Some(wait);
    }
    let value = text("retry-after")?;
    seconds(value, 1.0).or_else(|| {
        let date = httpdate::parse_http_date(value).ok()?;
        Some(bounded(date.duration_since(now).unwrap_or_default()))
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Sun, 09 Sep 2001 01:46:40 GMT.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
    }

    fn attempt() -> RetryContext {
        RetryContext {
            retries: 0,
            max_retries: 2,
            remaining: Duration::from_mins(10),
            now: now(),
            random: 0.0,
        }
    }

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), HeaderValue::from_static(value))])
    }

    fn failure(kind: ErrorKind) -> Failure<'static> {
        Failure { kind, code: None, error_type: None, headers: None }
    }

    #[test]
    fn only_transient_failures_are_retried() {
        for status in [408, 409, 429, 500, 502, 503, 504, 529] {
            let kind = ErrorKind::from_status(status);
            assert!(pause(failure(kind), attempt()).is_some(), "{status}");
        }
        for kind in [ErrorKind::Connection, ErrorKind::Timeout] {
            assert!(pause(failure(kind), attempt()).is_some(), "{kind:?}");
        }
        for status in [301, 400, 401, 403, 404, 413, 418, 422, 501] {
            let kind = ErrorKind::from_status(status);
            assert_eq!(pause(failure(kind), attempt()), None, "{status}");
        }
        for kind in [ErrorKind::Decode, ErrorKind::InvalidRequest, ErrorKind::StreamTruncated] {
            assert_eq!(pause(failure(kind), attempt()), None, "{kind:?}");
        }
    }

    #[test]
    fn backoff_doubles_from_half_a_second_to_eight_with_quarter_jitter() {
        let pauses = [0, 1, 2, 3, 4, 5, 60].map(|retries| backoff(retries, 0.0).as_millis());
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        assert_eq!(backoff(0, 1.0), Duration::from_millis(375));
    }

    #[test]
    fn invalid_random_value_still_yields_a_backoff() {
        for (random, ms) in [(f64::NAN, 500), (-1e300, 500), (f64::INFINITY, 375), (2.0, 375)] {
            assert_eq!(backoff(0, random), Duration::from_millis(ms), "{random}");
        }
    }

    #[test]
    fn huge_retry_after_is_clamped_to_the_longest_time() {
        for value in ["10000000000000000000", "18446744073709551615", "1e9", "1e300", "1e400", "inf"] {
            assert_eq!(retry_after(&headers("retry-after", value), now()), Some(crate::MAX_TIME));
        }
        let far = headers("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(retry_after(&far, SystemTime::UNIX_EPOCH), Some(crate::MAX_TIME));
        for value in ["-inf", "-1e300", "-0.1", "NaN", ""] {
            assert_eq!(retry_after(&headers("retry-after", value), now()), None, "{value}");
        }
    }

    #[test]
    fn retries_stop_at_the_maximum() {
        let failure = failure(ErrorKind::InternalServer);
        assert!(pause(failure, RetryContext { retries: 1, ..attempt() }).is_some());
        assert_eq!(pause(failure, RetryContext { retries: 2, ..attempt() }), None);
        assert_eq!(pause(failure, RetryContext { max_retries: 0, ..attempt() }), None);
    }

    #[test]
    fn exhausted_quota_is_never_retried() {
        let headers = headers("x-should-retry", "true");
        let base = Failure { headers: Some(&headers), ..failure(ErrorKind::RateLimit) };
        assert_eq!(pause(Failure { code: Some("insufficient_quota"), ..base }, attempt()), None);
        assert_eq!(pause(Failure { error_type: Some("insufficient_quota"), ..base }, attempt()), None);
    }

    #[test]
    fn should_retry_header_overrides_the_error_kind() {
        let yes = headers("x-should-retry", "true");
        assert!(
            pause(Failure { headers: Some(&yes), ..failure(ErrorKind::BadRequest) }, attempt()).is_some()
        );
        let no = headers("x-should-retry", "false");
        assert_eq!(pause(Failure { headers: Some(&no), ..failure(ErrorKind::RateLimit) }, attempt()), None);
    }

    #[test]
    fn reasonable_retry_after_is_honored_and_excessive_one_ends_the_call() {
        let pause_for = |name, value| {
            let headers = headers(name, value);
            pause(Failure { headers: Some(&headers), ..failure(ErrorKind::RateLimit) }, attempt())
        };
        assert_eq!(pause_for("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(pause_for("retry-after", "0"), Some(Duration::ZERO));
        assert_eq!(pause_for("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(pause_for("retry-after-ms", "20"), Some(Duration::from_millis(20)));
        assert_eq!(pause_for("retry-after", "Sun, 09 Sep 2001 01:47:40 GMT"), Some(Duration::from_mins(1)));
        assert_eq!(pause_for("retry-after", "Sun, 09 Sep 2001 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(pause_for("retry-after", "121"), None);
        // Invalid values are ignored.
        assert_eq!(pause_for("retry-after", "-1"), Some(FIRST_PAUSE));
        assert_eq!(pause_for("retry-after", "soon"), Some(FIRST_PAUSE));
        assert_eq!(pause_for("retry-after", "NaN"), Some(FIRST_PAUSE));
    }

    #[test]
    fn retry_after_ms_takes_precedence_over_retry_after() {
        let mut both = headers("retry-after-ms", "10");
        both.insert("retry-after", HeaderValue::from_static("7"));
        assert_eq!(retry_after(&both, now()), Some(Duration::from_millis(10)));
    }

    #[test]
    fn backoff_past_the_deadline_is_not_started() {
        let headers = headers("retry-after", "5");
        let failure = Failure { headers: Some(&headers), ..failure(ErrorKind::RateLimit) };
        assert_eq!(pause(failure, RetryContext { remaining: Duration::from_secs(5), ..attempt() }), None);
    }
}
