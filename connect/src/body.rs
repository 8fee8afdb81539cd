//! The body of a response.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;

use crate::error::Error;
use crate::h1::Reading;
use crate::h2;
use crate::idle::Idle;
use crate::socket::Socket;
use crate::tcp::WatchedSocket;

/// The body of a response. Polling it reads from the connection, which returns to the pool at the end of the body.
/// Dropping it earlier closes the connection; over HTTP/2, only its stream. Trailers are discarded.
pub struct Body {
    /// Data that arrived with the head.
    ready: Bytes,
    rest: Rest,
}

enum Rest {
    None,
    Http1 { reading: Box<Reading<Socket>>, idle: Arc<Idle> },
    Http2 { incoming: Incoming, place: h2::StreamGuard },
}

impl Body {
    /// A body received over HTTP/1.1.
    pub(crate) fn http1(mut reading: Reading<Socket>, idle: &Arc<Idle>) -> Result<Self, Error> {
        let ready = reading.arrived()?;
        if reading.is_done() {
            idle.put(reading.into_connection());
            return Ok(Self { ready, rest: Rest::None });
        }
        Ok(Self { ready, rest: Rest::Http1 { reading: Box::new(reading), idle: Arc::clone(idle) } })
    }

    /// A body received over HTTP/2. `place`: its slot on the connection, held until the end of the body.
    pub(crate) fn http2(incoming: Incoming, place: h2::StreamGuard) -> Self {
        Self { ready: Bytes::new(), rest: Rest::Http2 { incoming, place } }
    }

    /// Lets the reader watch the connection instead of the runtime: polling then returns immediately and registers no
    /// wakeup; it finds new data once the watcher has reported it. None if there is no connection to watch: at the end of
    /// the body, over HTTP/2, and while the request is still being sent.
    pub fn watch(&mut self) -> Option<WatchedSocket> {
        match &mut self.rest {
            Rest::Http1 { reading, .. } => reading.watch(),
            Rest::None | Rest::Http2 { .. } => None,
        }
    }

    /// Hands the connection back to the caller's runtime to watch.
    pub fn drive(&mut self) -> Result<(), Error> {
        match &mut self.rest {
            Rest::Http1 { reading, .. } => reading.drive(),
            Rest::None | Rest::Http2 { .. } => Ok(()),
        }
    }

    fn poll_rest(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        match &mut self.rest {
            Rest::None => Poll::Ready(Ok(None)),
            Rest::Http1 { reading, .. } => {
                let data = ready!(reading.poll_data(context));
                // The connection is freed as soon as the last byte has arrived or the connection has broken.
                if (reading.is_done() || data.is_err())
                    && let Rest::Http1 { reading, idle } = std::mem::replace(&mut self.rest, Rest::None)
                {
                    idle.put(reading.into_connection());
                }
                Poll::Ready(data)
            }
            Rest::Http2 { incoming, place } => loop {
                match ready!(http_body::Body::poll_frame(Pin::new(incoming), context)) {
                    None => {
                        self.rest = Rest::None;
                        return Poll::Ready(Ok(None));
                    }
                    Some(Err(error)) => {
                        place.failed(&error);
                        return Poll::Ready(Err(Error::Http2(error)));
                    }
                    Some(Ok(frame)) => match frame.into_data() {
                        Ok(data) if !data.is_empty() => return Poll::Ready(Ok(Some(data))),
                        Ok(_) | Err(_) => {}
                    },
                }
            },
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        if !this.ready.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.ready)))));
        }
        this.poll_rest(context).map(|read| read.transpose().map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty()
            && match &self.rest {
                Rest::None => true,
                Rest::Http1 { .. } => false,
                Rest::Http2 { incoming, .. } => incoming.is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        let ready = self.ready.len() as u64;
        let left = match &self.rest {
            Rest::None => Some(0),
            Rest::Http1 { reading, .. } => reading.left(),
            Rest::Http2 { incoming, .. } => return incoming.size_hint(),
        };
        left.and_then(|left| left.checked_add(ready)).map(SizeHint::with_exact).unwrap_or_default()
    }
}

/// Omits the bytes.
impl fmt::Debug for Body {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Body").finish_non_exhaustive()
    }
}
