//! Generated files (4 rule 4): kept in memory until they expire, served from `/files/` under random names by signed
//! addresses (section 8). A file that was promised an hour keeps it: where there is no room, new work is refused.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use gatewright::{ErrorCode, catalog};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use ring::hmac;
use uuid::Uuid;

use crate::auth::random_bytes;
use crate::call::Response;
use crate::error::ApiError;

/// Where files are served from.
pub(crate) const PREFIX: &str = "/files/";
/// The methods of a file.
pub(crate) const METHODS: &str = "GET, HEAD, OPTIONS";
/// How long a file is kept and its address valid. The source states it for images alone (8); videos get the same.
pub(crate) const LIFETIME: Duration = Duration::from_secs(catalog::IMAGE_URL_LIFETIME_S as u64);
/// Wait that is advised where unfinished work, and no file, takes the room.
const SHORT_WAIT_S: u64 = 1;

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
    files: HashMap<String, File>,
    /// Those that expire first come first.
    order: VecDeque<String>,
    bytes: usize,
    /// Bytes that work in progress has been promised.
    reserved: usize,
}

struct File {
    kind: Kind,
    contents: Bytes,
    /// Seconds since 1970.
    expiry: u64,
}

/// Room for what work in progress makes. Given back when dropped.
pub(crate) struct Room {
    files: Arc<Files>,
    bytes: usize,
}

impl Files {
    /// `max_bytes`: bound of all files together.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let signing = hmac::Key::new(hmac::HMAC_SHA256, &random_bytes());
        Self { signing, max_bytes, kept: Mutex::default() }
    }

    /// Promises room for files of about `bytes`, before the work of making them. Errors: there is none until files
    /// expire, with the seconds until then.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Room, ApiError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.make_room(bytes, self.max_bytes, unix_seconds())?;
        kept.reserved += bytes;
        Ok(Room { files: Arc::clone(self), bytes })
    }

    /// The file's signed path and query, valid until the file expires.
    pub(crate) fn address(&self, name: &str) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let expiry = kept.files.get(name).map_or(0, |file| file.expiry);
        drop(kept);
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
            return Err(ApiError::new(&ErrorCode::METHOD_NOT_ALLOWED, message).allow(METHODS));
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
        let Some(file) = kept.files.get(name) else {
            return Err(ApiError::new(&ErrorCode::FILE_EXPIRED, "the file is no longer kept"));
        };
        let (kind, contents) = (file.kind, file.contents.clone());
        drop(kept);
        Ok(file_response(name, kind, &contents, headers))
    }
}

impl Kept {
    /// Lets go of what has expired. Errors: `bytes` more do not fit even so.
    fn make_room(&mut self, bytes: usize, max_bytes: usize, now: u64) -> Result<(), ApiError> {
        while let Some(name) = self.order.front() {
            if self.files.get(name).is_some_and(|file| file.expiry > now) {
                break;
            }
            if let Some(file) = self.order.pop_front().and_then(|name| self.files.remove(&name)) {
                self.bytes -= file.contents.len();
            }
        }
        let taken = self.bytes.saturating_add(self.reserved).saturating_add(bytes);
        if taken <= max_bytes {
            return Ok(());
        }
        let full = format!(
            "{} of the {max_bytes} bytes for generated files are taken, and this needs about {bytes}",
            self.bytes + self.reserved
        );
        let error = |message| ApiError::new(&ErrorCode::FILE_STORAGE_FULL, message);
        if bytes > max_bytes {
            // No wait helps.
            return Err(error(full));
        }
        let mut missing = taken - max_bytes;
        let mut wait = SHORT_WAIT_S;
        for file in self.order.iter().filter_map(|name| self.files.get(name)) {
            if missing == 0 {
                break;
            }
            missing = missing.saturating_sub(file.contents.len());
            wait = file.expiry.saturating_sub(now).max(SHORT_WAIT_S);
        }
        Err(error(format!("{full}; there is room in {wait} s, when files expire")).retry_after(wait))
    }
}

impl Room {
    /// Keeps files for `lifetime` from now and gives them names: all of them, or none. Errors: they are larger than
    /// what was promised, and there is no room for that.
    pub(crate) fn keep(
        self,
        kind: Kind,
        contents: Vec<Vec<u8>>,
        lifetime: Duration,
    ) -> Result<Vec<String>, ApiError> {
        let files = Arc::clone(&self.files);
        let bytes = contents.iter().map(Vec::len).sum();
        // Gives back what was promised; the lock comes after.
        drop(self);
        let mut guard = files.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        let now = unix_seconds();
        kept.make_room(bytes, files.max_bytes, now)?;
        kept.bytes += bytes;
        let mut names = Vec::with_capacity(contents.len());
        for contents in contents {
            let name = format!("{}.{}", Uuid::new_v4().simple(), kind.extension());
            let file = File { kind, contents: contents.into(), expiry: now + lifetime.as_secs() };
            kept.files.insert(name.clone(), file);
            kept.order.push_back(name.clone());
            names.push(name);
        }
        Ok(names)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.files.kept.lock().unwrap_or_else(PoisonError::into_inner).reserved -= self.bytes;
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
    use gatewright::operations::ErrorStyle;

    use super::*;

    fn query(address: &str) -> (String, Vec<(String, String)>) {
        let url = url::Url::parse(&format!("http://gateway{address}")).expect("an address");
        (url.path().trim_start_matches(PREFIX).to_owned(), url.query_pairs().into_owned().collect())
    }

    const MINUTE: Duration = Duration::from_mins(1);

    fn status(files: &Files, address: &str) -> StatusCode {
        let (path, parameters) = query(address);
        let answer = files.serve(&Method::GET, &path, &parameters, &HeaderMap::new());
        answer.unwrap_or_else(|error| error.into_response(ErrorStyle::Standard)).status()
    }

    fn keep(files: &Arc<Files>, sizes: &[usize], lifetime: Duration) -> Result<Vec<String>, ApiError> {
        let contents = sizes.iter().map(|size| vec![0; *size]).collect();
        files.reserve(0).and_then(|room| room.keep(Kind::Png, contents, lifetime))
    }

    #[test]
    fn an_address_past_its_hour_is_gone() {
        // Section 8.
        let files = Arc::new(Files::new(1000));
        let names = keep(&files, &[3], Duration::ZERO).expect("room");
        assert_eq!(status(&files, &files.address(&names[0])), 410);
    }

    #[test]
    fn no_file_gives_way_before_its_hour_and_the_refusal_says_when_there_is_room() {
        // Section 8: an address holds for its hour.
        let files = Arc::new(Files::new(10));
        let names = keep(&files, &[4, 4], MINUTE).expect("room");
        let refused = keep(&files, &[3], MINUTE).expect_err("no room").into_response(ErrorStyle::Standard);
        assert_eq!(refused.status(), 503);
        let wait: u64 = refused.headers()["retry-after"].to_str().expect("ASCII").parse().expect("seconds");
        assert!((1..=60).contains(&wait), "{wait}");
        for name in &names {
            assert_eq!(status(&files, &files.address(name)), 200);
        }
        let refused = keep(&files, &[11], MINUTE).expect_err("never").into_response(ErrorStyle::Standard);
        assert_eq!(refused.headers().get("retry-after"), None, "no wait helps");
    }

    #[test]
    fn what_has_expired_makes_room() {
        let files = Arc::new(Files::new(10));
        keep(&files, &[4, 4], Duration::ZERO).expect("room");
        keep(&files, &[8], MINUTE).expect("room again");
        let kept = files.kept.lock().expect("no panic");
        assert_eq!((kept.files.len(), kept.order.len(), kept.bytes), (1, 1, 8));
    }

    #[test]
    fn files_of_one_answer_are_kept_all_or_none() {
        let files = Arc::new(Files::new(10));
        assert!(keep(&files, &[6, 6], MINUTE).is_err());
        assert_eq!(files.kept.lock().expect("no panic").bytes, 0);
    }

    #[test]
    fn work_in_progress_holds_its_room_until_it_ends() {
        let files = Arc::new(Files::new(10));
        let room = files.reserve(8).expect("room");
        assert!(files.reserve(3).is_err());
        drop(room);
        let names = files.reserve(8).expect("given back").keep(Kind::Mp4, vec![vec![0; 2]], MINUTE);
        assert_eq!(names.expect("room").len(), 1);
        assert!(files.reserve(8).is_ok(), "what was promised and not used is free");
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
