//! An open stream: returns everything that is ready per call, and closes at once on request.

use std::sync::{Arc, Mutex, PoisonError};

use gatewright::{Error, Frame, RawStream};
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, Notify};

use crate::answer::Answer;
use crate::error::{cancelled, describe};
use crate::lifetime::{self, Promised};
use crate::times::milliseconds;

/// A stream that JavaScript reads. Dropping it closes the connection.
#[napi(js_name = "EngineStream")]
pub struct Stream {
    shared: Arc<Shared>,
}

struct Shared {
    state: AsyncMutex<State>,
    /// How the reader has ended the stream. Set without the lock, which a hop holds while it waits.
    ending: Mutex<Option<Ending>>,
    /// Wakes a hop that is waiting.
    ended: Notify,
}

struct State {
    /// `None` once closed. Kept after the last event: the whole document is still available.
    stream: Option<RawStream>,
    /// The failure of a stream that was cancelled while nobody waited, for whoever reads next.
    untold: Option<String>,
}

#[derive(Clone, Copy)]
enum Ending {
    /// Nobody wants more.
    Closed,
    /// A signal was aborted: the reader gets an error, with the data that has arrived.
    Cancelled,
}

/// The result of one call: documents, or an error, or, at the end of the stream, neither.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Batch {
    /// Data of the events, or what stands for it at the level that was asked.
    pub documents: Option<Vec<String>>,
    /// The failure as JSON.
    pub error: Option<String>,
}

impl Promised for Batch {
    fn failed(error: String) -> Self {
        Self { documents: None, error: Some(error) }
    }
}

impl Stream {
    pub(crate) fn new(stream: RawStream) -> Self {
        let state = AsyncMutex::new(State { stream: Some(stream), untold: None });
        Self { shared: Arc::new(Shared { state, ending: Mutex::new(None), ended: Notify::new() }) }
    }
}

#[napi]
impl Stream {
    /// Waits for at least one event, then returns the data of all that are ready, each a JSON document. Never rejects.
    #[napi]
    pub fn next_batch<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Batch>> {
        let shared = Arc::clone(&self.shared);
        lifetime::spawn(env, async move {
            let read = async |stream: &mut RawStream| {
                let batch = stream.next_batch().await?;
                Ok(batch.map(|events| events.into_iter().map(|event| event.data).collect()))
            };
            Ok(shared.hop(read).await)
        })
    }

    /// Like `nextBatch`, for frames as they arrived, each a JSON object. Never rejects.
    #[napi]
    pub fn next_frames<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Batch>> {
        let shared = Arc::clone(&self.shared);
        lifetime::spawn(env, async move {
            let read = async |stream: &mut RawStream| {
                let batch = stream.next_frames().await?;
                Ok(batch.map(|frames| frames.iter().map(frame).collect()))
            };
            Ok(shared.hop(read).await)
        })
    }

    /// Like `nextBatch`, for only the text. Never rejects.
    #[napi]
    pub fn next_text<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Batch>> {
        let shared = Arc::clone(&self.shared);
        lifetime::spawn(env, async move { Ok(shared.hop(async |stream| stream.next_text().await).await) })
    }

    /// Reads to the end, and returns the document that all events add up to. Never rejects.
    #[napi]
    pub fn finish<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Answer>> {
        let shared = Arc::clone(&self.shared);
        lifetime::spawn(env, async move { Ok(shared.finish().await) })
    }

    /// Closes the connection at once; a hop that is waiting ends.
    #[napi]
    pub fn close(&self) {
        self.shared.end(Ending::Closed);
    }

    /// Closes the connection at once; a hop that is waiting, or the next one, fails with Cancelled.
    #[napi]
    pub fn cancel(&self) {
        self.shared.end(Ending::Cancelled);
    }
}

impl Shared {
    /// Waits for the result of `read`, or for the end.
    async fn hop(
        &self,
        read: impl AsyncFnOnce(&mut RawStream) -> Result<Option<Vec<String>>, Error>,
    ) -> Batch {
        match self.unless_ended(read).await {
            Ok(documents) => Batch { documents: documents.flatten(), error: None },
            Err(error) => Batch { documents: None, error: Some(error) },
        }
    }

    async fn finish(&self) -> Answer {
        let failed = |error| Answer { error: Some(error), ..Answer::default() };
        let finish = async |stream: &mut RawStream| {
            let response = stream.finish().await?;
            Answer::document(stream.operation(), &response)
        };
        match self.unless_ended(finish).await {
            Ok(Some(document)) => document,
            Ok(None) => failed(describe(&cancelled("the stream was closed before its end"))),
            Err(error) => failed(error),
        }
    }

    /// Reads, unless the reader ends the stream first. None: it is closed. Errors: as JSON.
    async fn unless_ended<T>(
        &self,
        read: impl AsyncFnOnce(&mut RawStream) -> Result<T, Error>,
    ) -> Result<Option<T>, String> {
        let mut state = self.state.lock().await;
        if let Some(error) = state.untold.take() {
            return Err(error);
        }
        let Some(stream) = state.stream.as_mut() else { return Ok(None) };
        tokio::select! {
            biased;
            () = self.ended.notified() => {}
            outcome = stream.contain(read) => return outcome.map(Some).map_err(|error| describe(&error)),
        }
        self.apply(&mut state);
        state.untold.take().map_or(Ok(None), Err)
    }

    fn end(&self, how: Ending) {
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
        // A hop holds the lock while it waits: it is woken and sees to it. Else nobody waits and we do.
        match self.state.try_lock() {
            Ok(mut state) => self.apply(&mut state),
            Err(_) => self.ended.notify_one(),
        }
    }

    fn apply(&self, state: &mut State) {
        match *self.ending.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Ending::Closed) => *state = State { stream: None, untold: None },
            Some(Ending::Cancelled) => {
                if let Some(stream) = &mut state.stream {
                    state.untold = Some(describe(&stream.give_up(cancelled("aborted by its signal"))));
                }
            }
            None => {}
        }
    }
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
