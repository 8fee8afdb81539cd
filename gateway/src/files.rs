//! Generated files (4 rule 4): kept in memory within a bound, served from `/files/` under random names by signed
//! addresses that expire (section 8).

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use gatewright::ErrorCode;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use ring::hmac;
use uuid::Uuid;

use crate::auth::random_bytes;
use crate::call::Response;
use crate::error::ApiError;

/// Where files are served from.
pub(crate) const PREFIX: &str = "/files/";

/// Kind of a generated file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Png,
    Mp4,
}

impl Kind {
    fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Mp4 => "mp4",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Mp4 => "video/mp4",
        }
    }
}

/// The files and the key their addresses are signed with.
pub(crate) struct Files {
    signing: hmac::Key,
    max_bytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    files: HashMap<String, (Kind, Bytes)>,
    /// Oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Files {
    /// `max_bytes`: bound of all files together; the newest one is always kept.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes());
        Self { signing, max_bytes, kept: Mutex::default() }
    }

    /// Keeps a file and gives it a name.
    pub(crate) fn keep(&self, kind: Kind, contents: Vec<u8>) -> String {
        let name = format!("{}.{}", Uuid::new_v4().simple(), kind.extension());
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        kept.bytes += contents.len();
        kept.files.insert(name.clone(), (kind, contents.into()));
        kept.order.push_back(name.clone());
        while kept.bytes > self.max_bytes && kept.order.len() > 1 {
            if let Some((_, oldest)) = kept.order.pop_front().and_then(|name| kept.files.remove(&name)) {
                kept.bytes -= oldest.len();
            }
        }
        name
    }

    /// The file's signed path and query, valid for `lifetime` from now.
    pub(crate) fn address(&self, name: &str, lifetime: Duration) -> String {
        let expiry = unix_seconds() + lifetime.as_secs();
        let signature = hmac::sign(&self.signing, signed_text(name, expiry).as_bytes());
        format!("{PREFIX}{name}?exp={expiry}&sig={}", BASE64_URL_SAFE_NO_PAD.encode(signature))
    }

    /// Answers a request for a file. No key is needed: the signature is the permission.
    pub(crate) fn serve(
        &self,
        method: &Method,
        name: &str,
        query: &[(String, String)],
        headers: &HeaderMap,
    ) -> Result<Response, ApiError> {
        if method != Method::GET && method != Method::HEAD {
            let message = "files can only be fetched";
            return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow("GET, HEAD".to_owned()));
        }
        let parameter = |wanted| query.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
        let unsigned = || {
            ApiError::new(&ErrorCode::INVALID_SIGNATURE, "this is not an address that the gateway gave out")
        };
        let expiry: u64 = parameter("exp").and_then(|value| value.parse().ok()).ok_or_else(unsigned)?;
        let signature = parameter("sig")
            .and_then(|value| BASE64_URL_SAFE_NO_PAD.decode(value).ok())
            .ok_or_else(unsigned)?;
        // The signature covers the name, so a name that was never given out ends here, dots and slashes included.
        hmac::verify(&self.signing, signed_text(name, expiry).as_bytes(), &signature)
            .map_err(|_| unsigned())?;
        if expiry <= unix_seconds() {
            return Err(ApiError::new(&ErrorCode::FILE_EXPIRED, "the address of this file has expired (8)"));
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((kind, contents)) = kept.files.get(name).cloned() else {
            return Err(ApiError::new(&ErrorCode::FILE_EXPIRED, "the file gave way to newer ones"));
        };
        drop(kept);
        Ok(file_response(name, kind, &contents, headers))
    }
}

fn file_response(name: &str, kind: Kind, contents: &Bytes, headers: &HeaderMap) -> Response {
    let text = |value: String| HeaderValue::try_from(value).expect("names and numbers are plain ASCII");
    let total = contents.len();
    // A name is random and never given to other contents: it tells them apart as well as a digest would.
    let tag = format!("\"{name}\"");
    let asked = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // A part is wanted of that very file only; a date never says so surely enough.
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

/// One range of bytes as asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Range {
    /// From a start to an inclusive end, or to the file's end.
    From(usize, Option<usize>),
    /// The last so many bytes.
    Last(usize),
}

impl Range {
    /// Start and exclusive end in a file of `total` bytes, if they are in it.
    fn within(self, total: usize) -> Option<(usize, usize)> {
        let (start, end) = match self {
            Self::From(start, end) => (start, end.map_or(total, |end| end.saturating_add(1).min(total))),
            Self::Last(count) => (total.saturating_sub(count), total),
        };
        (start < end).then_some((start, end))
    }
}

/// Reads `bytes=0-99`, `bytes=100-` or `bytes=-50`. Anything else, several ranges included, is ignored, as RFC 9110
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

fn signed_text(name: &str, expiry: u64) -> String {
    format!("{name}\n{expiry}")
}

/// Seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(address: &str) -> (String, Vec<(String, String)>) {
        let url = url::Url::parse(&format!("http://gateway{address}")).expect("an address");
        (url.path().trim_start_matches(PREFIX).to_owned(), url.query_pairs().into_owned().collect())
    }

    #[test]
    fn an_address_past_its_hour_is_gone() {
        let files = Files::new(1000);
        let name = files.keep(Kind::Png, vec![1, 2, 3]);
        let (path, parameters) = query(&files.address(&name, Duration::ZERO));
        let error =
            files.serve(&Method::GET, &path, &parameters, &HeaderMap::new()).expect_err("expired (8)");
        assert_eq!(error.into_response(gatewright::operations::ErrorStyle::Standard).status(), 410);
    }

    #[test]
    fn the_oldest_files_give_way_within_the_bound() {
        let files = Files::new(5);
        let first = files.keep(Kind::Png, vec![0; 3]);
        let second = files.keep(Kind::Mp4, vec![0; 3]);
        let fetch = |name: &str| {
            let (path, parameters) = query(&files.address(name, Duration::from_mins(1)));
            files.serve(&Method::GET, &path, &parameters, &HeaderMap::new()).is_ok()
        };
        assert!(!fetch(&first) && fetch(&second));
    }

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
