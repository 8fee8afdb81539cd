//! A streaming response: events in batches. A stream ends complete or with an error; it is never silently cut short.
//! sse.rs decodes the framing, stream/reading.rs reads the body, stream/classify.rs interprets each event,
//! stream/levels.rs delivers events at each level, stream/shape.rs mends their shape, and stream/accumulate.rs merges
//! them into one document. stream/chat_events.rs, stream/message_events.rs and stream/response_events.rs deliver
//! the answer so far. stream/answer.rs gives access to the head of the response.

mod accumulate;
mod answer;
pub(crate) mod chat_events;
mod chunk_template;
mod classify;
mod document;
mod growing_text;
mod journal;
pub(crate) mod json_prefix;
mod levels;
mod message_events;
mod pattern;
pub mod prefetch;
mod reading;
mod response_events;
mod rows;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod typed;
mod yielding;

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use gatewright_connect::WatchedSocket;
use serde::Deserialize;
use tokio::time::{Instant, Sleep};

pub use self::accumulate::Accumulator;
pub use self::chat_events::{ChatEvent, ChatEvents, NoValue};
use self::chunk_template::ChunkTemplate;
use self::levels::Levels;
pub use self::message_events::{MessageEvent, MessageEvents};
use self::reading::{PacketReader, ReadChunk, Ready};
pub use self::response_events::{ResponseEvent, ResponseEvents};
pub use self::typed::EventStream;
use self::yielding::YieldPolicy;
use crate::api::chunk::Chunk as TypedChunk;
use crate::api::operation::{Operation, Protocol};
use crate::transport::clock::later;
use crate::transport::exchange::{Bounds, GuardedBody, IdleTimeout, Opened};
use crate::transport::response::{Head, RawResponse};
use crate::transport::route::HttpError;
use crate::wire::error::{Error, ErrorKind, Received};
use crate::wire::sse::{Frame, StreamEvent};

/// Number of ready events after which the batch is delivered before the next packet is read.
const MAX_BATCH_EVENTS: usize = 1024;
/// Maximum number of packets read in one poll, so that other work on the thread, including timers, gets a turn: a
/// compressed body may yield packets endlessly.
const MAX_PACKETS_A_TURN: usize = 64;
/// Time to wait for the end of the body after the terminator, so that the connection can be reused.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// A stream of events as bytes of JSON, for front ends that parse them themselves.
///
/// It can be read at three levels, which may be mixed: chunks ([`RawStream::next_batch`]), frames as they arrived
/// ([`RawStream::next_frames`]) and text alone ([`RawStream::next_text`]). Each event is delivered once, at the level
/// of the read that gets it. [`RawStream::finish`] merges all of them into one document.
///
/// Dropping it closes the connection.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::{Call, operations};
///
/// let body = r#"{"model": "model-sol", "messages": [{"role": "user", "content": "Say hello."}], "stream": true}"#;
/// let mut stream = client.open(Call::new(&operations::CREATE_CHAT_COMPLETION).body(body)).await?;
/// while let Some(texts) = stream.next_text().await? {
///     print!("{}", texts.concat());
/// }
/// # Ok(())
/// # }
/// ```
pub struct RawStream {
    operation: &'static Operation,
    head: Head,
    bounds: Bounds,
    /// None once the stream has ended for any reason: the connection is released with the body.
    body: Option<GuardedBody>,
    reader: PacketReader,
    levels: Levels,
    /// How the stream ends, once known; reported after the ready events.
    end: Option<Result<(), Error>>,
    /// The error the stream failed with, for callers that ask again.
    failure: Option<(ErrorKind, String)>,
    /// How often a [`futures_util::Stream`] has delivered that error again.
    repeated_errors: usize,
    opened: Instant,
    last_byte: Instant,
    timer: Pin<Box<Sleep>>,
    turns: YieldPolicy,
    /// Whether the reader watches the connection, instead of the runtime.
    is_watched: bool,
    /// Whether everything that has arrived has been read from the body.
    is_drained: bool,
    /// Whether the waiting task is woken when the timer expires.
    is_timed: bool,
}

impl RawStream {
    pub(crate) fn new(opened: Opened) -> Self {
        let Opened { operation, head, body, bounds } = opened;
        let now = Instant::now();
        let reader = PacketReader::new(operation, head.content_type(), bounds.max_body_bytes, now);
        Self {
            operation,
            head,
            bounds,
            body: Some(body),
            reader,
            levels: Levels::new(operation, bounds.max_body_bytes),
            end: None,
            failure: None,
            repeated_errors: 0,
            opened: now,
            last_byte: now,
            timer: Box::pin(tokio::time::sleep_until(later(
                now,
                bounds.silence.limit.min(bounds.event_idle),
            ))),
            turns: YieldPolicy::default(),
            is_watched: false,
            is_drained: false,
            is_timed: false,
        }
    }

    /// Lets the reader watch the connection: polling then registers no wakeup for incoming data. None if there
    /// is no connection to watch.
    fn watch(&mut self) -> Option<WatchedSocket> {
        let watched = self.body.as_mut()?.watch()?;
        self.is_watched = true;
        Some(watched)
    }

    /// Hands the connection back to the caller's runtime to watch.
    fn drive(&mut self) {
        self.is_watched = false;
        // Needed even if no reader watched it: the connection may come from a call whose thread watched it.
        if let Some(Err(error)) = self.body.as_mut().map(GuardedBody::drive) {
            self.end = Some(Err(body_error(error)));
        }
    }

    /// Makes the timer wake the next task that polls, which may be another reader.
    fn renew_timer(&mut self) {
        self.is_timed = false;
    }

    /// Whether there is nothing to do until the connection has something, or the timer wakes the waiting
    /// task.
    fn is_at_rest(&self) -> bool {
        self.is_watched && self.is_drained && self.is_timed && !self.timer.is_elapsed()
    }

    /// How many events have been delivered, and from how many bytes.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// while stream.next_batch().await?.is_some() {
    ///     println!("{} events so far", stream.received().events);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn received(&self) -> Received {
        self.levels.received
    }

    /// The events delivered so far, merged into one JSON document in the form of a response that is not streamed. None
    /// before the first event, and after the document has exceeded the maximum body size.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// let started = stream.next_batch().await?.is_some();
    /// assert_eq!(stream.partial().is_some(), started);
    /// # Ok(())
    /// # }
    /// ```
    pub fn partial(&mut self) -> Option<Bytes> {
        self.levels.journal.partial()
    }

    /// Waits for at least one event and returns all that are ready; none once the stream is complete.
    /// Each event's data is one JSON document, repaired where possible to match the schema that the operation streams.
    /// Terminators and heartbeats are not delivered. The future is cancel-safe: dropping it loses no event. The same
    /// holds for the methods below.
    ///
    /// Errors, after all earlier events: StreamTruncated if the stream ends before it is complete, Stream if it carries
    /// an error, Decode if an event is not JSON, Timeout, Connection. They carry what arrived ([`Error::partial`],
    /// [`Error::received`]). After an error: none.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// while let Some(events) = stream.next_batch().await? {
    ///     for event in events {
    ///         println!("{}", event.data);
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_batch(&mut self) -> Result<Option<Vec<StreamEvent>>, Error> {
        poll_fn(|context| self.poll_level(context, false, true, Self::take_chunk)).await
    }

    /// As [`RawStream::next_batch`], but does not wait: none if nothing is ready yet.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// match stream.try_next_batch() {
    ///     None => println!("nothing yet"),
    ///     Some(batch) => println!("{} events", batch?.map_or(0, |events| events.len())),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_next_batch(&mut self) -> Option<Result<Option<Vec<StreamEvent>>, Error>> {
        poll_fn(|context| self.poll_level(context, false, false, Self::take_chunk)).now_or_never()
    }

    /// Like [`RawStream::next_batch`], as one JSON text for front ends that turn events into objects: an array of
    /// rows. A row is `[event]`, or `[parts, paths, value…]` for three or more events that differ in a few strings
    /// and numbers. `paths` locates these values by member names and item indexes; the values of all events follow
    /// one another. An event's JSON consists of the texts in `parts`, one more than there are values, with its values
    /// between them.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// while let Some(rows) = stream.next_rows().await? {
    ///     let rows: Vec<serde_json::Value> = serde_json::from_str(&rows).expect("rows are JSON");
    ///     println!("{} rows", rows.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_rows(&mut self) -> Result<Option<String>, Error> {
        let batch = poll_fn(|context| self.poll_level(context, false, true, Self::take_alike)).await?;
        Ok(batch.map(|batch| rows::to_json(&batch)))
    }

    /// As [`RawStream::next_batch`], at the level of frames: every frame as it arrived, including heartbeats,
    /// terminators and error events. A body that is one JSON document is delivered as its chunks.
    ///
    /// Errors: as [`RawStream::next_batch`], after the frame that reported them.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// while let Some(frames) = stream.next_frames().await? {
    ///     for comment in frames.iter().flat_map(|frame| &frame.comments) {
    ///         println!("heartbeat: {comment}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_frames(&mut self) -> Result<Option<Vec<Frame>>, Error> {
        poll_fn(|context| self.poll_level(context, true, true, Self::take_frame)).await
    }

    /// As [`RawStream::next_batch`], at the level of text: the new text of the first choice, for each event that has
    /// some. In the responses protocol this is the text of `response.output_text.delta`, in the native protocol that of
    /// the first candidate without its thoughts.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// while let Some(pieces) = stream.next_text().await? {
    ///     print!("{}", pieces.concat());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_text(&mut self) -> Result<Option<Vec<String>>, Error> {
        poll_fn(|context| self.poll_level(context, false, true, Self::take_text)).await
    }

    /// Reads to the end and returns the whole response as it would be without streaming, events read earlier included.
    /// `elapsed` runs until now.
    ///
    /// Errors: as [`RawStream::next_batch`], the same error again if the stream has already failed; Decode if the
    /// response exceeds the maximum body size.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// let whole = stream.finish().await?;
    /// println!("{} after {:?}", String::from_utf8_lossy(&whole.body), whole.elapsed);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn finish(&mut self) -> Result<RawResponse, Error> {
        while poll_fn(|context| self.poll_level(context, false, true, Self::take_chunk)).await?.is_some() {}
        if let Some(error) = self.failed() {
            return Err(error);
        }
        match self.levels.journal.whole() {
            Ok(body) => {
                let mut head = self.head.clone();
                head.elapsed = head.elapsed.saturating_add(self.opened.elapsed());
                Ok(RawResponse::new(head, body))
            }
            Err(error) => Err(self.describe(error)),
        }
    }

    /// Ends the stream for a reason of the caller's, such as cancellation or an event that the caller cannot read.
    /// Closes the connection and adds the status, the request id and the partial response to the error.
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// use gatewright::{Error, ErrorKind};
    ///
    /// let first = stream.next_batch().await?;
    /// let error = stream.give_up(Error::new(ErrorKind::Cancelled, "the user pressed stop"));
    /// println!("{error}; so far: {:?}", error.partial());
    /// # Ok(())
    /// # }
    /// ```
    pub fn give_up(&mut self, error: Error) -> Error {
        self.fail(error);
        match self.take_end() {
            Err(error) => error,
            Ok(()) => unreachable!("the stream has just failed"),
        }
    }

    /// Runs work on this stream like [`contained`](crate::contained). If the work panics, the stream ends as after
    /// [`RawStream::give_up`].
    ///
    /// ```no_run
    /// # async fn example(stream: &mut gatewright::RawStream) -> Result<(), gatewright::Error> {
    /// let text = stream
    ///     .contain(async |stream| {
    ///         let pieces = stream.next_text().await?.unwrap_or_default();
    ///         Ok(pieces.concat())
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn contain<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match crate::contained(work(self)).await {
            Err(error) if error.kind() == ErrorKind::Internal => {
                // The panic may have been caused by what has arrived.
                crate::contain(|| Err(self.give_up(error)))
            }
            outcome => outcome,
        }
    }

    fn take_chunk(&mut self, ready: Ready) -> Result<Option<StreamEvent>, Error> {
        self.levels.chunk(ready)
    }

    fn take_alike(&mut self, ready: Ready) -> Result<Option<ReadChunk>, Error> {
        self.levels.alike(ready)
    }

    fn take_text(&mut self, ready: Ready) -> Result<Option<String>, Error> {
        self.levels.text(ready)
    }

    #[expect(clippy::unnecessary_wraps, reason = "every level is taken alike")]
    fn take_frame(&mut self, ready: Ready) -> Result<Option<Frame>, Error> {
        let (frame, outcome) = self.levels.frame(ready);
        if let Err(error) = outcome {
            self.fail(error);
        }
        Ok(frame)
    }

    /// Polls for a batch at one level. frames: whether the decoder returns whole frames. may_yield: whether the
    /// connection task gets a turn to deliver more before the batch is closed.
    fn poll_level<T>(
        &mut self,
        context: &mut Context<'_>,
        frames: bool,
        may_yield: bool,
        take: impl Fn(&mut Self, Ready) -> Result<Option<T>, Error>,
    ) -> Poll<Result<Option<Vec<T>>, Error>> {
        loop {
            ready!(self.poll_ready(context, frames, may_yield));
            if self.reader.ready.is_empty() {
                return Poll::Ready(self.take_end().map(|()| None));
            }
            let mut batch = Vec::with_capacity(self.reader.ready.len());
            while let Some(ready) = self.reader.ready.pop_front() {
                match take(self, ready) {
                    Ok(taken) => batch.extend(taken),
                    Err(error) => self.fail(error),
                }
            }
            if !batch.is_empty() {
                return Poll::Ready(Ok(Some(batch)));
            }
        }
    }

    /// Polls for one item of a level.
    fn poll_one<T>(
        &mut self,
        context: &mut Context<'_>,
        frames: bool,
        mut take: impl FnMut(&mut Self, Ready) -> Result<Option<T>, Error>,
    ) -> Poll<Result<Option<T>, Error>> {
        loop {
            let Some(ready) = self.reader.ready.pop_front() else {
                ready!(self.poll_ready(context, frames, true));
                if self.reader.ready.is_empty() {
                    return Poll::Ready(self.take_end().map(|()| None));
                }
                continue;
            };
            match take(self, ready) {
                Ok(None) => {}
                Ok(taken) => return Poll::Ready(Ok(taken)),
                Err(error) => self.fail(error),
            }
        }
    }

    fn poll_next_typed<T: TypedChunk>(
        &mut self,
        context: &mut Context<'_>,
        copies: &mut ChunkTemplate<T>,
    ) -> Poll<Result<Option<T>, Error>> {
        self.poll_one(context, false, |stream, ready| stream.levels.typed(ready, copies))
    }

    fn poll_next_frame(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame>, Error>> {
        self.poll_one(context, true, Self::take_frame)
    }

    /// Polls for the next text. After the text of a failed answer comes its error, so that it isn't mistaken for an
    /// answer.
    fn poll_next_text(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<String>, Error>> {
        match ready!(self.poll_one(context, false, Self::take_text)) {
            Ok(None) if self.failure.is_none() => Poll::Ready(self.check_answer().map(|()| None)),
            outcome => Poll::Ready(outcome),
        }
    }

    /// Errors: Stream if the answer says that it failed. In the responses protocol, such a stream is complete.
    fn check_answer(&mut self) -> Result<(), Error> {
        if self.operation.protocol != Protocol::Responses {
            return Ok(());
        }
        let document = self.levels.journal.partial();
        let failed = document.filter(|document| {
            let status = serde_json::from_slice(document).map(|ResponseState { status }| status);
            status.is_ok_and(|status| status == "failed")
        });
        let Some(document) = failed else { return Ok(()) };
        let message = || "the response failed; the service does not say why".to_owned();
        self.fail(Error::from_body(ErrorKind::Stream, document, message));
        self.take_end()
    }

    /// Ready once there is something to deliver or the end of the stream is known.
    fn poll_ready(&mut self, context: &mut Context<'_>, frames: bool, may_yield: bool) -> Poll<()> {
        self.reader.set_frames(frames);
        let mut packets = 0;
        while self.end.is_none() && self.reader.ready.len() < MAX_BATCH_EVENTS {
            if packets == MAX_PACKETS_A_TURN {
                if !self.reader.ready.is_empty() {
                    break;
                }
                if let Poll::Ready(silence) = self.poll_silence(context) {
                    self.end = Some(Err(silence));
                    break;
                }
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            packets += 1;
            let Some(body) = &mut self.body else { break };
            let polled = body.poll_next_unpin(context);
            self.is_drained = polled.is_pending();
            match polled {
                Poll::Ready(Some(Ok(packet))) => {
                    self.last_byte = Instant::now();
                    self.turns.packet();
                    self.levels.received.bytes += packet.len() as u64;
                    self.end = self.reader.take_packet(&packet, self.last_byte);
                }
                Poll::Ready(Some(Err(error))) => self.end = Some(Err(body_error(error))),
                Poll::Ready(None) => self.end = Some(self.reader.take_body_end()),
                Poll::Pending if self.reader.ready.is_empty() => {
                    let silence = ready!(self.poll_silence(context));
                    self.end = Some(Err(silence));
                }
                Poll::Pending if may_yield && !self.is_watched && self.turns.give() => {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => break,
            }
        }
        self.turns.close();
        if self.end.is_some() {
            self.release_body();
        }
        Poll::Ready(())
    }

    /// Ready once the stream has been silent for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        let IdleTimeout { limit, option } = self.bounds.silence;
        let (by_bytes, by_events) = loop {
            // New data only postpones the timeout, so the timer is adjusted when it expires.
            self.is_timed = true;
            ready!(self.timer.as_mut().poll(context));
            let by_bytes = later(self.last_byte, limit);
            let by_events = later(self.reader.last_event, self.bounds.event_idle);
            let until = by_bytes.min(by_events);
            if until <= self.timer.deadline() {
                break (by_bytes, by_events);
            }
            self.timer.as_mut().reset(until);
        };
        let message = if by_bytes <= by_events {
            format!("no data of the stream arrived for {limit:?} ({option})")
        } else {
            format!("no event of the stream arrived for {:?} (event_timeout)", self.bounds.event_idle)
        };
        Poll::Ready(Error::new(ErrorKind::Timeout, message))
    }

    /// Ends the stream with an error and drops any ready events after it.
    fn fail(&mut self, error: Error) {
        self.reader.ready.clear();
        self.end = Some(Err(error));
        self.release_body();
    }

    /// Returns how the stream ended. An error is returned once.
    fn take_end(&mut self) -> Result<(), Error> {
        match self.end.take() {
            Some(Err(error)) => {
                let error = self.describe(error);
                self.failure = Some((error.kind(), error.message().to_owned()));
                Err(error)
            }
            Some(Ok(())) | None => Ok(()),
        }
    }

    /// The error that the stream ended with, for a caller that asks again.
    fn failed(&mut self) -> Option<Error> {
        let (kind, message) = self.failure.as_ref()?;
        let error = Error::new(*kind, message.clone());
        Some(self.describe(error))
    }

    /// Adds the response's metadata and the partial response to the error.
    fn describe(&mut self, error: Error) -> Error {
        let partial = self.levels.journal.partial();
        self.head.describe(error.with_partial(partial, self.levels.received), self.operation)
    }

    /// Releases the connection. It returns to the pool if the response is complete and its body is about to end;
    /// otherwise it is closed.
    fn release_body(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        if matches!(self.end, Some(Ok(())))
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // The end has usually arrived with the last event.
            if !matches!(body.next().now_or_never(), Some(Some(Ok(_))) | None) {
                return;
            }
            runtime.spawn(async move {
                if body.drive().is_err() {
                    return;
                }
                let drained = async { while let Some(Ok(_)) = body.next().await {} };
                // Both outcomes are fine: the body ended in time, or the drop closes the connection.
                let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
            });
        }
    }
}

/// The status and error of a response.
#[derive(Deserialize)]
struct ResponseState<'r> {
    #[serde(borrow)]
    status: Cow<'r, str>,
}

/// The error for a body that was cut off or cannot be decompressed.
fn body_error(error: HttpError) -> Error {
    if !error.is_of_content() || is_of_connection(&error) {
        return crate::transport::exchange::body_error(error);
    }
    let mut causes = std::iter::successors(std::error::Error::source(&error), |cause| cause.source());
    let is_cut = |cause: &io::Error| cause.kind() == io::ErrorKind::UnexpectedEof;
    let described = if causes.any(|cause| cause.downcast_ref().is_some_and(is_cut)) {
        Error::new(ErrorKind::StreamTruncated, "the stream ended inside its content encoding")
    } else {
        Error::new(ErrorKind::Decode, "the content encoding of the stream is broken")
            .quoting(crate::transport::exchange::root_cause(&error))
    };
    described.caused_by(error)
}

/// Whether an error reported by a decoder comes from the connection beneath it.
fn is_of_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    // `source` does not return the error that an I/O error wraps.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<gatewright_connect::Error>()
        || inner.is_some_and(|inner| is_of_connection(inner))
        || error.source().is_some_and(is_of_connection)
}

impl fmt::Debug for RawStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream")
            .field("operation", &self.operation.id)
            .field("status", &self.head.status)
            .field("received", &self.levels.received)
            .field("complete", &self.reader.complete)
            .finish_non_exhaustive()
    }
}
