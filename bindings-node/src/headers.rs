//! Headers for JavaScript.

use http::HeaderMap;

use crate::text::text;

/// Headers in order, repeated ones included.
pub(crate) fn header_pairs(headers: &HeaderMap) -> Vec<(&str, String)> {
    headers.iter().map(|(name, value)| (name.as_str(), text(value.as_bytes()))).collect()
}

/// The same as JSON.
pub(crate) fn headers_json(headers: &HeaderMap) -> String {
    serde_json::to_string(&header_pairs(headers)).expect("strings are always JSON")
}
