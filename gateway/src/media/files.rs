//! Generated files, served from `/files/` (section 8), whole or in part.

use axum::body::Body;
use bytes::Bytes;
use gatewright::ErrorCode;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::store::{Files, Kind};
use crate::wire::{ApiError, Response};

/// The allowed methods of a file.
pub(crate) const METHODS: &str = "GET, HEAD, OPTIONS";

/// Serves a file. Needs no key: the signature grants access.
pub(crate) fn serve(
    files: &Files,
    method: &Method,
    name: &str,
    query: &[(String, String)],
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    if method != Method::GET && method != Method::HEAD {
        let message = "files accept only GET and HEAD";
        return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(METHODS));
    }
    let (kind, contents) = files.open(name, query)?;
    Ok(file_response(name, kind, &contents, headers))
}

fn file_response(name: &str, kind: Kind, contents: &Bytes, headers: &HeaderMap) -> Response {
    let text = |value: String| HeaderValue::try_from(value).expect("names and numbers are plain ASCII");
    let total = contents.len();
    // A name is random and never reused, so it identifies the contents as well as a digest would.
    let tag = format!("\"{name}\"");
    let asked = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // `If-Range` must match this exact file; a date is not precise enough.
    let same_file = asked(header::IF_RANGE).is_none_or(|wanted| wanted == tag);
    let range = asked(header::RANGE).filter(|_| same_file).and_then(single_range);
    let (status, body, content_range) = match range.map(|range| range.within(total)) {
        None => (StatusCode::OK, contents.clone(), None),
        Some(Some((start, end))) => {
            let range = format!("bytes {start}-{}/{total}", end - 1);
            (StatusCode::PARTIAL_CONTENT, contents.slice(start..end), Some(range))
        }
        Some(None) => (StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new(), Some(format!("bytes */{total}"))),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind.media_type()));
    headers.insert(header::CONTENT_DISPOSITION, text(format!("attachment; filename=\"{name}\"")));
    headers.insert(header::ETAG, text(tag));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
    if let Some(range) = content_range {
        headers.insert(header::CONTENT_RANGE, text(range));
    }
    response
}

/// The requested byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// From a start to an inclusive end, or to the end of the file.
    From(usize, Option<usize>),
    /// The last bytes, this many.
    Last(usize),
}

impl Range {
    /// Start and exclusive end in a file of `total` bytes, if the range lies in it.
    fn within(self, total: usize) -> Option<(usize, usize)> {
        let (start, end) = match self {
            Self::From(start, end) => (start, end.map_or(total, |end| end.saturating_add(1).min(total))),
            Self::Last(count) => (total.saturating_sub(count), total),
        };
        (start < end).then_some((start, end))
    }
}

/// Parses `bytes=0-99`, `bytes=100-` or `bytes=-50`. Ignores anything else, including several ranges, as RFC 9110
/// allows.
fn single_range(value: &str) -> Option<Range> {
    let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        return end.parse().ok().map(Range::Last);
    }
    let start = start.parse().ok()?;
    let end = if end.is_empty() { None } else { Some(end.parse().ok().filter(|end| *end >= start)?) };
    Some(Range::From(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_the_standard_says() {
        assert_eq!(single_range("bytes=0-99"), Some(Range::From(0, Some(99))));
        assert_eq!(single_range("bytes=5-"), Some(Range::From(5, None)));
        assert_eq!(single_range("bytes=-3"), Some(Range::Last(3)));
        for ignored in ["", "bytes=", "bytes=9-1", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b"] {
            assert_eq!(single_range(ignored), None, "{ignored}");
        }
        assert_eq!(Range::From(0, Some(99)).within(10), Some((0, 10)));
        assert_eq!(Range::From(10, None).within(10), None);
        assert_eq!(Range::Last(3).within(10), Some((7, 10)));
    }
}
