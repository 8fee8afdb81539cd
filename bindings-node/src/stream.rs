//! An open stream: hands over all events that are ready at each hop, and closes at once when told to.

use std::sync::Arc;

use gatewright::RawStream;
use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;
use tokio::sync::{Mutex, Notify};

use crate::error::describe;

/// A stream that JavaScript reads. Dropping it closes the connection.
#[napi(js_name = "NativeStream")]
pub struct Stream {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` once the stream is complete, failed or closed.
    stream: Mutex<Option<RawStream>>,
    /// Wakes a hop that is waiting for events.
    closed: Notify,
}

/// What one hop hands over: events, or an error, or, at the end of the stream, neither.
#[napi(object, object_from_js = false)]
pub struct Batch {
    /// Data of the events, each a JSON document.
    pub events: Option<Vec<String>>,
    /// The failure as JSON.
    pub error: Option<String>,
}

impl Batch {
    const END: Self = Self { events: None, error: None };
}

impl Stream {
    pub(crate) fn new(stream: RawStream) -> Self {
        Self { shared: Arc::new(Shared { stream: Mutex::new(Some(stream)), closed: Notify::new() }) }
    }
}

#[napi]
impl Stream {
    /// Waits for at least one event, then gives all that are ready. Never rejects.
    #[napi]
    pub fn next_batch<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Batch>> {
        let shared = Arc::clone(&self.shared);
        env.spawn_future(async move { Ok(shared.next_batch().await) })
    }

    /// Closes the connection at once; a hop that is waiting ends.
    #[napi]
    pub fn close(&self) {
        // A hop holds the lock while it waits: it is woken and closes. Else nobody waits and we close.
        match self.shared.stream.try_lock() {
            Ok(mut stream) => drop(stream.take()),
            Err(_) => self.shared.closed.notify_one(),
        }
    }
}

impl Shared {
    async fn next_batch(&self) -> Batch {
        let mut guard = self.stream.lock().await;
        let Some(stream) = guard.as_mut() else { return Batch::END };
        let batch = tokio::select! {
            biased;
            () = self.closed.notified() => Batch::END,
            next = stream.next_batch() => match next {
                Ok(Some(events)) => {
                    let events = events.into_iter().map(|event| event.data).collect();
                    return Batch { events: Some(events), error: None };
                }
                Ok(None) => Batch::END,
                Err(error) => Batch { events: None, error: Some(describe(&error)) },
            },
        };
        *guard = None;
        batch
    }
}
