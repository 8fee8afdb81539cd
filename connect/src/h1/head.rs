//! Writes the heads of requests and reads the heads of responses.

use std::mem::MaybeUninit;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, PROXY_AUTHORIZATION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, Version, response};
use httparse::{ParserConfig, Status};

use crate::error::Error;
use crate::proxy::Proxy;
use crate::request::{Destination, RequestRef};

/// Maximum length of the heads of a response, including informational ones (1xx).
pub(super) const MAX_BYTES: usize = 128 * 1024;
const MAX_HEADERS: usize = 128;

/// The head of a request.
pub(super) fn write(request: RequestRef<'_>, destination: Destination<'_>) -> Vec<u8> {
    let Destination { server, forwarder } = destination;
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(request.method.as_str().as_bytes());
    head.push(b' ');
    if forwarder.is_some() {
        head.extend_from_slice(b"http://");
        write_host(&mut head, server);
    }
    let path = request.path_and_query.map_or("/", |path| path.as_str());
    if !path.starts_with('/') {
        head.push(b'/');
    }
    head.extend_from_slice(path.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\n");
    if !request.headers.contains_key(HOST) {
        head.extend_from_slice(b"host: ");
        write_host(&mut head, server);
        head.extend_from_slice(b"\r\n");
    }
    if let Some(authorization) = forwarder.and_then(Proxy::authorization)
        && !request.headers.contains_key(PROXY_AUTHORIZATION)
    {
        head.extend_from_slice(b"proxy-authorization: ");
        head.extend_from_slice(authorization.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    for (name, value) in request.headers {
        // Only this client sets the headers that frame the message.
        if [CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE].contains(name) {
            continue;
        }
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    let length = request.body.len();
    if length > 0 || !matches!(*request.method, Method::GET | Method::HEAD | Method::DELETE) {
        head.extend_from_slice(b"content-length: ");
        head.extend_from_slice(length.to_string().as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The host, with the port unless it is the scheme's default.
fn write_host(head: &mut Vec<u8>, server: &Uri) {
    head.extend_from_slice(server.host().unwrap_or_default().as_bytes());
    let usual = if server.scheme_str() == Some("https") { 443 } else { 80 };
    if let Some(port) = server.port().filter(|port| port.as_u16() != usual) {
        head.push(b':');
        head.extend_from_slice(port.as_str().as_bytes());
    }
}

/// Looks for the end of a head. Each byte is examined once.
#[derive(Debug, Default)]
pub(super) struct Reader {
    seen: ScanOffset,
    /// The length of the informational heads before the response.
    before: usize,
}

impl Reader {
    /// The head of the response, if it is complete; `held` then contains the bytes after it. Skips informational heads.
    pub(super) fn read(&mut self, held: &mut BytesMut) -> Result<Option<response::Parts>, Error> {
        while let Some(end) = self.seen.end(held, MAX_BYTES.saturating_sub(self.before)) {
            let parts = parse(&held.split_to(end).freeze())?;
            if !parts.status.is_informational() {
                return Ok(Some(parts));
            }
            if parts.status == StatusCode::SWITCHING_PROTOCOLS {
                return Err(Error::Invalid("it switches to another protocol, which was not requested"));
            }
            self.before += end;
        }
        if self.before + held.len() > MAX_BYTES {
            return Err(Error::Invalid("its head is too long"));
        }
        Ok(None)
    }
}

/// How many of the buffered bytes have been searched for the end of a head. Each byte is examined once.
#[derive(Debug, Default)]
pub struct ScanOffset(usize);

impl ScanOffset {
    /// Where the head at the beginning of `held` ends, if it does so within `most` bytes; the next search then starts from
    /// the beginning.
    pub fn end(&mut self, held: &[u8], most: usize) -> Option<usize> {
        let held = &held[..held.len().min(most)];
        let from = self.0.min(held.len());
        for at in memchr::memchr_iter(b'\n', &held[from..]) {
            let length = match &held[from + at + 1..] {
                [b'\n', ..] => from + at + 2,
                [b'\r', b'\n', ..] => from + at + 3,
                // The end may come with the next packet.
                [] | [b'\r'] => {
                    self.0 = from + at;
                    return None;
                }
                _ => continue,
            };
            self.0 = 0;
            return Some(length);
        }
        self.0 = held.len();
        None
    }
}

fn parse(head: &Bytes) -> Result<response::Parts, Error> {
    let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let parsing = ParserConfig::default();
    match parsing.parse_response_with_uninit_headers(&mut parsed, head, &mut headers) {
        Ok(Status::Complete(_)) => {}
        Ok(Status::Partial) => return Err(Error::Invalid("its head ends too early")),
        Err(httparse::Error::TooManyHeaders) => return Err(Error::Invalid("it has too many headers")),
        Err(_) => return Err(Error::Invalid("its head is not a response head")),
    }
    let mut parts = http::Response::new(()).into_parts().0;
    parts.version = if parsed.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    parts.status = parsed
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or(Error::Invalid("its status is invalid"))?;
    parts.headers = HeaderMap::with_capacity(parsed.headers.len());
    for header in &*parsed.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_maybe_shared(head.slice_ref(header.value));
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(Error::Invalid("one of its headers is not valid"));
        };
        parts.headers.append(name, value);
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_in_many_packets_is_scanned_once() {
        let sent = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(100));
        let (mut reader, mut held) = (Reader::default(), BytesMut::new());
        let (last, before) = sent.as_bytes().split_last().expect("a head");
        for byte in before {
            held.extend_from_slice(&[*byte]);
            assert!(reader.read(&mut held).expect("a valid head").is_none());
            // Except for bytes that may be the beginning of the end.
            assert!(held.len() - reader.seen.0 <= 2, "{} of {}", reader.seen.0, held.len());
        }
        held.extend_from_slice(&[*last]);
        let parts = reader.read(&mut held).expect("a valid head").expect("a complete head");
        assert_eq!((parts.status, parts.headers.len()), (StatusCode::OK, 100));
    }
}
