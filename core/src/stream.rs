//! An answer as it streams: events in batches, complete or with an error, never cut short in silence. The framing
//! is sse.rs's; what an event means is in stream/meaning.rs.

mod document;
mod meaning;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use http::HeaderMap;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, Sleep};

use self::document::Form;
use self::meaning::Meaning;
use crate::error::{Error, ErrorKind};
use crate::operation::Operation;
use crate::response::Head;
use crate::sse::{Decoder, Item, StreamEvent};

/// Once so many events are ready they are handed over, before the next packet is read.
const MAX_BATCH_EVENTS: usize = 1024;
/// Bound on JSON found between the fields of an event stream, in bytes.
const MAX_STRAY_BYTES: usize = 64 * 1024;
/// After the terminator the body's end is awaited this long, so that the connection can be used again.
const DRAIN_TIME: Duration = Duration::from_millis(50);

/// Bytes of a body. The transport's error is turned into ours before it leaves this file.
pub(crate) type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send + Sync>>;

/// How long a stream may be silent, and how much it may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Without a byte.
    pub(crate) idle: Duration,
    /// Without an event: keep-alive comments do not count.
    pub(crate) event_idle: Duration,
    /// Of a body that turns out to be one JSON document.
    pub(crate) max_body_bytes: usize,
}

/// A stream of events as bytes of JSON, for front ends that parse them themselves.
///
/// Dropping it closes the connection.
pub struct RawStream {
    operation: &'static Operation,
    head: Head,
    bounds: Bounds,
    /// None once the stream has ended, for whatever reason: the connection is given up with it.
    body: Option<Body>,
    reading: Reading,
    /// JSON lines that stand between the fields, which no event holds (facts: a bare error in the stream).
    stray: String,
    ready: Vec<StreamEvent>,
    /// How the stream ends, once that is known; told after the ready events.
    end: Option<Result<(), Error>>,
    delivered: bool,
    complete: bool,
    last_byte: Instant,
    last_event: Instant,
    timer: Pin<Box<Sleep>>,
    /// Whether the connection has had its turn since the last packet.
    yielded: bool,
}

/// How the body is being read.
enum Reading {
    /// Nothing but white space has arrived.
    Undecided(Vec<u8>),
    Events(Box<Decoder>),
    Json(Vec<u8>),
    Page(Vec<u8>),
}

impl RawStream {
    pub(crate) fn new(operation: &'static Operation, head: Head, body: Body, bounds: Bounds) -> Self {
        let now = Instant::now();
        Self {
            operation,
            head,
            bounds,
            body: Some(body),
            reading: Reading::Undecided(Vec::new()),
            stray: String::new(),
            ready: Vec::new(),
            end: None,
            delivered: false,
            complete: false,
            last_byte: now,
            last_event: now,
            timer: Box::pin(tokio::time::sleep(bounds.idle)),
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

    /// Waits for at least one event and gives all that are ready; none once the stream is complete.
    /// Each event's data is one JSON document: terminators and heartbeats are not handed over. May be dropped
    /// while it waits, without losing an event.
    ///
    /// Errors, after all events that came before: StreamTruncated where the stream ends before it is complete,
    /// Stream where it carries an error, Decode for what is no JSON, Timeout, Connection. After an error: none.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<StreamEvent>>, Error> {
        poll_fn(|context| self.poll_batch(context, true)).await
    }

    /// As [`RawStream::next_batch`], but does not wait: none where nothing is ready yet.
    pub fn try_next_batch(&mut self) -> Option<Result<Option<Vec<StreamEvent>>, Error>> {
        poll_fn(|context| self.poll_batch(context, false)).now_or_never()
    }

    /// may_yield: whether the connection gets a turn to hand over more before the batch is closed.
    fn poll_batch(
        &mut self,
        context: &mut Context<'_>,
        may_yield: bool,
    ) -> Poll<Result<Option<Vec<StreamEvent>>, Error>> {
        while self.end.is_none() && self.ready.len() < MAX_BATCH_EVENTS {
            let Some(body) = &mut self.body else { break };
            match body.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(packet))) => {
                    self.last_byte = Instant::now();
                    self.yielded = false;
                    if let Err(error) = self.take(&packet) {
                        self.end = Some(Err(error));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.end = Some(Err(crate::transport::body_error(error)));
                }
                Poll::Ready(None) => self.end = Some(self.finish()),
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
        if !self.ready.is_empty() {
            self.delivered = true;
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.ready))));
        }
        Poll::Ready(match self.end.take() {
            Some(Err(error)) => Err(self.head.describe(error, self.operation)),
            Some(Ok(())) | None => Ok(None),
        })
    }

    /// Ready once the stream has been silent for too long.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        let by_bytes = self.last_byte + self.bounds.idle;
        let by_events = self.last_event + self.bounds.event_idle;
        let until = by_bytes.min(by_events);
        if self.timer.deadline() != until {
            self.timer.as_mut().reset(until);
        }
        ready!(self.timer.as_mut().poll(context));
        let (what, limit) = if by_bytes <= by_events {
            ("not a byte", self.bounds.idle)
        } else {
            ("no event", self.bounds.event_idle)
        };
        Poll::Ready(Error::new(ErrorKind::Timeout, format!("{what} of the stream arrived for {limit:?}")))
    }

    fn take(&mut self, packet: &[u8]) -> Result<(), Error> {
        match &mut self.reading {
            Reading::Events(decoder) => {
                let mut items = Vec::new();
                let fed = decoder.feed(packet, &mut items);
                self.take_items(items)?;
                fed.map_err(|error| Error::new(ErrorKind::Decode, error.to_string()).with_source(error))
            }
            Reading::Json(body) => append(body, packet, self.bounds.max_body_bytes),
            Reading::Page(body) => {
                // Of a page only its beginning is of use, and its end may never come.
                append(body, packet, crate::MAX_ERROR_BODY_BYTES).map_err(|_| document::page_error(body))
            }
            Reading::Undecided(begun) => {
                append(begun, packet, self.bounds.max_body_bytes)?;
                let content_type = self.head.content_type();
                let Some(form) = document::form(begun, content_type) else { return Ok(()) };
                let begun = std::mem::take(begun);
                match form {
                    Form::Json => self.reading = Reading::Json(begun),
                    Form::Page => self.reading = Reading::Page(begun),
                    Form::Events => {
                        self.reading = Reading::Events(Box::default());
                        return self.take(&begun);
                    }
                }
                Ok(())
            }
        }
    }

    fn take_items(&mut self, items: Vec<Item>) -> Result<(), Error> {
        for item in items {
            match item {
                Item::Event(event) => {
                    self.take_event(event)?;
                    if self.end.is_some() {
                        // What follows the end is ignored.
                        return Ok(());
                    }
                }
                Item::Unknown(line) => self.take_stray(&line)?,
                Item::Comment(_) | Item::Retry(_) => {}
            }
        }
        Ok(())
    }

    fn take_event(&mut self, event: StreamEvent) -> Result<(), Error> {
        self.last_event = Instant::now();
        match meaning::meaning(self.operation, &event) {
            Meaning::Chunk => self.ready.push(event),
            Meaning::Finish => {
                self.complete = true;
                self.ready.push(event);
            }
            Meaning::Terminal => {
                self.complete = true;
                self.ready.push(event);
                self.end = Some(Ok(()));
            }
            Meaning::Terminator => {
                self.complete |= meaning::terminator_completes(self.operation);
                self.end = Some(self.outcome());
            }
            Meaning::Nothing => {}
            Meaning::Error(error) => return Err(error),
        }
        Ok(())
    }

    /// Collects JSON that stands bare between the fields, and tells an error from noise.
    fn take_stray(&mut self, line: &str) -> Result<(), Error> {
        if (self.stray.is_empty() && !line.starts_with('{'))
            || self.stray.len() + line.len() > MAX_STRAY_BYTES
        {
            return Ok(());
        }
        self.stray.push_str(line);
        self.stray.push('\n');
        if line.trim_end().ends_with('}') && meaning::is_error(&self.stray) {
            return Err(meaning::in_band_error(self.stray.trim_end()));
        }
        Ok(())
    }

    /// The body has ended cleanly.
    fn finish(&mut self) -> Result<(), Error> {
        match std::mem::replace(&mut self.reading, Reading::Undecided(Vec::new())) {
            Reading::Undecided(_) => Err(self.truncated("the body was empty")),
            Reading::Page(body) => Err(document::page_error(&body)),
            Reading::Json(body) => {
                self.ready = document::events(self.operation, &body)?;
                self.complete = true;
                self.outcome()
            }
            Reading::Events(decoder) => {
                if let Some(event) = decoder.finish() {
                    // The standard drops a block without its blank line; whole ones are too good to lose.
                    let whole = event.data.trim() == meaning::DONE
                        || serde_json::from_str::<serde::de::IgnoredAny>(&event.data).is_ok();
                    if !whole && !event.data.trim().is_empty() {
                        return Err(self.truncated("the stream ended inside an event"));
                    }
                    self.take_event(event)?;
                    if let Some(end) = self.end.take() {
                        return end;
                    }
                }
                self.complete |= meaning::may_end_anywhere(self.operation) && self.has_events();
                self.outcome()
            }
        }
    }

    fn has_events(&self) -> bool {
        self.delivered || !self.ready.is_empty()
    }

    fn outcome(&self) -> Result<(), Error> {
        if !self.has_events() {
            Err(self.truncated("the stream held no event"))
        } else if self.complete {
            Ok(())
        } else {
            Err(self.truncated("the stream ended before the answer was complete"))
        }
    }

    #[expect(clippy::unused_self, reason = "a method reads as what happened to this stream")]
    fn truncated(&self, message: &str) -> Error {
        Error::new(ErrorKind::StreamTruncated, message)
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

impl fmt::Debug for RawStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawStream")
            .field("operation", &self.operation.id)
            .field("status", &self.head.status)
            .field("complete", &self.complete)
            .finish_non_exhaustive()
    }
}

fn append(body: &mut Vec<u8>, packet: &[u8], limit: usize) -> Result<(), Error> {
    if body.len() + packet.len() > limit {
        let message = format!("the body is longer than {limit} bytes");
        return Err(Error::new(ErrorKind::Decode, message));
    }
    body.extend_from_slice(packet);
    Ok(())
}

/// A stream of typed items: [`futures_util::Stream`] of `Result<T, Error>`, which ends when the answer is complete.
///
/// Dropping it closes the connection.
pub struct EventStream<T> {
    raw: RawStream,
    events: VecDeque<StreamEvent>,
    done: bool,
    item: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> EventStream<T> {
    pub(crate) fn new(raw: RawStream) -> Self {
        Self { raw, events: VecDeque::new(), done: false, item: PhantomData }
    }

    /// The stream beneath, with its status, headers and request id.
    pub fn raw(&self) -> &RawStream {
        &self.raw
    }

    /// The next item; none once the stream is complete. Errors: as [`RawStream::next_batch`], and Decode for an
    /// event that is not of the form the operation streams.
    pub async fn try_next(&mut self) -> Result<Option<T>, Error> {
        StreamExt::next(self).await.transpose()
    }

    fn parse(&self, event: &StreamEvent) -> Result<T, Error> {
        serde_json::from_str(&event.data).map_err(|error| {
            let message = format!("an event of the stream is not of the form the operation streams: {error}");
            let error = Error::new(ErrorKind::Decode, message)
                .with_source(error)
                .with_body(Bytes::copy_from_slice(event.data.as_bytes()));
            self.raw.head.describe(error, self.raw.operation)
        })
    }
}

impl<T: DeserializeOwned> Stream for EventStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Poll::Ready(Some(self.parse(&event)));
            }
            if self.done {
                return Poll::Ready(None);
            }
            match ready!(self.raw.poll_batch(context, true)) {
                Ok(Some(batch)) => self.events = batch.into(),
                Ok(None) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl<T> fmt::Debug for EventStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("raw", &self.raw).finish_non_exhaustive()
    }
}
