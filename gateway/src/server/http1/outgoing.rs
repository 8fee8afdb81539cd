//! A response being sent: its head, and the body in frames that the client can read.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;

use super::head;
use crate::wire::{Body, Response};

/// Pieces up to this size are copied into the buffer; longer ones are written without a copy.
const COPIED: usize = 8 * 1024;
/// Room for a head.
const HEAD_BYTES: usize = 512;
/// Ready data is collected up to this size before it is written.
pub(super) const MAX_COLLECTED: usize = 32 * 1024;

/// How the client recognizes the end of the body.
#[derive(Debug, PartialEq, Eq)]
enum BodyFraming {
    /// There is no body.
    None,
    /// This many bytes are left.
    Length(u64),
    Chunked,
    /// The connection ends with the body.
    Close,
}

/// A response being sent.
pub(super) struct ResponseWriter {
    body: Body,
    frames: BodyFraming,
    /// Whether the connection can serve another request afterwards.
    lasts: bool,
    /// Written first.
    out: Vec<u8>,
    /// Number of its bytes already written.
    written: usize,
    /// A long piece, written next.
    piece: Bytes,
    /// Written last.
    behind: &'static [u8],
    /// Set once the body is complete: how it ended.
    ended: Option<io::Result<()>>,
}

impl ResponseWriter {
    /// `is_head`: whether the client wants no body; `is_old`: whether it speaks HTTP/1.0, which has no chunks.
    pub(super) fn begin(response: Response, is_head: bool, is_old: bool, lasts: bool) -> Self {
        let (parts, body) = response.into_parts();
        let frames = match (stated(&parts.headers), body.size_hint().exact()) {
            _ if !has_body(parts.status) => BodyFraming::None,
            (Some(length), _) | (None, Some(length)) => BodyFraming::Length(length),
            (None, None) if is_old => BodyFraming::Close,
            (None, None) => BodyFraming::Chunked,
        };
        let lasts = lasts && !head::closes(&parts.headers) && (is_head || frames != BodyFraming::Close);
        let small = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
        let room = small.filter(|length| *length <= COPIED).unwrap_or_default();
        let mut out = Vec::with_capacity(HEAD_BYTES + room);
        head::write(parts.status, &parts.headers, &mut out);
        match &frames {
            BodyFraming::Length(length) if !parts.headers.contains_key(CONTENT_LENGTH) => {
                _ = write!(out, "{CONTENT_LENGTH}: {length}\r\n");
            }
            BodyFraming::Chunked => head::header(&TRANSFER_ENCODING, b"chunked", &mut out),
            _ => {}
        }
        if !lasts && !head::closes(&parts.headers) {
            head::header(&CONNECTION, b"close", &mut out);
        } else if lasts && is_old {
            head::header(&CONNECTION, b"keep-alive", &mut out);
        }
        out.extend_from_slice(b"\r\n");
        let frames = if is_head { BodyFraming::None } else { frames };
        let mut outgoing =
            Self { body, frames, lasts, out, written: 0, piece: Bytes::new(), behind: b"", ended: None };
        outgoing.end_if_whole();
        outgoing
    }

    /// Whether the connection can serve another request afterwards.
    pub(super) fn lasts(&self) -> bool {
        self.lasts
    }

    /// Collects what the body has ready, up to some kilobytes. Pending: there may be more later.
    pub(super) fn poll_collect(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while self.ended.is_none() {
            if self.out.len() >= MAX_COLLECTED || !self.piece.is_empty() {
                return Poll::Ready(());
            }
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => self.end(),
                Poll::Ready(Some(Err(error))) => self.ended = Some(Err(io::Error::other(error))),
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are dropped: they were not announced.
                    if let Ok(data) = frame.into_data() {
                        self.take(data);
                    }
                    self.end_if_whole();
                }
            }
        }
        Poll::Ready(())
    }

    fn take(&mut self, mut data: Bytes) {
        if data.is_empty() {
            return;
        }
        match &mut self.frames {
            BodyFraming::None => return,
            BodyFraming::Close => {}
            BodyFraming::Length(left) => {
                let room = usize::try_from(*left).unwrap_or(usize::MAX);
                if data.len() > room {
                    data.truncate(room);
                    self.ended = Some(Err(io::Error::other("an answer is longer than it says")));
                }
                *left -= data.len() as u64;
            }
            BodyFraming::Chunked => {
                _ = write!(self.out, "{:x}\r\n", data.len());
                self.behind = b"\r\n";
            }
        }
        if data.len() <= COPIED {
            self.out.extend_from_slice(&data);
            self.out.extend_from_slice(std::mem::take(&mut self.behind));
        } else {
            self.piece = data;
        }
    }

    /// A body of known length is not polled beyond it.
    fn end_if_whole(&mut self) {
        let is_whole = match self.frames {
            BodyFraming::None => true,
            BodyFraming::Length(left) => left == 0,
            BodyFraming::Chunked | BodyFraming::Close => self.body.is_end_stream(),
        };
        if is_whole && self.ended.is_none() {
            self.end();
        }
    }

    fn end(&mut self) {
        self.ended = Some(match self.frames {
            BodyFraming::Length(1..) => Err(io::Error::other("an answer is shorter than it says")),
            _ => Ok(()),
        });
        if self.frames == BodyFraming::Chunked {
            // After the long piece, if there is one.
            if self.piece.is_empty() {
                self.out.extend_from_slice(b"0\r\n\r\n");
            } else {
                self.behind = b"\r\n0\r\n\r\n";
            }
        }
    }

    /// The data to write, in order.
    pub(super) fn slices(&self) -> [&[u8]; 3] {
        [&self.out[self.written..], &self.piece, self.behind]
    }

    /// This many bytes have been written.
    pub(super) fn advance(&mut self, mut count: usize) {
        let from_out = count.min(self.out.len() - self.written);
        self.written += from_out;
        count -= from_out;
        let from_piece = count.min(self.piece.len());
        self.piece.advance(from_piece);
        count -= from_piece;
        self.behind = &self.behind[count.min(self.behind.len())..];
        if self.piece.is_empty() {
            self.piece = Bytes::new();
        }
        if self.written == self.out.len() {
            // The next event may take a while, so release a large buffer.
            if self.out.capacity() > HEAD_BYTES {
                self.out = Vec::new();
            } else {
                self.out.clear();
            }
            self.written = 0;
        }
    }

    /// Whether all collected data has been written.
    pub(super) fn is_written(&self) -> bool {
        self.out.is_empty() && self.piece.is_empty() && self.behind.is_empty()
    }

    /// Whether the body is complete.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// How the body ended.
    pub(super) fn outcome(&mut self) -> io::Result<()> {
        self.ended.take().unwrap_or(Ok(()))
    }
}

fn has_body(status: StatusCode) -> bool {
    !status.is_informational() && !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The Content-Length that the response itself sets.
fn stated(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
