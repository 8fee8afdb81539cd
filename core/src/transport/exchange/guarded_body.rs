//! The body of a stream. Until it is dropped, it holds its request's place in the pool and the span of its call.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use gatewright_connect::WatchedSocket;

use super::pool::Lease;
use crate::transport::route::{Body, HttpError};
use crate::transport::trace::StreamSpan;

/// A body and the resources that are released when it is over.
pub(crate) struct GuardedBody {
    body: Body,
    /// None for a body that did not come over a connection.
    _lease: Option<Lease>,
    /// None without a subscriber.
    span: Option<StreamSpan>,
}

impl GuardedBody {
    pub(super) fn new(body: Body, lease: Lease, span: Option<StreamSpan>) -> Self {
        Self { body, _lease: Some(lease), span }
    }

    /// Lets the reader watch the connection, if there is one to watch.
    pub(crate) fn watch(&mut self) -> Option<WatchedSocket> {
        self.body.watch()
    }

    /// Lets the runtime watch it again.
    pub(crate) fn drive(&mut self) -> Result<(), HttpError> {
        self.body.drive()
    }

    /// A body that did not come over a connection.
    #[cfg(test)]
    pub(crate) fn free(body: Body) -> Self {
        Self { body, _lease: None, span: None }
    }
}

impl Stream for GuardedBody {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let packet = ready!(self.body.poll_next_unpin(context));
        if let Some(span) = &mut self.span {
            match &packet {
                Some(Ok(packet)) => span.packet(packet),
                Some(Err(_)) => span.broken(),
                None => {}
            }
        }
        Poll::Ready(packet)
    }
}
