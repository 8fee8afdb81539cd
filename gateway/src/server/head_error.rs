//! Responses to requests whose headers the HTTP library cannot parse. The library writes those itself, without a body;
//! this module gives them the body that every error has.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use gatewright::ErrorCode;
use gatewright::operations::ErrorStyle;
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::request_id::signed;
use crate::wire::ApiError;

/// How the library's own responses begin and end. Every other response has a body or other headers, and none of our
/// bodies contains the raw line ends of a header block.
const BEGINS: &[u8] = b"HTTP/1.";
const EMPTY: &[u8] = b"content-length: 0\r\n";
const ENDS: &[u8] = b"\r\n\r\n";
/// Maximum length of the library's own response.
const LONGEST: usize = 256;

/// A connection, plain or with TLS, on which such responses are replaced.
pub(super) struct WithBody<S> {
    inner: S,
    /// What remains to be sent of a replacement.
    rest: Bytes,
}

impl<S: AsyncWrite + Unpin> WithBody<S> {
    pub(super) fn over(inner: S) -> Self {
        Self { inner, rest: Bytes::new() }
    }

    /// Takes the library's response and prepares ours.
    fn replace(&mut self, head: &[u8]) {
        if let Some(error) = error_of(head) {
            self.rest = answer(error);
        }
    }

    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.rest.is_empty() {
            let count = ready!(Pin::new(&mut self.inner).poll_write(context, &self.rest))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.rest.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithBody<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithBody<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match begin(bytes) {
            None => Pin::new(&mut self.inner).poll_write(context, bytes),
            Some(0) => {
                self.replace(bytes);
                Poll::Ready(Ok(bytes.len()))
            }
            Some(at) => Pin::new(&mut self.inner).poll_write(context, &bytes[..at]),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // The library's own response has no body: it comes alone or last.
        match parts.iter().position(|part| begin(part).is_some()) {
            None => Pin::new(&mut self.inner).poll_write_vectored(context, parts),
            Some(0) => self.poll_write(context, &parts[0]),
            Some(at) => Pin::new(&mut self.inner).poll_write_vectored(context, &parts[..at]),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_rest(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Where the library's own response begins, if these bytes end with one.
fn begin(bytes: &[u8]) -> Option<usize> {
    if !bytes.ends_with(ENDS) {
        return None;
    }
    let near = bytes.len().saturating_sub(LONGEST);
    let at = near + bytes[near..].windows(BEGINS.len()).rposition(|window| window == BEGINS)?;
    let head = &bytes[at..];
    let has = |wanted: &[u8]| head.windows(wanted.len()).any(|window| window == wanted);
    (error_of(head).is_some() && has(EMPTY) && !has(b"x-request-id")).then_some(at)
}

/// The error for a status that the library sends itself.
fn error_of(head: &[u8]) -> Option<ApiError> {
    let status = StatusCode::from_bytes(head.get(9..12)?).ok()?;
    let (code, message) = match status {
        StatusCode::BAD_REQUEST => (&ErrorCode::MALFORMED_REQUEST, "the request's head is not HTTP/1.1"),
        StatusCode::URI_TOO_LONG => {
            (&ErrorCode::URI_TOO_LONG, "the request's path and query are longer than the gateway accepts")
        }
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => (
            &ErrorCode::HEADERS_TOO_LARGE,
            "the request has more headers, or longer ones, than the gateway accepts",
        ),
        _ => return None,
    };
    Some(ApiError::new(code, message))
}

/// An error as raw bytes, for a connection that ends with it.
pub(crate) fn answer(error: ApiError) -> Bytes {
    let response = error.into_response(ErrorStyle::Standard);
    let (head, body) = signed(response).into_parts();
    let body = http_body_util::BodyExt::collect(body);
    let body =
        futures_util::FutureExt::now_or_never(body).and_then(Result::ok).unwrap_or_default().to_bytes();
    let reason = head.status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", head.status.as_str()).into_bytes();
    for (name, value) in &head.headers {
        bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    bytes.extend(format!("content-length: {}\r\nconnection: close\r\n\r\n", body.len()).into_bytes());
    bytes.extend_from_slice(&body);
    bytes.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &[u8] = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\
        content-length: 0\r\ndate: Sun, 09 Sep 2001 01:46:40 GMT\r\n\r\n";

    #[test]
    fn only_an_answer_of_the_library_s_own_is_one() {
        assert_eq!(begin(BARE), Some(0));
        assert_eq!(begin(&[b"0\r\n\r\n".as_slice(), BARE].concat()), Some(5));
        for other in [
            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".as_slice(),
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\nx-request-id: req_1\r\ncontent-length: 0\r\n\r\n",
            b"HTTP/1.1 400 Bad Request\r\ncontent-length: 3\r\n\r\n",
            &BARE[..BARE.len() - 1],
            b"0\r\n\r\n",
            b"",
        ] {
            assert_eq!(begin(other), None, "{}", String::from_utf8_lossy(other));
        }
    }
}
