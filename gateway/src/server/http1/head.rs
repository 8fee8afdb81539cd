//! Reads request heads and writes response heads.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright_connect::http1::{Framing, of_request};
use http::header::{CONNECTION, DATE, EXPECT, HOST};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version};
use httparse::{ParserConfig, Status};

use crate::wire::ApiError;

/// Maximum length of a request's head.
pub(super) const MAX_BYTES: usize = 128 * 1024;
/// Maximum length of a request's path and query: the longest URI that can be represented.
const MAX_TARGET_BYTES: usize = 64 * 1024 - 2;
const MAX_HEADERS: usize = 100;
/// Length of a date, such as `Sun, 09 Sep 2001 01:46:40 GMT`.
const DATE_BYTES: usize = 29;

/// What sending the response needs to know about its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplyContext {
    /// Whether the client wants only the head of the response.
    pub(super) is_head: bool,
    /// Whether it speaks HTTP/1.0.
    pub(super) is_old: bool,
    /// Whether it may send another request.
    pub(super) lasts: bool,
}

/// Why a head can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeadError {
    Malformed,
    /// The client starts TLS on a plain socket.
    Tls,
    TargetTooLong,
    HeadersTooLarge,
    /// It has no `Host`, several, or an invalid one (RFC 9112, section 3.2).
    Host,
    /// It expects something other than `100-continue` (RFC 9110, section 10.1.1).
    Expectation,
}

impl HeadError {
    pub(super) fn into_error(self) -> ApiError {
        let (code, message) = match self {
            Self::Malformed => (&ErrorCode::MALFORMED_REQUEST, "the request's head is not HTTP/1.1"),
            Self::Tls => (
                &ErrorCode::MALFORMED_REQUEST,
                "the client started TLS, but this address serves plain HTTP: use http://, or configure TLS (server.tls)",
            ),
            Self::TargetTooLong => {
                (&ErrorCode::URI_TOO_LONG, "the request's path and query are longer than the gateway accepts")
            }
            Self::HeadersTooLarge => (
                &ErrorCode::HEADERS_TOO_LARGE,
                "the request's headers are more or longer than the gateway accepts",
            ),
            Self::Host => (
                &ErrorCode::MALFORMED_REQUEST,
                "an HTTP/1.1 request must have exactly one Host header, with a host and an optional port",
            ),
            Self::Expectation => {
                (&ErrorCode::EXPECTATION_FAILED, "the only supported expectation is 100-continue")
            }
        };
        ApiError::new(code, message)
    }

    /// Why a head that doesn't end within the limits is rejected.
    pub(super) fn of_endless(head: &[u8]) -> Self {
        let line = memchr::memchr(b'\n', head).unwrap_or(head.len());
        if line > MAX_TARGET_BYTES { Self::TargetTooLong } else { Self::HeadersTooLarge }
    }
}

/// A request whose body has not been read.
pub(super) struct Head {
    pub(super) request: Parts,
    pub(super) reply_context: ReplyContext,
    pub(super) body: Framing,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub(super) waits: bool,
}

/// Parses a complete head. The header values are slices of these bytes.
pub(super) fn read(head: &Bytes) -> Result<Head, HeadError> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut []);
    match ParserConfig::default().parse_request_with_uninit_headers(&mut parsed, head, &mut headers) {
        Ok(Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError::HeadersTooLarge),
        Ok(Status::Partial) | Err(_) => return Err(HeadError::Malformed),
    }
    let target = parsed.path.ok_or(HeadError::Malformed)?.as_bytes();
    if target.len() > MAX_TARGET_BYTES {
        return Err(HeadError::TargetTooLong);
    }
    let mut request = http::Request::new(()).into_parts().0;
    request.method = parsed
        .method
        .and_then(|method| Method::from_bytes(method.as_bytes()).ok())
        .ok_or(HeadError::Malformed)?;
    request.uri = Uri::from_maybe_shared(head.slice_ref(target)).map_err(|_| HeadError::Malformed)?;
    request.version = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    request.headers = HeaderMap::with_capacity(parsed.headers.len());
    for header in &*parsed.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(head.slice_ref(header.value));
        let (Ok(name), Ok(value)) = (name, value) else { return Err(HeadError::Malformed) };
        request.headers.append(name, value);
    }
    let (body, lasts) = of_request(request.version, &request.headers).map_err(|_| HeadError::Malformed)?;
    let is_old = request.version == Version::HTTP_10;
    check_host(&request)?;
    replace_host(&mut request)?;
    // HTTP/1.0 has no expectations.
    let mut expected = request.headers.get_all(EXPECT).iter().filter(|_| !is_old);
    let waits = match (expected.next(), expected.next()) {
        (None, _) => false,
        (Some(value), None) if value.as_bytes().eq_ignore_ascii_case(b"100-continue") => true,
        _ => return Err(HeadError::Expectation),
    };
    let reply_context = ReplyContext { is_head: request.method == Method::HEAD, is_old, lasts };
    Ok(Head { request, reply_context, body, waits })
}

/// This server doesn't distinguish hosts, but a proxy in front may, and both must interpret the request the
/// same way.
fn check_host(request: &Parts) -> Result<(), HeadError> {
    let mut hosts = request.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if request.version == Version::HTTP_10 => Ok(()),
        (Some(host), None) if is_host(host.as_bytes()) => Ok(()),
        _ => Err(HeadError::Host),
    }
}

/// Replaces `Host` by the host that an absolute target names (RFC 9112, section 3.2.2).
fn replace_host(request: &mut Parts) -> Result<(), HeadError> {
    let Some(authority) = request.uri.authority().map(Authority::as_str) else { return Ok(()) };
    if !is_host(authority.as_bytes()) {
        return Err(HeadError::Malformed);
    }
    let host = HeaderValue::from_str(authority).map_err(|_| HeadError::Malformed)?;
    request.headers.insert(HOST, host);
    Ok(())
}

/// Whether a value is a host with an optional port. It is empty if the request target has no authority.
fn is_host(value: &[u8]) -> bool {
    value.is_empty() || !value.contains(&b'@') && Authority::try_from(value).is_ok()
}

/// Writes the head of a response, without the empty line after it.
pub(super) fn write(status: StatusCode, headers: &HeaderMap, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in headers {
        header(name, value.as_bytes(), out);
    }
    if !headers.contains_key(DATE) {
        header(&DATE, &date(), out);
    }
}

/// Writes a header.
pub(super) fn header(name: &HeaderName, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether the response's own headers close the connection.
pub(super) fn closes(headers: &HeaderMap) -> bool {
    headers.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// The date header's value. It is formatted once a second.
fn date() -> [u8; DATE_BYTES] {
    thread_local! {
        static WRITTEN: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((u64::MAX, [b' '; DATE_BYTES])) };
    }
    let second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (written, date) = WRITTEN.get();
    if written == second {
        return date;
    }
    let mut date = [b' '; DATE_BYTES];
    let text = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(second));
    for (to, from) in date.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    WRITTEN.set((second, date));
    date
}
