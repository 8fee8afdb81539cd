//! What comes with an answer, as JavaScript reads it.

use std::time::Duration;

use http::HeaderMap;

/// Headers in order, repeated ones included. Bytes that are not text become U+FFFD.
pub(crate) fn header_pairs(headers: &HeaderMap) -> Vec<(&str, String)> {
    headers.iter().map(|(name, value)| (name.as_str(), lossy(value.as_bytes()))).collect()
}

/// Bytes as text. Those that are not UTF-8 become U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
