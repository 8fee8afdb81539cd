//! Streams: a task on the runtime reads and parses events ahead into a bounded inbox; Python takes all that
//! are ready at each hop.

use std::mem;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gatewright::{Error, ErrorKind, RawResponse, RawStream, StreamEvent};
use pyo3::prelude::*;
use pyo3::types::PyList;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::asyncio::Waiter;
use crate::error;
use crate::record::{self, Value};
use crate::response::{Metadata, ResponseInfo};
use crate::runtime::SIGNAL_TICK;

/// Once so many events wait for Python, no more are read from the connection.
const INBOX_LIMIT: usize = 1024;

/// A stream under way. Dropping it closes the connection.
#[pyclass(frozen, module = "gatewright._native")]
pub(crate) struct NativeStream {
    inbox: Option<Arc<Inbox>>,
    pump: Option<AbortHandle>,
    metadata: Arc<Metadata>,
    pid: u32,
}

impl NativeStream {
    /// Starts reading ahead.
    pub(crate) fn start(runtime: &Handle, stream: RawStream) -> Self {
        let metadata = Arc::new(Metadata {
            status: stream.status(),
            headers: stream.headers().clone(),
            request_id: stream.request_id().map(str::to_owned),
            attempts: stream.attempts(),
            elapsed: stream.elapsed(),
        });
        let inbox = Arc::new(Inbox::default());
        let pump = runtime.spawn(pump(stream, Arc::clone(&metadata), Arc::clone(&inbox))).abort_handle();
        Self { inbox: Some(inbox), pump: Some(pump), metadata, pid: process::id() }
    }

    fn inbox(&self, py: Python<'_>) -> PyResult<&Inbox> {
        match &self.inbox {
            Some(inbox) if self.pid == process::id() => Ok(inbox),
            _ => {
                Err(error::of_kind(py, ErrorKind::Configuration, "the stream was opened in another process"))
            }
        }
    }
}

impl Drop for NativeStream {
    fn drop(&mut self) {
        if self.pid == process::id() {
            self.close();
        } else {
            // The parent's connection and task: its threads are not here, and their locks may be held for ever.
            mem::forget((self.inbox.take(), self.pump.take()));
        }
    }
}

#[pymethods]
impl NativeStream {
    /// All events that are ready, perhaps none; None once the stream is complete or closed. Raises what ended
    /// the stream otherwise, after the last event and once.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let inbox = self.inbox(py)?;
        let mut state = inbox.lock();
        let events = mem::take(&mut state.events);
        let over = events.is_empty() && state.ended;
        let failure = if over { state.failure.take() } else { None };
        // No Python runs while the lock is held: another thread could get its turn and wait for the lock.
        drop(state);
        if over {
            return failure.map_or(Ok(None), |failure| Err(error::to_python(py, &failure)));
        }
        inbox.space.notify_one();
        let list = PyList::empty(py);
        for event in &events {
            list.append(record::to_python(py, event)?)?;
        }
        Ok(Some(list))
    }

    /// Blocks until `take` has something to tell.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let inbox = self.inbox(py)?;
        loop {
            let ready = py.detach(|| {
                let state = inbox.lock();
                let timed =
                    inbox.readable.wait_timeout_while(state, SIGNAL_TICK, |state| !state.is_readable());
                timed.unwrap_or_else(PoisonError::into_inner).0.is_readable()
            });
            if ready {
                return Ok(());
            }
            py.check_signals()?;
        }
    }

    /// A future of `event_loop` that is done when `take` has something to tell.
    fn readable(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let inbox = self.inbox(py)?;
        let waiter = Waiter::new(event_loop)?;
        let future = waiter.future(py);
        let mut state = inbox.lock();
        if state.is_readable() {
            drop(state);
            waiter.settle(|py| Ok(py.None()));
        } else {
            state.waiters.push(waiter);
        }
        Ok(future)
    }

    /// Closes the connection; what has not been taken is dropped.
    fn close(&self) {
        if self.pid != process::id() {
            return;
        }
        if let Some(pump) = &self.pump {
            pump.abort();
        }
        if let Some(inbox) = &self.inbox {
            inbox.lock().events.clear();
            inbox.put(Vec::new(), Some(Ok(())));
        }
    }

    /// Status, headers, request id and attempts.
    #[getter]
    fn response(&self) -> ResponseInfo {
        ResponseInfo::new(Arc::clone(&self.metadata))
    }
}

/// What has been read and not yet taken.
#[derive(Default)]
struct Inbox {
    state: Mutex<State>,
    /// Told when there is something to take, for a blocked thread.
    readable: Condvar,
    /// Told when something was taken, for the pump.
    space: Notify,
}

#[derive(Default)]
struct State {
    events: Vec<Value>,
    ended: bool,
    failure: Option<Error>,
    /// Futures to settle when there is something to take.
    waiters: Vec<Waiter>,
}

impl State {
    fn is_readable(&self) -> bool {
        self.ended || !self.events.is_empty()
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, and the stream's end if it has come, and wakes whoever waits. Tells whether there is room
    /// for more.
    fn put(&self, events: Vec<Value>, end: Option<Result<(), Error>>) -> bool {
        let mut state = self.lock();
        if !state.ended {
            state.events.extend(events);
            if let Some(end) = end {
                state.ended = true;
                state.failure = end.err();
            }
        }
        let room = state.events.len() < INBOX_LIMIT;
        let waiters = mem::take(&mut state.waiters);
        drop(state);
        self.readable.notify_all();
        for waiter in waiters {
            waiter.settle(|py| Ok(py.None()));
        }
        room
    }

    async fn room(&self) {
        loop {
            // A permit of an earlier `take` may be stale: look again.
            self.space.notified().await;
            if self.lock().events.len() < INBOX_LIMIT {
                return;
            }
        }
    }
}

async fn pump(mut stream: RawStream, metadata: Arc<Metadata>, inbox: Arc<Inbox>) {
    loop {
        let (events, end) = match stream.next_batch().await {
            Ok(Some(batch)) => {
                let (events, failure) = parse(batch, &stream, &metadata);
                (events, failure.map(Err))
            }
            Ok(None) => (Vec::new(), Some(Ok(()))),
            Err(failure) => (Vec::new(), Some(Err(failure))),
        };
        let ended = end.is_some();
        let room = inbox.put(events, end);
        if ended {
            return;
        }
        if !room {
            inbox.room().await;
        }
    }
}

/// The events up to one that cannot be read, and the error for that one.
fn parse(batch: Vec<StreamEvent>, stream: &RawStream, metadata: &Metadata) -> (Vec<Value>, Option<Error>) {
    let mut values = Vec::with_capacity(batch.len());
    for event in batch {
        match record::parse(event.data.as_bytes()) {
            Ok(value) => values.push(value),
            Err(reason) => {
                let unread = RawResponse {
                    status: metadata.status,
                    headers: metadata.headers.clone(),
                    body: Bytes::from(event.data),
                    attempts: metadata.attempts,
                    elapsed: metadata.elapsed,
                };
                return (values, Some(unread.undecodable(stream.operation(), reason)));
            }
        }
    }
    (values, None)
}
