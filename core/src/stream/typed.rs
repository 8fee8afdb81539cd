//! Streams of typed values over the raw one.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use serde::de::DeserializeOwned;

use super::RawStream;
use super::shape::{self, Mending};
use crate::error::Error;
use crate::response::{RawResponse, Response};
use crate::sse::Frame;
use crate::types;

/// What an operation streams, with the answer that all of it amounts to.
pub trait Chunk: DeserializeOwned {
    /// The answer as it comes without streaming.
    type Whole: DeserializeOwned;
}

impl Chunk for types::ChatCompletionChunk {
    type Whole = types::ChatCompletion;
}

impl Chunk for types::ResponseStreamEvent {
    type Whole = types::Response;
}

impl Chunk for types::GenerateContentResponse {
    type Whole = Self;
}

/// A stream of typed items: [`futures_util::Stream`] of `Result<T, Error>`, which ends when the answer is complete.
///
/// Dropping it closes the connection.
pub struct EventStream<T> {
    raw: RawStream,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> EventStream<T> {
    pub(crate) fn new(raw: RawStream) -> Self {
        Self { raw, item: PhantomData }
    }

    /// The stream beneath, with its status, headers and request id.
    pub fn raw(&self) -> &RawStream {
        &self.raw
    }

    /// The stream beneath, to go on with at another level.
    pub fn into_raw(self) -> RawStream {
        self.raw
    }

    /// The next item; none once the stream is complete. Errors: as [`RawStream::next_batch`], and Decode for an
    /// event that is not of the form the operation streams.
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        StreamExt::next(self).await.transpose()
    }

    /// The frames from here on, as they come ([`RawStream::next_frames`]).
    pub fn frames(self) -> impl Stream<Item = Result<Frame, Error>> + Send + Unpin {
        Each { raw: self.raw, next: RawStream::poll_next_frame }
    }

    /// The new text of the first choice from here on, in non-empty pieces ([`RawStream::next_text`]).
    pub fn text(self) -> impl Stream<Item = Result<String, Error>> + Send + Unpin {
        Each { raw: self.raw, next: RawStream::poll_next_text }
    }
}

impl<T: Chunk> EventStream<T> {
    /// Reads on to the end and gives the answer that the whole stream amounts to, what was read before included.
    /// What the answer's type requires and the stream did not bring is there and empty: without usage in the stream
    /// all counts are 0.
    ///
    /// Errors: as [`EventStream::try_next`]; with the part that had arrived.
    pub async fn finish(mut self) -> Result<Response<T::Whole>, Error> {
        let operation = self.raw.operation();
        let whole = self.raw.finish().await?;
        whole.clone().parse(operation).or_else(|error| {
            let form = shape::whole_form(operation.protocol);
            let mended = shape::mend_text(form, &String::from_utf8_lossy(&whole.body), Mending::Forced);
            let body = mended.map_err(|_| error)?.into();
            RawResponse { body, ..whole }.parse(operation)
        })
    }
}

impl<T: DeserializeOwned> Stream for EventStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.raw.poll_next_typed(context)
    }
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// A stream of what one level hands over, one by one.
struct Each<T> {
    raw: RawStream,
    next: PollNext<T>,
}

type PollNext<T> = fn(&mut RawStream, &mut Context<'_>) -> Poll<Result<Option<T>, Error>>;

impl<T> Stream for Each<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { raw, next } = &mut *self;
        Poll::Ready(ready!(next(raw, context)).transpose())
    }
}
