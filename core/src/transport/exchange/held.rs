//! The body of a stream. Until it is dropped, it holds its request's place in the pool and the span of its call.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;

use super::pool::Lease;
use crate::transport::trace::StreamSpan;

/// The resources that are released when a stream is over.
#[derive(Debug)]
pub(crate) struct Held {
    _lease: Lease,
    /// None if nobody subscribes.
    span: Option<StreamSpan>,
}

impl Held {
    pub(super) fn new(lease: Lease, span: Option<StreamSpan>) -> Self {
        Self { _lease: lease, span }
    }

    pub(crate) fn over<S>(self, body: S) -> HeldBody<S> {
        HeldBody { body, held: self }
    }
}

/// A body and the resources it holds.
pub(crate) struct HeldBody<S> {
    body: S,
    held: Held,
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for HeldBody<S> {
    type Item = reqwest::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let packet = ready!(Pin::new(&mut self.body).poll_next(context));
        if let Some(span) = &mut self.held.span {
            match &packet {
                Some(Ok(packet)) => span.packet(packet),
                Some(Err(_)) => span.broken(),
                None => {}
            }
        }
        Poll::Ready(packet)
    }
}
