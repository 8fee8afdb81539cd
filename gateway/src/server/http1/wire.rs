//! The bytes of a connection, in both directions.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use gatewright_connect::http1::{Framing, ScanOffset};
use http::request::Parts;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::poll_read_buf;
use tokio_util::sync::WaitForCancellationFuture;

use super::deadline::Deadline;
use super::head::{self, Head, HeadError, ReplyContext};
use super::outgoing::ResponseWriter;

/// Bytes per read. The buffer is on the stack: a waiting connection has none.
const PACKET: usize = 16 * 1024;
/// The same for long bodies, which are read directly into their final buffer.
pub(super) const LONG_PACKET: usize = 64 * 1024;
/// The start of TLS: a handshake record of any version since SSL 3.0. No HTTP method begins like that.
const TLS_HANDSHAKE: &[u8] = &[0x16, 0x03];
/// Requests the body from a client that waits for `100 Continue`.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The next event on a connection.
pub(super) enum Next {
    Request(Box<(Parts, ReplyContext)>),
    Unreadable(HeadError),
    /// No further request.
    Ended,
}

pub(super) struct Wire<S> {
    socket: S,
    /// Data that has been read but not yet consumed.
    held: BytesMut,
    seen: ScanOffset,
    /// The part of the request's body that is still to come.
    body: Framing,
    /// Whether the client waits for `100 Continue` before it sends the body.
    waits: bool,
    /// Data to write besides responses.
    queued: Bytes,
    /// Whether an empty line before the next request has been skipped.
    has_skipped: bool,
}

impl<S> Wire<S> {
    pub(super) fn new(socket: S) -> Self {
        let (held, queued) = (BytesMut::new(), Bytes::new());
        Self {
            socket,
            held,
            seen: ScanOffset::default(),
            body: Framing::Done,
            waits: false,
            queued,
            has_skipped: false,
        }
    }

    /// Whether the previous request has been read completely.
    pub(super) fn is_between_requests(&self) -> bool {
        self.body.is_done()
    }

    /// The part of the request's body that is still to come.
    pub(super) fn body(&self) -> &Framing {
        &self.body
    }

    /// The whole body, if it has arrived.
    pub(super) fn take_whole(&mut self) -> Option<Bytes> {
        let Framing::Length(length) = self.body else { return None };
        let length = usize::try_from(length).ok().filter(|length| *length <= self.held.len())?;
        self.body = Framing::Done;
        Some(self.take(length))
    }

    /// Writes these bytes with the next flush.
    pub(super) fn queue(&mut self, bytes: &Bytes) {
        self.queued = bytes.clone();
    }

    fn take(&mut self, length: usize) -> Bytes {
        let taken = self.held.split_to(length).freeze();
        self.tidy();
        taken
    }

    /// Releases the buffer if the next bytes may take a while. The rest of a body's buffer is reused for the next ones.
    fn tidy(&mut self) {
        if self.held.is_empty() && self.body.is_done() {
            self.held = BytesMut::new();
        }
    }

    /// Takes the head at the beginning of the data, if it is complete.
    fn take_head(&mut self) -> Option<Next> {
        if self.held.starts_with(TLS_HANDSHAKE) {
            return Some(Next::Unreadable(HeadError::Tls));
        }
        // Some clients send an empty line after a body (RFC 9112, 2.2). More than one is not accepted.
        if !self.has_skipped {
            let empty = match &self.held[..] {
                [b'\r', b'\n', ..] => 2,
                [b'\n', ..] => 1,
                _ => 0,
            };
            self.held.advance(empty);
            self.has_skipped = empty > 0;
        }
        if self.has_skipped && matches!(self.held.first(), Some(b'\r' | b'\n')) {
            return Some(Next::Unreadable(HeadError::Malformed));
        }
        let Some(end) = self.seen.end(&self.held, head::MAX_BYTES) else {
            let is_endless = self.held.len() >= head::MAX_BYTES;
            return is_endless.then(|| Next::Unreadable(HeadError::of_endless(&self.held)));
        };
        let head = self.take(end);
        self.has_skipped = false;
        Some(match head::read(&head) {
            Err(why) => Next::Unreadable(why),
            Ok(Head { request, reply_context, body, waits }) => {
                (self.body, self.waits) = (body, waits);
                Next::Request(Box::new((request, reply_context)))
            }
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// The next request. `drained` resolves when no further ones are accepted, except one whose head has
    /// started.
    pub(super) fn poll_next(
        &mut self,
        context: &mut Context<'_>,
        deadline: &mut Deadline,
        drained: Pin<&mut WaitForCancellationFuture<'_>>,
    ) -> Poll<io::Result<Next>> {
        let mut has_read = false;
        loop {
            if let Some(next) = self.take_head() {
                deadline.met();
                return Poll::Ready(Ok(next));
            }
            // A client that sends without a pause gets no more time than others.
            if has_read && deadline.poll_missed(context).is_ready() {
                return Poll::Ready(Ok(Next::Ended));
            }
            match self.poll_read(context) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(Next::Ended)),
                Poll::Ready(Ok(_)) => {
                    has_read = true;
                    continue;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {}
            }
            if self.held.is_empty() && drained.poll(context).is_ready() {
                return Poll::Ready(Ok(Next::Ended));
            }
            ready!(deadline.poll_missed(context));
            return Poll::Ready(Ok(Next::Ended));
        }
    }

    /// The next piece of the request's body.
    pub(super) fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            if self.body.is_done() {
                return Poll::Ready(None);
            }
            if self.held.is_empty() {
                if std::mem::take(&mut self.waits) {
                    self.queued = Bytes::from_static(CONTINUE);
                }
                if let Err(error) = ready!(self.poll_flush(context)) {
                    return Poll::Ready(Some(Err(error)));
                }
                match ready!(self.poll_read(context)) {
                    Ok(0) => {
                        let message = "the client closed the connection";
                        return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message))));
                    }
                    Ok(_) => {}
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            let data = match &mut self.body {
                Framing::Length(left) => {
                    let length = usize::try_from(*left).unwrap_or(usize::MAX).min(self.held.len());
                    *left -= length as u64;
                    if *left == 0 {
                        self.body = Framing::Done;
                    }
                    self.take(length)
                }
                framing => match framing.decode(&self.held) {
                    Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                    Ok((taken, data)) => {
                        self.held.advance(taken);
                        self.tidy();
                        data
                    }
                },
            };
            if !data.is_empty() {
                return Poll::Ready(Some(Ok(data)));
            }
        }
    }

    /// Reads what has arrived. Returns the number of bytes; 0: the client has closed its sending half.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Framing::Length(left) = self.body
            && left > PACKET as u64
        {
            self.held.reserve(usize::try_from(left).unwrap_or(LONG_PACKET).min(LONG_PACKET));
            return poll_read_buf(Pin::new(&mut self.socket), context, &mut self.held);
        }
        let mut packet = [MaybeUninit::<u8>::uninit(); PACKET];
        let mut read = ReadBuf::uninit(&mut packet);
        ready!(Pin::new(&mut self.socket).poll_read(context, &mut read))?;
        self.held.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Sends a response to its end.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        answer: &mut ResponseWriter,
    ) -> Poll<io::Result<()>> {
        loop {
            let collected = answer.poll_collect(context);
            while !answer.is_written() {
                let parts = answer.slices();
                let written = match parts {
                    [out, [], []] => Pin::new(&mut self.socket).poll_write(context, out),
                    parts => {
                        Pin::new(&mut self.socket).poll_write_vectored(context, &parts.map(IoSlice::new))
                    }
                };
                match ready!(written)? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => answer.advance(count),
                }
            }
            if collected.is_pending() {
                ready!(Pin::new(&mut self.socket).poll_flush(context))?;
                return Poll::Pending;
            }
            if answer.has_ended() {
                ready!(Pin::new(&mut self.socket).poll_flush(context))?;
                return Poll::Ready(answer.outcome());
            }
        }
    }

    /// Writes queued data.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.queued.is_empty() {
            match ready!(Pin::new(&mut self.socket).poll_write(context, &self.queued))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.queued.advance(count),
            }
        }
        Pin::new(&mut self.socket).poll_flush(context)
    }

    /// Closes this side of the connection.
    pub(super) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
