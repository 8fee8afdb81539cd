//! The body of a request, read from the connection on demand.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use gatewright_connect::http1::Framing;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite};

use super::lock;
use super::wire::Wire;
use crate::wire::Body;

/// The body of the latest request. If it has arrived with its head, it is immediately available.
pub(super) fn incoming<S>(wire: &Arc<Mutex<Wire<S>>>) -> Body
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut held = lock(wire);
    if held.is_between_requests() {
        return Body::empty();
    }
    if let Some(whole) = held.take_whole() {
        return Body::from(whole);
    }
    drop(held);
    Body::new(Incoming { wire: Arc::clone(wire) })
}

struct Incoming<S> {
    wire: Arc<Mutex<Wire<S>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> http_body::Body for Incoming<S> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        lock(&self.wire).poll_body(context).map(|polled| polled.map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        lock(&self.wire).is_between_requests()
    }

    fn size_hint(&self) -> SizeHint {
        match lock(&self.wire).body() {
            Framing::Done => SizeHint::with_exact(0),
            Framing::Length(left) => SizeHint::with_exact(*left),
            Framing::Chunked(_) | Framing::Close => SizeHint::default(),
        }
    }
}
