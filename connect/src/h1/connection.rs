//! A connection: sends one request at a time and reads its answer, both in the task of the caller.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{Uri, response};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Handle, Id};

use super::framing::{self, Framing};
use super::head;
use crate::error::Error;
use crate::request::RequestRef;
use crate::socket::Socket;
use crate::tcp::Watched;
use crate::watching;

/// How much is read at once, into the stack: a connection that waits holds no buffer.
const MOST_READ: usize = 16 * 1024;
/// How soon after a request begins the end of a used connection tells that the server had closed it before. Later, it may have
/// worked on the request.
const STALE: Duration = Duration::from_secs(1);

/// A connection without a request in progress.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    socket: S,
    runtime: Option<Id>,
    /// Whether it has served a request.
    is_used: bool,
}

/// The body of an answer that is being read.
#[derive(Debug)]
pub(crate) struct Reading<S> {
    socket: S,
    runtime: Option<Id>,
    outgoing: Outgoing,
    framing: Framing,
    /// Whether the connection may be used again after this answer.
    lasts: bool,
    /// What has arrived with the head.
    held: BytesMut,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// `socket`: of the runtime that this is called in.
    pub(crate) fn new(socket: S) -> Self {
        Self { socket, runtime: current(), is_used: false }
    }

    pub(crate) fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Sends a request and waits for the head of the answer, which may come before all of the request is sent. The
    /// connection is closed where this is dropped or fails. `server`: scheme and authority.
    pub(crate) async fn send(
        self,
        request: RequestRef<'_>,
        server: &Uri,
    ) -> Result<(response::Parts, Reading<S>), Error> {
        let Self { mut socket, runtime, is_used } = self;
        let stale_until = is_used.then(|| Instant::now() + STALE);
        let head = Bytes::from(head::write(request, server));
        let mut outgoing = Outgoing { head, body: request.body.clone(), state: Sending::Underway };
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
                        return Poll::Ready(Err(Error::Stale));
                    }
                    Ok(None) if packets.is_empty() => Error::Closed,
                    Ok(None) => Error::Incomplete,
                    Err(error) => Error::Broken(error),
                };
                // Why the request could not be sent says more than that there is no answer.
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
    /// The data that has arrived with the head, perhaps none.
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
                // Nobody asked for what comes behind the answer.
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

    /// How much is still to come, where the server said so.
    pub(crate) fn left(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(left) => Some(left),
            Framing::Done => Some(0),
            Framing::Chunked(_) | Framing::Close => None,
        }
    }

    /// The connection, if it can be used again.
    pub(crate) fn into_connection(self) -> Option<Connection<S>> {
        let is_free = self.framing.is_done() && self.lasts && self.outgoing.is_sent() && self.held.is_empty();
        is_free.then_some(Connection { socket: self.socket, runtime: self.runtime, is_used: true })
    }
}

impl Connection<Socket> {
    /// Whether this runtime watches the socket, or can: what another one watches may never be ready here.
    pub(crate) fn is_of_this_runtime(&self) -> bool {
        self.runtime == current() || self.socket.is_watched()
    }

    /// Has the runtime of the caller watch it, or the thread of the caller where that watches the connection of its request.
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
    /// Has somebody else watch the connection; none while the request is still being sent.
    pub(crate) fn watch(&mut self) -> Option<Watched> {
        if self.outgoing.is_sent() { self.socket.watch() } else { None }
    }

    /// Has the runtime of the caller watch the connection again.
    pub(crate) fn drive(&mut self) -> Result<(), Error> {
        self.socket.drive()?;
        self.runtime = current();
        Ok(())
    }
}

/// What is left of a request.
#[derive(Debug)]
struct Outgoing {
    head: Bytes,
    body: Bytes,
    state: Sending,
}

#[derive(Debug)]
enum Sending {
    Underway,
    Sent,
    /// None: the failure was told.
    Failed(Option<io::Error>),
}

impl Outgoing {
    /// Sends as much as the connection takes. A failure is kept: there may be an answer all the same.
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
                    // Their memory is free while the answer is waited for.
                    (self.head, self.body) = (Bytes::new(), Bytes::new());
                    self.state = Sending::Sent;
                }
                Poll::Ready(Ok(Some(0))) => {
                    self.state = Sending::Failed(Some(io::ErrorKind::WriteZero.into()));
                }
                Poll::Ready(Ok(Some(written))) => {
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

    /// Why not all was sent, once.
    fn failure(&mut self) -> Option<io::Error> {
        match &mut self.state {
            Sending::Failed(error) => error.take(),
            _ => None,
        }
    }
}

/// Whether the other side has closed the connection, and did not only fall silent.
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

/// Reads what has arrived, and hands it over; none at the end of the connection.
fn poll_packet<S: AsyncRead + Unpin, T>(
    socket: &mut S,
    context: &mut Context<'_>,
    take: impl FnOnce(&[u8]) -> T,
) -> Poll<io::Result<Option<T>>> {
    let mut space = [const { MaybeUninit::uninit() }; MOST_READ];
    let mut buffer = ReadBuf::uninit(&mut space);
    ready!(Pin::new(socket).poll_read(context, &mut buffer))?;
    let packet = buffer.filled();
    Poll::Ready(Ok((!packet.is_empty()).then(|| take(packet))))
}
