//! Generated files, served from `/files/` (section 8), whole or in part.

use std::ops::Range;

use gatewright::ErrorCode;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use crate::storage::{GeneratedFiles, OpenFile};
use crate::wire::{ApiError, Body, Response};

/// The allowed methods of a file.
pub(crate) const METHODS: &str = "GET, HEAD, OPTIONS";

/// Serves a file. Needs no key: the signature grants access.
pub(crate) async fn serve(
    files: &GeneratedFiles,
    method: &Method,
    name: &str,
    query: &[(String, String)],
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    if method != Method::GET && method != Method::HEAD {
        let message = "files accept only GET and HEAD";
        return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(METHODS));
    }
    let file = files.open(name, query).await?;
    let part = ServedRange::of(&file, headers);
    let body = match part.range() {
        Some(range) if method == Method::GET => Body::from_stream(file.read(range).await?),
        _ => Body::empty(),
    };
    let mut response = Response::new(body);
    part.describe(&file, &mut response);
    Ok(response)
}

/// The part of a file to serve.
enum ServedRange {
    Whole(u64),
    /// Start and exclusive end.
    Range(u64, u64),
    /// The requested range isn't in the file.
    Nothing,
}

impl ServedRange {
    fn of(file: &OpenFile<'_>, headers: &HeaderMap) -> Self {
        let text_of = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // `If-Range` must match this exact file; a date is not precise enough.
        let same_file = text_of(header::IF_RANGE).is_none_or(|tag| tag == tag_of(file));
        let range = text_of(header::RANGE).filter(|_| same_file).and_then(single_range);
        match range.map(|range| range.within(file.bytes)) {
            None => Self::Whole(file.bytes),
            Some(Some((start, end))) => Self::Range(start, end),
            Some(None) => Self::Nothing,
        }
    }

    /// Its byte range, if it isn't empty.
    fn range(&self) -> Option<Range<u64>> {
        let range = match *self {
            Self::Whole(total) => 0..total,
            Self::Range(start, end) => start..end,
            Self::Nothing => 0..0,
        };
        (!range.is_empty()).then_some(range)
    }

    /// Writes status and headers.
    fn describe(&self, file: &OpenFile<'_>, response: &mut Response) {
        let text = |value: String| HeaderValue::try_from(value).expect("names and numbers are plain ASCII");
        let (name, total) = (&file.name, file.bytes);
        let (status, range) = match self {
            Self::Whole(_) => (StatusCode::OK, None),
            Self::Range(start, end) => {
                (StatusCode::PARTIAL_CONTENT, Some(format!("bytes {start}-{}/{total}", end - 1)))
            }
            Self::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, Some(format!("bytes */{total}"))),
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        let length = self.range().map_or(0, |range| range.end - range.start);
        headers.insert(header::CONTENT_LENGTH, length.into());
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(name.kind().media_type()));
        headers.insert(header::CONTENT_DISPOSITION, text(format!("attachment; filename=\"{name}\"")));
        headers.insert(header::ETAG, text(tag_of(file)));
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=3600"));
        if let Some(range) = range {
            headers.insert(header::CONTENT_RANGE, text(range));
        }
    }
}

/// A name is random and never reused, so it identifies the contents as well as a digest would.
fn tag_of(file: &OpenFile<'_>) -> String {
    format!("\"{}\"", file.name)
}

/// The requested byte range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestedRange {
    /// From a start to an inclusive end, or to the end of the file.
    From(u64, Option<u64>),
    /// The last bytes, this many.
    Last(u64),
}

impl RequestedRange {
    /// Start and exclusive end in a file of `total` bytes, if the range lies in it.
    fn within(self, total: u64) -> Option<(u64, u64)> {
        let (start, end) = match self {
            Self::From(start, end) => (start, end.map_or(total, |end| end.saturating_add(1).min(total))),
            Self::Last(count) => (total.saturating_sub(count), total),
        };
        (start < end).then_some((start, end))
    }
}

/// Parses `bytes=0-99`, `bytes=100-` or `bytes=-50`. Ignores anything else, including several ranges, as RFC 9110
/// allows.
fn single_range(value: &str) -> Option<RequestedRange> {
    let (start, end) = value.strip_prefix("bytes=")?.split_once('-')?;
    if start.is_empty() {
        return end.parse().ok().map(RequestedRange::Last);
    }
    let start = start.parse().ok()?;
    let end = if end.is_empty() { None } else { Some(end.parse().ok().filter(|end| *end >= start)?) };
    Some(RequestedRange::From(start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_header_is_parsed() {
        assert_eq!(single_range("bytes=0-99"), Some(RequestedRange::From(0, Some(99))));
        assert_eq!(single_range("bytes=5-"), Some(RequestedRange::From(5, None)));
        assert_eq!(single_range("bytes=-3"), Some(RequestedRange::Last(3)));
        for ignored in ["", "bytes=", "bytes=9-1", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b"] {
            assert_eq!(single_range(ignored), None, "{ignored}");
        }
        assert_eq!(RequestedRange::From(0, Some(99)).within(10), Some((0, 10)));
        assert_eq!(RequestedRange::From(10, None).within(10), None);
        assert_eq!(RequestedRange::Last(3).within(10), Some((7, 10)));
    }
}
