//! HTTP/2, using the `hyper` crate: requests share a connection, which a task drives.

use std::error::Error as StdError;
use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::error::Error;
use crate::request::RequestRef;
use crate::socket::Socket;

/// Maximum number of concurrent requests on a connection if the server allows as many: each may leave a full window
/// unread.
const MAX_STREAMS: u32 = 64;
/// How much of a response the server may send before it is read, in bytes. The window is not adaptive: an adaptive one
/// would make the connection's window no larger than a single stream's, and one stalled reader would stall all others.
pub const STREAM_WINDOW: u32 = 512 * 1024;
/// The window of the connection: a reader that stalls leaves every other stream its own full window.
const CONNECTION_WINDOW: u32 = MAX_STREAMS * STREAM_WINDOW;
/// Placeholder for a concurrency limit that the server hasn't announced yet. No server announces this value.
const UNKNOWN_LIMIT: usize = 0x7ffe_d9c3;

/// A connection that requests share.
#[derive(Debug)]
pub(crate) struct H2Connection {
    sender: SendRequest<Full<Bytes>>,
    streams: Arc<Streams>,
}

struct Streams {
    /// Number of open requests on the connection.
    open: AtomicUsize,
    /// Whether the connection has had a request.
    used: AtomicBool,
    /// Whether a request has failed with the connection. The task that drives it may notice only later.
    broken: AtomicBool,
    /// The connection that a [`Driver`] drives, until it has ended. It knows the server's concurrency limit.
    driven: Mutex<Option<ConnectionTask>>,
}

type ConnectionTask = http2::Connection<TokioIo<Socket>, Full<Bytes>, TokioExecutor>;

impl Streams {
    /// The server's concurrency limit, or [`UNKNOWN_LIMIT`]; none once the connection has ended.
    fn most(&self) -> Option<usize> {
        if self.broken.load(Ordering::Acquire) {
            return None;
        }
        self.driven().as_ref().map(ConnectionTask::current_max_send_streams)
    }

    fn driven(&self) -> MutexGuard<'_, Option<ConnectionTask>> {
        self.driven.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Drives a connection. If it is dropped, with its runtime or by a panic, it ends the connection: otherwise nothing would,
/// and tasks that wait for a response would wait forever.
struct Driver(Arc<Streams>);

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut driven = self.0.driven();
        match &mut *driven {
            // The requests on the connection get its error.
            Some(connection) => Pin::new(connection).poll(context).map(drop),
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let ended = self.0.driven().take();
        drop(ended);
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Streams").field("open", &self.open).finish_non_exhaustive()
    }
}

/// A slot for one request on a connection.
#[derive(Debug)]
pub(crate) struct StreamSlot {
    sender: SendRequest<Full<Bytes>>,
    held: StreamGuard,
}

/// Counts as a request on its connection until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamGuard(Arc<Streams>);

impl StreamGuard {
    /// Reports why the request failed. If that is not a reset of its stream alone, no further request uses the connection.
    pub(crate) fn failed(&self, error: &hyper::Error) {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
        if !cause.is_some_and(h2::Error::is_reset) {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl H2Connection {
    /// A slot on the connection, if one is free.
    pub(crate) fn place(&self) -> Option<StreamSlot> {
        let most = match self.streams.most()? {
            // Requests after the first wait for the server's limit: see `has_unknown_limit`.
            UNKNOWN_LIMIT => 1,
            // A server may allow no streams for a moment. The first request waits for that, whenever it learns of it.
            0 if !self.streams.used.load(Ordering::Relaxed) => 1,
            limit => limit.min(MAX_STREAMS as usize),
        };
        let more = |open: usize| (open < most).then(|| open + 1);
        self.streams.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        self.streams.used.store(true, Ordering::Relaxed);
        Some(StreamSlot { sender: self.sender.clone(), held: StreamGuard(Arc::clone(&self.streams)) })
    }

    /// Whether the server has not announced its concurrency limit yet: it does so in its first frame.
    pub(crate) fn has_unknown_limit(&self) -> bool {
        self.streams.most() == Some(UNKNOWN_LIMIT) && !self.is_closed()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed() || self.streams.broken.load(Ordering::Acquire)
    }

    /// Whether the connection has no requests.
    pub(crate) fn is_unused(&self) -> bool {
        self.streams.open.load(Ordering::Relaxed) == 0
    }
}

/// Starts HTTP/2 on a new connection. `ping`: interval of pings while there are requests, and how long each may take.
pub(crate) async fn begin(socket: Socket, ping: Duration) -> Result<H2Connection, Error> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new());
    builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    builder.initial_max_send_streams(UNKNOWN_LIMIT);
    builder.keep_alive_interval(ping).keep_alive_timeout(ping);
    let (sender, connection) =
        builder.handshake(TokioIo::new(socket)).await.map_err(|error| Error::Connect(error.into()))?;
    let streams = Arc::new(Streams {
        open: AtomicUsize::new(0),
        used: AtomicBool::new(false),
        broken: AtomicBool::new(false),
        driven: Mutex::new(Some(connection)),
    });
    tokio::spawn(Driver(Arc::clone(&streams)));
    Ok(H2Connection { sender, streams })
}

/// Why there is no response.
pub(crate) enum Failed {
    /// The server has not processed the request: the connection had ended, or the server refused it.
    Unsent,
    Broken(Error),
}

/// Sends a request. `server`: scheme and authority. The response keeps its slot until its body has been read.
pub(crate) async fn send(
    place: StreamSlot,
    request: RequestRef<'_>,
    server: &Uri,
) -> Result<(Response<Incoming>, StreamGuard), Failed> {
    let StreamSlot { mut sender, held } = place;
    let mut uri = server.clone().into_parts();
    uri.path_and_query = request.path_and_query.cloned().or(uri.path_and_query);
    let mut sent = Request::new(Full::new(request.body.clone()));
    *sent.method_mut() = request.method.clone();
    *sent.uri_mut() = Uri::from_parts(uri).unwrap_or_else(|_| server.clone());
    *sent.headers_mut() = request.headers.clone();
    remove_framing(sent.headers_mut());
    match sender.try_send_request(sent).await {
        Ok(answer) => Ok((answer, held)),
        Err(mut failed) => {
            held.failed(failed.error());
            Err(match failed.take_message() {
                Some(_) => Failed::Unsent,
                None if is_refused(failed.error()) => Failed::Unsent,
                None => Failed::Broken(Error::Http2(failed.into_error())),
            })
        }
    }
}

/// Whether the server says that it has not started on a request (RFC 9113, section 8.7): it refused its stream, or goes away
/// and names an earlier stream as the last one. Streams up to that one end without such an error.
fn is_refused(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| {
        let is_refused = cause.reason() == Some(h2::Reason::REFUSED_STREAM);
        cause.is_remote() && (is_refused || cause.is_go_away())
    })
}

/// Connection-specific headers are not allowed in HTTP/2.
fn remove_framing(headers: &mut HeaderMap) {
    for name in
        [header::CONNECTION, header::CONTENT_LENGTH, header::HOST, header::TRANSFER_ENCODING, header::UPGRADE]
    {
        headers.remove(name);
    }
}
