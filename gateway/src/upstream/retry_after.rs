//! Reads how long an upstream wants to be left alone, in each format in use.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};
use serde_json::Value;

/// Longest accepted time.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(1);

/// The time to wait: `retry-after-ms`, `retry-after` in seconds or as a date, or the detail of a native error body.
pub(crate) fn retry_after(headers: &HeaderMap, body: &[u8], now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let milliseconds = || text("retry-after-ms")?.parse().ok().and_then(|ms: f64| seconds(ms / 1000.0));
    let stated = || {
        let text = text(header::RETRY_AFTER.as_str())?;
        if let Ok(number) = text.parse() {
            return seconds(number);
        }
        let date = httpdate::parse_http_date(text).ok()?;
        Some(date.duration_since(now).unwrap_or_default())
    };
    milliseconds().or_else(stated).or_else(|| detail(body)).map(|time| time.min(MAX_RETRY_AFTER))
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

/// `retryDelay` of a `RetryInfo`, such as `"12.5s"`.
fn detail(body: &[u8]) -> Option<Duration> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let document = document.get(0).unwrap_or(&document);
    let details = document["error"]["details"].as_array()?;
    let info = details
        .iter()
        .find(|detail| detail["@type"].as_str().is_some_and(|kind| kind.ends_with("google.rpc.RetryInfo")))?;
    seconds(info["retryDelay"].as_str()?.strip_suffix('s')?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(headers: &[(&'static str, &str)], body: &str) -> Option<u128> {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
            })
            .collect();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        retry_after(&headers, body.as_bytes(), now).map(|time| time.as_millis())
    }

    #[test]
    fn retry_after_is_read_from_each_header_and_body() {
        assert_eq!(of(&[("retry-after", "7")], ""), Some(7_000));
        assert_eq!(of(&[("retry-after", "0.5")], ""), Some(500));
        assert_eq!(of(&[("retry-after", "9"), ("retry-after-ms", "1500")], ""), Some(1_500));
        assert_eq!(of(&[("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT")], ""), Some(20_000));
        assert_eq!(of(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], ""), Some(0));
        let native = r#"[{"error":{"code":429,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay":"12.5s"}]}}]"#;
        assert_eq!(of(&[], native), Some(12_500));
        assert_eq!(of(&[], &native[1..native.len() - 1]), Some(12_500));
    }

    #[test]
    fn invalid_retry_after_is_ignored_and_a_long_one_capped() {
        for value in ["", "soon", "-3", "NaN", "inf"] {
            assert_eq!(of(&[("retry-after", value)], ""), None, "{value}");
        }
        assert_eq!(of(&[("retry-after", "99999999")], "{}"), Some(3_600_000));
        assert_eq!(of(&[], "<html>"), None);
    }
}
