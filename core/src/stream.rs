//! An answer as it streams: events in batches, complete or with an error, never cut short in silence. The framing
//! is sse.rs's; reading the body is stream/reading.rs, what an event means stream/meaning.rs, the form it is handed
//! over in stream/shape.rs, what all of them amount to stream/accumulate.rs.

mod accumulate;
mod document;
mod journal;
mod meaning;
mod mend;
mod pattern;
mod reading;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod typed;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use http::HeaderMap;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, Sleep};

pub use self::accumulate::Accumulator;
use self::journal::Journal;
use self::pattern::Pattern;
use self::reading::{Reading, Ready};
pub use self::typed::{Chunk, EventStream};
use crate::clock::later;
use crate::error::{Error, ErrorKind, Received};
use crate::operation::Operation;
use crate::response::{Head, RawResponse};
use crate::sse::{Frame, Item, StreamEvent};

/// Once so many events are ready they are handed over, before the next packet is read.
const MAX_BATCH_EVENTS: usize = 1024;
/// So many packets are taken in one turn, then whatever else runs on the thread gets its own, timers included: of a body
/// that was compressed there may be packets without end.
const MAX_PACKETS_A_TURN: usize = 64;
/// After the terminator the body's end is awaited this long, so that the connection can be used again.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Bytes of a body. The transport's error is turned into ours before it leaves this file.
pub(crate) type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send + Sync>>;

/// How long nothing at all may arrive, and the option that says so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Silence {
    pub(crate) limit: Duration,
    pub(crate) option: &'static str,
}

/// How long a stream may be silent, and how much it may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Without a byte.
    pub(crate) silence: Silence,
    /// Without an event of an answer: keep-alive comments, events without data and pings do not count.
    pub(crate) event_idle: Duration,
    /// Of a body that turns out to be one JSON document, and of the document that a stream amounts to.
    pub(crate) max_body_bytes: usize,
}

/// A stream of events as bytes of JSON, for front ends that parse them themselves.
///
/// It can be read at three levels, which may be mixed: chunks ([`RawStream::next_batch`]), frames as they came
/// ([`RawStream::next_frames`]), text alone ([`RawStream::next_text`]); each event is given once, at the level that
/// asks for it. [`RawStream::finish`] gives what all of them amount to.
///
/// Dropping it closes the connection.
pub struct RawStream {
    operation: &'static Operation,
    head: Head,
    bounds: Bounds,
    /// None once the stream has ended, for whatever reason: the connection is given up with it.
    body: Option<Body>,
    reading: Reading,
    /// Emptied at each packet, kept for its room.
    items: Vec<Item>,
    /// JSON lines that stand between the fields, which no event holds (facts: a bare error in the stream).
    stray: String,
    /// How often it was looked at for its end.
    stray_looks: u32,
    ready: VecDeque<Ready>,
    /// How the stream ends, once that is known; told after the ready events.
    end: Option<Result<(), Error>>,
    /// What the stream failed with, for who asks again.
    failure: Option<(ErrorKind, String)>,
    journal: Journal,
    /// Of the last chunk that was read.
    pattern: Pattern,
    received: Received,
    /// Whether the body has held a chunk.
    begun: bool,
    complete: bool,
    opened: Instant,
    last_byte: Instant,
    last_event: Instant,
    timer: Pin<Box<Sleep>>,
    /// Whether the connection has had its turn since the last packet.
    yielded: bool,
}

impl RawStream {
    pub(crate) fn new(operation: &'static Operation, head: Head, body: Body, bounds: Bounds) -> Self {
        let now = Instant::now();
        Self {
            operation,
            head,
            bounds,
            body: Some(body),
            reading: Reading::default(),
            items: Vec::new(),
            stray: String::new(),
            stray_looks: 0,
            ready: VecDeque::new(),
            end: None,
            failure: None,
            journal: Journal::new(operation, bounds.max_body_bytes),
            pattern: Pattern::default(),
            received: Received::default(),
            begun: false,
            complete: false,
            opened: now,
            last_byte: now,
            last_event: now,
            timer: Box::pin(tokio::time::sleep(bounds.silence.limit)),
            yielded: false,
        }
    }

    /// HTTP status, 200 to 299.
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Response headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The gateway's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.head.request_id()
    }

    /// How many requests were sent before the stream began.
    pub fn attempts(&self) -> u32 {
        self.head.attempts
    }

    /// From the call's beginning to the stream's head.
    pub fn elapsed(&self) -> Duration {
        self.head.elapsed
    }

    /// The operation that streams.
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// How much has been handed over, of how many bytes.
    pub fn received(&self) -> Received {
        self.received
    }

    /// What the events handed over so far amount to: one JSON document in the form of the answer that is not
    /// streamed. None before the first, and once it has outgrown the bound on a body.
    pub fn partial(&mut self) -> Option<Bytes> {
        self.journal.partial()
    }

    /// Waits for at least one event and gives all that are ready; none once the stream is complete.
    /// Each event's data is one JSON document, in the form of what the operation streams as far as it could be
    /// brought into it: terminators and heartbeats are not handed over. May be dropped while it waits, without
    /// losing an event; so may all that follow.
    ///
    /// Errors, after all events that came before: StreamTruncated where the stream ends before it is complete,
    /// Stream where it carries an error, Decode for what is no JSON, Timeout, Connection. They carry what had
    /// arrived ([`Error::partial`], [`Error::received`]). After an error: none.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<StreamEvent>>, Error> {
        poll_fn(|context| self.poll_level(context, false, true, Self::take_chunk)).await
    }

    /// As [`RawStream::next_batch`], but does not wait: none where nothing is ready yet.
    pub fn try_next_batch(&mut self) -> Option<Result<Option<Vec<StreamEvent>>, Error>> {
        poll_fn(|context| self.poll_level(context, false, false, Self::take_chunk)).now_or_never()
    }

    /// As [`RawStream::next_batch`], at the level below: every frame as it came, heartbeats, terminators and error
    /// events too. A body that is one JSON document gives the chunks it amounts to.
    ///
    /// Errors: as [`RawStream::next_batch`], after the frame that told of them.
    pub async fn next_frames(&mut self) -> Result<Option<Vec<Frame>>, Error> {
        poll_fn(|context| self.poll_level(context, true, true, Self::take_frame)).await
    }

    /// As [`RawStream::next_batch`], at the level above: the new text of the first choice, of each event that has
    /// some. In the responses protocol the text of `response.output_text.delta`, in the native one the first
    /// candidate's, its thoughts left out.
    pub async fn next_text(&mut self) -> Result<Option<Vec<String>>, Error> {
        poll_fn(|context| self.poll_level(context, false, true, Self::take_text)).await
    }

    /// Reads on to the end and gives the answer that the whole stream amounts to, what was read before included, as
    /// it would have come without streaming. `elapsed` runs to now.
    ///
    /// Errors: as [`RawStream::next_batch`], the same again if the stream has failed already; Decode where the
    /// answer is longer than the bound on a body.
    pub async fn finish(&mut self) -> Result<RawResponse, Error> {
        while poll_fn(|context| self.poll_level(context, false, true, Self::take_chunk)).await?.is_some() {}
        if let Some((kind, message)) = &self.failure {
            let error = Error::new(*kind, message.clone());
            return Err(self.describe(error));
        }
        match self.journal.whole() {
            Ok(body) => {
                let mut head = self.head.clone();
                head.elapsed = head.elapsed.saturating_add(self.opened.elapsed());
                Ok(RawResponse::new(head, body))
            }
            Err(error) => Err(self.describe(error)),
        }
    }

    /// Ends the stream for a reason of the caller's own, such as a cancellation or an event it cannot read: closes
    /// the connection, and gives the error with status, request id and what had arrived on it.
    pub fn give_up(&mut self, error: Error) -> Error {
        self.fail(error);
        match self.take_end() {
            Err(error) => error,
            Ok(()) => unreachable!("the stream has just failed"),
        }
    }

    /// Runs work on this stream as [`contained`](crate::contained) does. Where it panics the stream is given up, as by
    /// [`RawStream::give_up`].
    pub async fn contain<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match crate::contained(work(self)).await {
            Err(error) if error.kind() == ErrorKind::Internal => {
                // What has arrived may be what it broke on.
                crate::contain(|| Err(self.give_up(error)))
            }
            outcome => outcome,
        }
    }

    /// Polls for a batch of one level. frames: whether the decoder is to give whole frames. may_yield: whether the
    /// connection gets a turn to hand over more before the batch is closed.
    fn poll_level<T>(
        &mut self,
        context: &mut Context<'_>,
        frames: bool,
        may_yield: bool,
        take: impl Fn(&mut Self, Ready) -> Result<Option<T>, Error>,
    ) -> Poll<Result<Option<Vec<T>>, Error>> {
        loop {
            ready!(self.poll_ready(context, frames, may_yield));
            if self.ready.is_empty() {
                return Poll::Ready(self.take_end().map(|()| None));
            }
            let mut batch = Vec::with_capacity(self.ready.len());
            while let Some(ready) = self.ready.pop_front() {
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

    /// Polls for one thing of a level.
    fn poll_one<T>(
        &mut self,
        context: &mut Context<'_>,
        frames: bool,
        take: impl Fn(&mut Self, Ready) -> Result<Option<T>, Error>,
    ) -> Poll<Result<Option<T>, Error>> {
        loop {
            let Some(ready) = self.ready.pop_front() else {
                ready!(self.poll_ready(context, frames, true));
                if self.ready.is_empty() {
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

    fn poll_next_typed<T: DeserializeOwned>(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, Error>>> {
        self.poll_one(context, false, Self::take_typed).map(Result::transpose)
    }

    fn poll_next_frame(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Frame>, Error>> {
        self.poll_one(context, true, Self::take_frame)
    }

    fn poll_next_text(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<String>, Error>> {
        self.poll_one(context, false, Self::take_text)
    }

    /// Ready once there is something to hand over, or the stream's end is known.
    fn poll_ready(&mut self, context: &mut Context<'_>, frames: bool, may_yield: bool) -> Poll<()> {
        self.reading.set_frames(frames);
        let mut packets = 0;
        while self.end.is_none() && self.ready.len() < MAX_BATCH_EVENTS {
            if packets == MAX_PACKETS_A_TURN {
                if !self.ready.is_empty() {
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
            match body.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(packet))) => {
                    self.last_byte = Instant::now();
                    self.yielded = false;
                    self.received.bytes += packet.len() as u64;
                    if let Err(error) = self.take_packet(&packet) {
                        self.end = Some(Err(error));
                    }
                }
                Poll::Ready(Some(Err(error))) => self.end = Some(Err(body_error(error))),
                Poll::Ready(None) => self.end = Some(self.take_body_end()),
                Poll::Pending if self.ready.is_empty() => {
                    let silence = ready!(self.poll_silence(context));
                    self.end = Some(Err(silence));
                }
                Poll::Pending if may_yield && !self.yielded => {
                    // The connection hands over one chunk at a time and reads on when that is taken: let it run
                    // once, so that chunks which have arrived together are handed over together.
                    self.yielded = true;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => break,
            }
        }
        self.yielded = false;
        if self.end.is_some() {
            self.release_body();
        }
        Poll::Ready(())
    }

    /// Ready once the stream has been silent for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        let Silence { limit, option } = self.bounds.silence;
        let by_bytes = later(self.last_byte, limit);
        let by_events = later(self.last_event, self.bounds.event_idle);
        let until = by_bytes.min(by_events);
        if self.timer.deadline() != until {
            self.timer.as_mut().reset(until);
        }
        ready!(self.timer.as_mut().poll(context));
        let message = if by_bytes <= by_events {
            format!("not a byte of the stream arrived for {limit:?} ({option})")
        } else {
            format!("no event of the stream arrived for {:?} (event_timeout)", self.bounds.event_idle)
        };
        Poll::Ready(Error::new(ErrorKind::Timeout, message))
    }

    /// Ends the stream with an error; what was ready after it is dropped.
    fn fail(&mut self, error: Error) {
        self.ready.clear();
        self.end = Some(Err(error));
        self.release_body();
    }

    /// Tells how the stream has ended. An error is told once.
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

    /// The error with what is known of the answer and what has arrived of it.
    fn describe(&mut self, error: Error) -> Error {
        let partial = self.journal.partial();
        self.head.describe(error.with_partial(partial, self.received), self.operation)
    }

    /// Gives the connection up: back to the pool where the answer is complete and its body about to end, else it
    /// is closed.
    fn release_body(&mut self) {
        let Some(mut body) = self.body.take() else { return };
        if matches!(self.end, Some(Ok(())))
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move {
                let drained = async { while let Some(Ok(_)) = body.next().await {} };
                // Either outcome will do: ended in time, or closed by the drop.
                let _ = tokio::time::timeout(DRAIN_TIME, drained).await;
            });
        }
    }
}

/// The error for a body that broke off or cannot be decompressed.
fn body_error(error: reqwest::Error) -> Error {
    if !error.is_decode() || is_of_connection(&error) {
        return crate::transport::body_error(error);
    }
    let source = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
    let told = if source.is_some_and(|source| source.kind() == io::ErrorKind::UnexpectedEof) {
        Error::new(ErrorKind::StreamTruncated, "the stream ended inside its content encoding")
    } else {
        Error::new(ErrorKind::Decode, "the content encoding of the stream is broken")
            .quoting(crate::transport::root_cause(&error))
    };
    told.caused_by(error.without_url())
}

/// Whether an error that came through a decoder is the connection's beneath it.
fn is_of_connection(error: &(dyn std::error::Error + 'static)) -> bool {
    // What an I/O error was made of is no source of it.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.is::<hyper::Error>()
        || inner.is_some_and(|inner| is_of_connection(inner))
        || error.source().is_some_and(is_of_connection)
}

impl fmt::Debug for RawStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream")
            .field("operation", &self.operation.id)
            .field("status", &self.head.status)
            .field("received", &self.received)
            .field("complete", &self.complete)
            .finish_non_exhaustive()
    }
}
