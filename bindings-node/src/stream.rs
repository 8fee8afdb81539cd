//! An open stream: delivers everything that is ready together, and closes immediately on request. While JavaScript handles
//! one batch, the next one is read, but no more.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gatewright::{Error, Frame, RawStream};
use napi::Env;
use napi::bindgen_prelude::Either3;
use napi_derive::napi;
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::answer::{document, head};
use crate::deliveries::{Delivery, Head, PendingDelivery, Receiver};
use crate::error::cancelled;
use crate::times::milliseconds;
use crate::worker::{self, StartThread};

/// A stream that JavaScript reads. Dropping it closes the connection.
#[napi(js_name = "EngineStream")]
pub struct Stream {
    shared: Arc<SharedStream>,
}

struct SharedStream {
    receiver: Arc<Receiver>,
    /// Held by the current reader. `None` once closed. Kept after the last event: the whole document is still
    /// available.
    stream: AsyncMutex<Option<RawStream>>,
    state: Mutex<StreamState>,
    /// Tells readers and waiters that the state has changed.
    changed: Notify,
}

#[derive(Default)]
struct StreamState {
    /// Whether a task reads batches.
    is_read: bool,
    /// The number of the delivery that waits for the next batch.
    waiting: Option<u32>,
    /// The result that was read before it was requested: a batch, the end, or a failure.
    ahead: Option<Delivery>,
    /// Whether the whole document was requested: then batches are only read on request.
    as_document: bool,
    /// How the reader has ended the stream.
    ending: Option<Ending>,
}

#[derive(Clone, Copy)]
enum Ending {
    /// The reader has stopped.
    Closed,
    /// A signal was aborted: the reader gets an error, with the data that has arrived.
    Cancelled,
}

/// The level at which JavaScript reads a stream.
#[napi(js_name = "EngineLevel")]
#[derive(Clone, Copy)]
pub enum Level {
    /// Events, as one JSON array of rows; see the core's `next_rows`.
    Events,
    /// Events, each a JSON document.
    Documents,
    /// Frames as they arrived, as one JSON array.
    Frames,
    /// The new text, as one JSON array of strings.
    Text,
}

/// The stream of a response whose headers have arrived.
pub(crate) fn opened(stream: RawStream, receiver: Arc<Receiver>) -> Delivery {
    let head = head(stream.status(), stream.headers(), stream.request_id(), stream.attempts());
    let head = Head { elapsed_ms: Some(milliseconds(stream.elapsed())), ..head };
    let shared = SharedStream {
        receiver,
        stream: AsyncMutex::new(Some(stream)),
        state: Mutex::default(),
        changed: Notify::new(),
    };
    Delivery { head, stream: Some(Stream { shared: Arc::new(shared) }), ..Delivery::default() }
}

#[napi]
impl Stream {
    /// Waits for at least one event, then delivers all that are ready; nothing at the end. One call at a time, and all
    /// of them at one level.
    #[napi]
    pub fn next(&self, env: Env, number: u32, level: Level) -> napi::Result<()> {
        let shared = &self.shared;
        let mut state = shared.lock();
        if let Some(ahead) = state.ahead.take() {
            drop(state);
            shared.changed.notify_waiters();
            shared.waiting(number).deliver(ahead);
            return Ok(());
        }
        state.waiting = Some(number);
        if state.is_read {
            return Ok(());
        }
        state.is_read = true;
        drop(state);
        worker::spawn(env, StartThread::Worker, pump(Arc::clone(shared), level))
    }

    /// Reads to the end, and delivers the document that all events add up to.
    #[napi]
    pub fn finish(&self, env: Env, number: u32) -> napi::Result<()> {
        let shared = Arc::clone(&self.shared);
        shared.waiting(number).spawn(env, StartThread::Worker, async move { shared.finish().await })
    }

    /// Closes the connection immediately; a reader that is waiting gets the end.
    #[napi]
    pub fn close(&self) {
        self.shared.end(Ending::Closed);
    }

    /// Closes the connection immediately; a reader that is waiting, or the next one, fails with Cancelled.
    #[napi]
    pub fn cancel(&self) {
        self.shared.end(Ending::Cancelled);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.end(Ending::Closed);
    }
}

/// Reads batches until the end, each while the previous one is being handled.
async fn pump(shared: Arc<SharedStream>, level: Level) {
    while shared.step(level).await {
        // Nothing more is read before the last batch is requested.
        shared.until(|state| state.ahead.is_none() || state.as_document || state.ending.is_some()).await;
    }
}

impl SharedStream {
    fn lock(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self, number: u32) -> PendingDelivery {
        PendingDelivery { receiver: Arc::clone(&self.receiver), number }
    }

    /// Waits for a state.
    async fn until(&self, holds: impl Fn(&StreamState) -> bool) {
        loop {
            // Created before the check, so that a later change is not missed.
            let changed = self.changed.notified();
            if holds(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Reads a batch, the end or a failure, and delivers it to the waiter, or stores it for the next one. Returns whether
    /// to read on; otherwise no batches are read from then on.
    async fn step(&self, level: Level) -> bool {
        let mut stream = self.stream.lock().await;
        let read = match stream.as_mut() {
            None => Some(Delivery::default()),
            Some(stream) => tokio::select! {
                biased;
                // Dropping the read loses no event.
                () = self.until(StreamState::is_unwanted) => None,
                read = stream.contain(async |stream| batch(stream, level).await) => {
                    Some(read.unwrap_or_else(|error| Delivery::failed(&error)))
                }
            },
        };
        let mut state = self.lock();
        match read {
            _ if state.ending.is_some() => {
                state.is_read = false;
                self.apply_ending(state, &mut stream);
                false
            }
            None => {
                state.is_read = !state.is_unwanted();
                state.is_read
            }
            Some(batch) => {
                let is_last = batch.content.is_none();
                state.is_read = !is_last;
                self.hand_over(state, batch);
                !is_last
            }
        }
    }

    fn hand_over(&self, mut state: MutexGuard<'_, StreamState>, result: Delivery) {
        match state.waiting.take() {
            Some(number) => {
                drop(state);
                self.waiting(number).deliver(result);
            }
            None => state.ahead = Some(result),
        }
    }

    async fn finish(&self) -> Result<Delivery, Error> {
        self.lock().as_document = true;
        self.changed.notify_waiters();
        let mut stream = self.stream.lock().await;
        let ahead = self.lock().ahead.take();
        if let Some(failed) = ahead.filter(|ahead| ahead.error.is_some()) {
            return Ok(failed);
        }
        let closed = || Err(cancelled("the stream was closed before its end"));
        let Some(reading) = stream.as_mut() else { return closed() };
        let whole = async |stream: &mut RawStream| {
            let response = stream.finish().await?;
            document(stream.operation(), &response)
        };
        tokio::select! {
            biased;
            () = self.until(|state| state.ending.is_some()) => {}
            outcome = reading.contain(whole) => {
                self.lock().as_document = false;
                return outcome;
            }
        }
        self.apply_ending(self.lock(), &mut stream);
        self.lock().ahead.take().map_or_else(closed, Ok)
    }

    fn end(&self, how: Ending) {
        let mut state = self.lock();
        state.ending = Some(how);
        state.ahead = None;
        let is_read = state.is_read;
        drop(state);
        self.changed.notify_waiters();
        // The current reader handles this; otherwise there is no reader, or one that reads the whole document.
        if !is_read && let Ok(mut stream) = self.stream.try_lock() {
            self.apply_ending(self.lock(), &mut stream);
        }
    }

    /// Closes the stream as its reader wants, and notifies the waiter.
    fn apply_ending(&self, mut state: MutexGuard<'_, StreamState>, stream: &mut Option<RawStream>) {
        let result = match (state.ending.take(), stream.as_mut()) {
            (None, _) => return,
            (Some(Ending::Cancelled), Some(stream)) => {
                Delivery::failed(&stream.give_up(cancelled("aborted by its signal")))
            }
            (Some(_), _) => {
                *stream = None;
                Delivery::default()
            }
        };
        self.hand_over(state, result);
    }
}

impl StreamState {
    /// Whether batches must not be read now.
    fn is_unwanted(&self) -> bool {
        self.ending.is_some() || (self.as_document && self.waiting.is_none())
    }
}

/// The next batch at a level; nothing at the end.
async fn batch(stream: &mut RawStream, level: Level) -> Result<Delivery, Error> {
    let content = match level {
        Level::Events => stream.next_rows().await?.map(Either3::A),
        Level::Documents => {
            let events = stream.next_batch().await?;
            events.map(|events| Either3::B(events.into_iter().map(|event| event.data).collect()))
        }
        Level::Frames => {
            let frames = stream.next_frames().await?;
            let frames = frames.map(|frames| frames.iter().map(frame).collect::<Vec<_>>());
            frames.map(|frames| Either3::A(array(frames.iter().map(String::as_str))))
        }
        Level::Text => {
            let texts = stream.next_text().await?;
            texts.map(|texts| Either3::A(serde_json::to_string(&texts).expect("strings are always JSON")))
        }
    };
    Ok(Delivery { content, ..Delivery::default() })
}

/// Documents as one array: JavaScript creates and parses one string per batch, not one per event.
fn array<'a>(documents: impl Iterator<Item = &'a str> + Clone) -> String {
    let length = documents.clone().map(|document| document.len() + 1).sum::<usize>();
    let mut array = String::with_capacity(length + 1);
    array.push('[');
    for (index, document) in documents.enumerate() {
        if index > 0 {
            array.push(',');
        }
        array.push_str(document);
    }
    array.push(']');
    array
}

/// A frame as `src-ts/stream.ts` types it.
fn frame(frame: &Frame) -> String {
    json!({
        "event": frame.event,
        "data": frame.data,
        "id": frame.id.as_deref(),
        "retryMs": frame.retry.map(milliseconds),
        "comments": frame.comments,
    })
    .to_string()
}
