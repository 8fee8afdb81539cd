//! The stored form of a response: its status, its headers, line by line, and its body.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::MAX_ANSWER_BYTES;
use crate::wire::{Body, Response};

/// Maximum size of the headers, in bytes.
const MAX_HEADER_BYTES: usize = 64 * 1024;
/// Maximum size of a record, in bytes.
pub(super) const MAX_RECORD_BYTES: usize = MAX_ANSWER_BYTES + MAX_HEADER_BYTES + 2;

/// See the module.
pub(super) struct ReplayRecord {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl ReplayRecord {
    /// None if its headers are too long, which the gateway never produces.
    pub(super) fn written(&self) -> Option<Vec<u8>> {
        let mut record = self.status.as_u16().to_be_bytes().to_vec();
        for (name, value) in &self.headers {
            record.extend_from_slice(name.as_str().as_bytes());
            record.push(b':');
            // No header value contains a line break.
            record.extend_from_slice(value.as_bytes());
            record.push(b'\n');
        }
        record.push(b'\n');
        let is_short = record.len() <= MAX_HEADER_BYTES;
        record.extend_from_slice(&self.body);
        is_short.then_some(record)
    }

    /// None if it is not a record.
    pub(super) fn read(record: &[u8]) -> Option<Self> {
        let (status, mut rest) = record.split_at_checked(2)?;
        let status = StatusCode::from_u16(u16::from_be_bytes(status.try_into().ok()?)).ok()?;
        let mut headers = HeaderMap::new();
        loop {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if line.is_empty() {
                return Some(Self { status, headers, body: Bytes::copy_from_slice(rest) });
            }
            let colon = line.iter().position(|byte| *byte == b':')?;
            let name = HeaderName::from_bytes(&line[..colon]).ok()?;
            headers.append(name, HeaderValue::from_bytes(&line[colon + 1..]).ok()?);
        }
    }

    pub(super) fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        (*response.status_mut(), *response.headers_mut()) = (self.status, self.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_record_round_trips() {
        let mut headers = HeaderMap::new();
        headers.append("x-a", HeaderValue::from_bytes(b"one: \xff").expect("a value"));
        headers.append("x-a", HeaderValue::from_static(""));
        for body in [&b""[..], b"\n\nx: y\n"] {
            let body = Bytes::copy_from_slice(body);
            let record =
                ReplayRecord { status: StatusCode::CREATED, headers: headers.clone(), body: body.clone() };
            let read = ReplayRecord::read(&record.written().expect("short")).expect("a record");
            assert_eq!((read.status, read.headers, read.body), (StatusCode::CREATED, headers.clone(), body));
        }
        for broken in [&b""[..], b"\0", b"\0\xc8", b"\0\xc8x-a: 1", b"\0\xc8x-a\n\n", b"\0\x01\n"] {
            assert!(ReplayRecord::read(broken).is_none(), "{broken:?}");
        }
        let long = HeaderValue::from_bytes(&vec![b'a'; MAX_HEADER_BYTES]).expect("a value");
        let headers = HeaderMap::from_iter([(HeaderName::from_static("x-a"), long)]);
        assert!(ReplayRecord { status: StatusCode::OK, headers, body: Bytes::new() }.written().is_none());
    }
}
