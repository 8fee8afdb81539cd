//! Streams of typed values on top of the raw stream.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;

use super::RawStream;
use super::chunk_template::ChunkTemplate;
use super::shape::{self, RepairLevel};
use crate::api::chunk::Chunk;
use crate::api::generated::shapes::whole_shape;
use crate::transport::response::{RawResponse, Response};
use crate::wire::error::Error;
use crate::wire::sse::Frame;

/// How often a `Stream` delivers again the error that it failed with.
const MAX_REPEATED_ERRORS: usize = 16;

/// A stream of typed items: a [`futures_util::Stream`] of `Result<T, Error>` that ends when the response is complete.
///
/// After an error it delivers the error again, so that a second loop doesn't take the stream for complete. A reader that
/// ignores 16 repetitions comes to the end.
///
/// Dropping it closes the connection.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::types::{ChatCompletionRequest, ChatMessage};
///
/// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
/// let mut chunks = client.chat().completions().stream(&request).await?;
/// while let Some(chunk) = chunks.try_next().await? {
///     print!("{}", chunk.text().unwrap_or_default());
/// }
/// # Ok(())
/// # }
/// ```
///
/// It can be read once, in one way: a method that reads the rest consumes the stream, so that no later reader finds
/// it empty and takes it for complete.
///
/// ```compile_fail,E0382
/// # async fn example(chunks: gatewright::EventStream<gatewright::types::ChatCompletionChunk>) {
/// let text = chunks.text();
/// let whole = chunks.finish().await;
/// # }
/// ```
pub struct EventStream<T> {
    raw: RawStream,
    copies: ChunkTemplate<T>,
}

impl<T: Chunk> EventStream<T> {
    pub(crate) fn new(raw: RawStream) -> Self {
        Self { raw, copies: ChunkTemplate::default() }
    }

    /// The underlying stream, with its status, headers and request id.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let chunks = client.chat().completions().stream(&request).await?;
    /// println!("request {}", chunks.raw().request_id().unwrap_or("without an id"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn raw(&self) -> &RawStream {
        &self.raw
    }

    /// The underlying stream, to continue at another level.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let mut chunks = client.chat().completions().stream(&request).await?;
    /// let first = chunks.try_next().await?;
    /// let rest = chunks.into_raw().next_text().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_raw(self) -> RawStream {
        self.raw
    }

    /// The next item; none once the stream is complete. Errors: as [`RawStream::next_batch`], and Decode for an event
    /// that does not have the form that the operation streams. A stream that has failed never looks complete: the error
    /// comes again, each time.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{MessageRequest, MessageTurn};
    ///
    /// let request = MessageRequest::new("model-sol", 100, vec![MessageTurn::user("Say hello.")]);
    /// let mut events = client.messages().stream(&request).await?;
    /// while let Some(event) = events.try_next().await? {
    ///     print!("{}", event.text_delta().unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        let next = poll_fn(|context| self.raw.poll_next_typed(context, &mut self.copies)).await?;
        match next {
            None => self.raw.failed().map_or(Ok(None), Err),
            item => Ok(item),
        }
    }

    /// The frames from here on, as they come ([`RawStream::next_frames`]). After an error: as this stream.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use futures_util::TryStreamExt as _;
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let mut frames = client.chat().completions().stream(&request).await?.frames();
    /// while let Some(frame) = frames.try_next().await? {
    ///     println!("{:?} {:?}", frame.event, frame.data);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn frames(self) -> impl Stream<Item = Result<Frame, Error>> + Send + Unpin {
        LevelStream { raw: self.raw, next: RawStream::poll_next_frame }
    }

    /// The new text of the first choice from here on, in non-empty pieces ([`RawStream::next_text`]). Errors: also
    /// Stream, after the text of a response that failed. After an error: as this stream.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use futures_util::TryStreamExt as _;
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let mut text = client.chat().completions().stream(&request).await?.text();
    /// while let Some(piece) = text.try_next().await? {
    ///     print!("{piece}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(self) -> impl Stream<Item = Result<String, Error>> + Send + Unpin {
        LevelStream { raw: self.raw, next: RawStream::poll_next_text }
    }

    /// Reads to the end and returns the whole response, including events read earlier. Members that the response's
    /// type requires and the stream lacked are empty: without usage in the stream, all counts are 0.
    ///
    /// Errors: those of [`EventStream::try_next`], with the partial response.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::{ChatCompletionRequest, ChatMessage};
    ///
    /// let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("Say hello.")]);
    /// let completion = client.chat().completions().stream(&request).await?.finish().await?;
    /// println!("{}", completion.text().unwrap_or_default());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(mut self) -> Result<Response<T::Whole>, Error> {
        self.whole().await
    }

    /// As [`EventStream::finish`], for what reads on in another way.
    pub(super) async fn whole(&mut self) -> Result<Response<T::Whole>, Error> {
        let operation = self.raw.operation();
        let whole = self.raw.finish().await?;
        whole.clone().parse(operation).or_else(|error| {
            let shape = whole_shape(operation);
            let mended = shape::mend_text(shape, &String::from_utf8_lossy(&whole.body), RepairLevel::Forced);
            let body = mended.map_err(|_| error)?.into();
            RawResponse { body, ..whole }.parse(operation)
        })
    }
}

impl<T: Chunk> Stream for EventStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { raw, copies } = &mut *self;
        let outcome = ready!(raw.poll_next_typed(context, copies));
        Poll::Ready(raw.stream_item(outcome))
    }
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// A stream of the items that one level delivers, one by one.
struct LevelStream<T> {
    raw: RawStream,
    next: PollNext<T>,
}

type PollNext<T> = fn(&mut RawStream, &mut Context<'_>) -> Poll<Result<Option<T>, Error>>;

impl<T> Stream for LevelStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { raw, next } = &mut *self;
        let outcome = ready!(next(raw, context));
        Poll::Ready(raw.stream_item(outcome))
    }
}

impl RawStream {
    /// What a `Stream` delivers. The end of a stream that has failed is its error again: it must not look complete. The number
    /// of repetitions is bounded, because a reader that ignores errors would never come to an end.
    fn stream_item<T>(&mut self, outcome: Result<Option<T>, Error>) -> Option<Result<T, Error>> {
        if matches!(outcome, Ok(None))
            && self.repeated_errors < MAX_REPEATED_ERRORS
            && let Some(error) = self.failed()
        {
            self.repeated_errors += 1;
            return Some(Err(error));
        }
        outcome.transpose()
    }
}
