//! A connection: sends one request at a time and reads its response, both in the caller's task.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use http::response;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Handle, Id};

use super::framing::{self, Framing};
use super::head;
use crate::error::Error;
use crate::request::{Destination, RequestRef};
use crate::socket::Socket;
use crate::tcp::WatchedSocket;
use crate::watching;

/// Maximum number of bytes per read. The buffer is on the stack: a waiting connection holds none.
const MAX_READ: usize = 16 * 1024;
/// How soon after a request begins the end of a used connection suggests that the server had closed it before. Later, it has
/// probably worked on the request.
const STALE: Duration = Duration::from_secs(1);

/// A connection without a request in progress.
#[derive(Debug)]
pub(crate) struct H1Connection<S> {
    socket: S,
    runtime: Option<Id>,
    /// Whether it has served a request.
    is_used: bool,
}

/// A response body that is being read.
#[derive(Debug)]
pub(crate) struct Reading<S> {
    socket: S,
    runtime: Option<Id>,
    outgoing: Outgoing,
    framing: Framing,
    /// Whether the connection can be reused after this response.
    lasts: bool,
    /// Data that arrived with the head.
    held: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> H1Connection<S> {
    /// `socket`: one that belongs to the current runtime.
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, runtime: current(), is_used: false }
    }

    pub(crate) fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Sends a request and waits for the head of the response, which may arrive before all of the request is sent.
    /// If this is dropped or fails, the connection is closed. `destination`: the server, and the proxy that forwards the request.
    pub(crate) async fn send(
        self,
        request: RequestRef<'_>,
        destination: Destination<'_>,
    ) -> Result<(response::Parts, Reading<S>), Error> {
        let Self { mut socket, runtime, is_used } = self;
        let stale_until = is_used.then(|| Instant::now() + STALE);
        let head = Bytes::from(head::write(request, destination));
        let mut outgoing =
            Outgoing { head, body: request.body.clone(), state: Sending::Underway, has_started: false };
        let mut packets = BytesMut::new();
        let mut reader = head::Reader::default();
        let answer = poll_fn(|context| {
            loop {
                outgoing.advance(&mut socket, context);
                if let Some(answer) = reader.read(&mut packets)? {
                    return Poll::Ready(Ok(answer));
                }
                let read = poll_packet(&mut socket, context, |packet| packets.extend_from_slice(packet));
                let why = match ready!(read) {
                    Ok(Some(())) => continue,
                    ended if packets.is_empty() && is_end(&ended) && is_before(stale_until) => {
                        let error = if outgoing.has_started { Error::Stale } else { Error::Unsent };
                        return Poll::Ready(Err(error));
                    }
                    Ok(None) if packets.is_empty() => Error::Closed,
                    Ok(None) => Error::Incomplete,
                    Err(error) => Error::Broken(error),
                };
                // The reason why the request could not be sent is more informative than the missing response.
                return Poll::Ready(Err(outgoing.failure().map_or(why, Error::Broken)));
            }
        })
        .await?;
        let (framing, lasts) =
            framing::of_answer(request.method, answer.version, answer.status, &answer.headers)?;
        Ok((answer, Reading { socket, runtime, outgoing, framing, lasts, held: packets }))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Reading<S> {
    /// The data that arrived with the head, possibly empty.
    pub(crate) fn arrived(&mut self) -> Result<Bytes, Error> {
        let (taken, data) = self.framing.decode(&self.held)?;
        self.held.advance(taken);
        if self.held.is_empty() {
            self.held = BytesMut::new();
        }
        Ok(data)
    }

    /// The next data, never empty; none at the end of the body.
    pub(crate) fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        self.outgoing.advance(&mut self.socket, context);
        while !self.framing.is_done() {
            let (framing, lasts) = (&mut self.framing, &mut self.lasts);
            let read = poll_packet(&mut self.socket, context, |packet| {
                let (taken, data) = framing.decode(packet)?;
                // Data after the end of the response was not requested.
                *lasts &= taken == packet.len();
                Ok::<_, Error>(data)
            });
            match ready!(read)? {
                Some(data) => match data? {
                    data if data.is_empty() => {}
                    data => return Poll::Ready(Ok(Some(data))),
                },
                None => self.framing.end()?,
            }
        }
        Poll::Ready(Ok(None))
    }

    pub(crate) fn is_done(&self) -> bool {
        self.framing.is_done()
    }

    /// How many bytes are still to come, if the server announced a length.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(left) => Some(left),
            Framing::Done => Some(0),
            Framing::Chunked(_) | Framing::Close => None,
        }
    }

    /// The connection must not be reused.
    pub(crate) fn close_at_end(&mut self) {
        self.lasts = false;
    }

    /// The connection, if it can be reused.
    pub(crate) fn into_connection(self) -> Option<H1Connection<S>> {
        let is_free = self.framing.is_done() && self.lasts && self.outgoing.is_sent() && self.held.is_empty();
        is_free.then_some(H1Connection { socket: self.socket, runtime: self.runtime, is_used: true })
    }
}

impl H1Connection<Socket> {
    /// Whether this runtime watches the socket, or can: a socket that another runtime watches may never
    /// become ready here.
    pub(crate) fn is_of_this_runtime(&self) -> bool {
        self.runtime == current() || self.socket.is_watched()
    }

    /// Lets the caller's runtime watch the connection, or the caller's thread if it watches the connection of its request.
    pub(crate) fn begin(mut self) -> io::Result<Self> {
        if watching::is_on()
            && let Some(watched) = self.socket.watch()
        {
            watching::set(Some(watched));
            return Ok(self);
        }
        self.socket.drive()?;
        Ok(Self { runtime: current(), ..self })
    }
}

impl Reading<Socket> {
    /// Hands the connection to another watcher; none while the request is still being sent.
    pub(crate) fn watch(&mut self) -> Option<WatchedSocket> {
        if self.outgoing.is_sent() { self.socket.watch() } else { None }
    }

    /// Hands the connection back to the caller's runtime to watch.
    pub(crate) fn drive(&mut self) -> Result<(), Error> {
        self.socket.drive()?;
        self.runtime = current();
        Ok(())
    }
}

/// The part of a request that is still to be sent.
#[derive(Debug)]
struct Outgoing {
    head: Bytes,
    body: Bytes,
    state: Sending,
    /// Whether the connection has accepted any part of it.
    has_started: bool,
}

#[derive(Debug)]
enum Sending {
    Underway,
    Sent,
    /// None once the failure has been reported.
    Failed(Option<io::Error>),
}

impl Outgoing {
    /// Sends as much as the connection accepts. A failure is stored instead of returned: there may still be a
    /// response.
    fn advance<S: AsyncWrite + Unpin>(&mut self, socket: &mut S, context: &mut Context<'_>) {
        while matches!(self.state, Sending::Underway) {
            let mut socket = Pin::new(&mut *socket);
            let is_written = self.head.is_empty() && self.body.is_empty();
            let polled = if is_written {
                socket.poll_flush(context).map_ok(|()| None)
            } else {
                let slices = [IoSlice::new(&self.head), IoSlice::new(&self.body)];
                socket.as_mut().poll_write_vectored(context, &slices).map_ok(Some)
            };
            match polled {
                Poll::Pending => return,
                Poll::Ready(Ok(None)) => {
                    // Frees their memory during the wait for the response.
                    (self.head, self.body) = (Bytes::new(), Bytes::new());
                    self.state = Sending::Sent;
                }
                Poll::Ready(Ok(Some(0))) => {
                    self.state = Sending::Failed(Some(io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(Some(written))) => {
                    self.has_started = true;
                    let of_head = written.min(self.head.len());
                    self.head.advance(of_head);
                    self.body.advance(written - of_head);
                }
                Poll::Ready(Err(error)) => self.state = Sending::Failed(Some(error)),
            }
        }
    }

    fn is_sent(&self) -> bool {
        matches!(self.state, Sending::Sent)
    }

    /// Why the request was not fully sent; returned once.
    fn failure(&mut self) -> Option<io::Error> {
        match &mut self.state {
            Sending::Failed(error) => error.take(),
            _ => None,
        }
    }
}

/// Whether the peer closed the connection, rather than just going silent.
fn is_end(read: &io::Result<Option<()>>) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match read {
        Ok(read) => read.is_none(),
        Err(error) => {
            matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
        }
    }
}

fn is_before(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() < until)
}

fn current() -> Option<Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

/// Reads what has arrived and passes it to the callback; none at the end of the connection.
fn poll_packet<S: AsyncRead + Unpin, T>(
    socket: &mut S,
    context: &mut Context<'_>,
    take: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<Option<T>>> {
    let mut space = [const { MaybeUninit::uninit() }; MAX_READ];
    let mut buffer = ReadBuf::uninit(&mut space);
    ready!(Pin::new(socket).poll_read(context, &mut buffer))?;
    let packet = buffer.filled();
    Poll::Ready(Ok((!packet.is_empty()).then(|| take(packet))))
}
