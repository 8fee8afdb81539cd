//! Streams: from the first read on, a task on the runtime reads ahead, at the level that read asked for, into a
//! bounded inbox; Python takes all that is ready at each hop. The whole document is read without events crossing.

use std::mem;
use std::process;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use gatewright::{Error, ErrorKind, Frame, RawResponse, RawStream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::answer::Answer;
use crate::asyncio::{self, Pending, Waiter};
use crate::error::{self, caught};
use crate::interpreter;
use crate::raw_event::RawEvent;
use crate::record::{self, Value};
use crate::response::{Metadata, ResponseInfo};
use crate::runtime::{SIGNAL_TICK, block_on};

/// Once so many events wait for Python, no more are read from the connection.
const INBOX_LIMIT: usize = 1024;

/// What a stream is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Events whose data is one JSON document.
    Events,
    /// Every event as it was framed.
    Raw,
    /// New text only.
    Text,
}

impl Level {
    fn of(name: &str) -> PyResult<Self> {
        match name {
            "events" => Ok(Self::Events),
            "raw_events" => Ok(Self::Raw),
            "text" => Ok(Self::Text),
            _ => Err(PyValueError::new_err(format!("there is no level {name}"))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Raw => "raw_events",
            Self::Text => "text",
        }
    }
}

/// One event at a level.
enum Event {
    Json(Value),
    Raw(Frame),
    Text(String),
}

impl Event {
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Json(value) => record::to_python(py, &value),
            Self::Raw(frame) => Ok(Bound::new(py, RawEvent::new(frame))?.into_any()),
            Self::Text(text) => Ok(PyString::new(py, &text).into_any()),
        }
    }
}

/// A stream under way. Dropping it closes the connection.
#[pyclass(frozen, module = "gatewright._native")]
pub(crate) struct NativeStream {
    inbox: Option<Arc<Inbox>>,
    metadata: Arc<Metadata>,
    runtime: Handle,
    pid: u32,
}

impl NativeStream {
    /// A stream that nobody has read from yet.
    pub(crate) fn new(runtime: &Handle, stream: RawStream) -> Self {
        let metadata = Arc::new(Metadata {
            status: stream.status(),
            headers: stream.headers().clone(),
            request_id: stream.request_id().map(str::to_owned),
            attempts: stream.attempts(),
            elapsed: stream.elapsed(),
        });
        let inbox = Inbox::default();
        inbox.lock().stream = Some(stream);
        Self { inbox: Some(Arc::new(inbox)), metadata, runtime: runtime.clone(), pid: process::id() }
    }

    fn inbox(&self, py: Python<'_>) -> PyResult<&Arc<Inbox>> {
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
            if let Some(inbox) = &self.inbox {
                inbox.close(true);
            }
        } else {
            // The parent's connection and task: its threads are not here, and their locks may be held for ever.
            mem::forget(self.inbox.take());
        }
    }
}

#[pymethods]
impl NativeStream {
    /// All events of a level that are ready, perhaps none; None once the stream is complete or closed. Raises what
    /// ended the stream otherwise, after the last event and once. The first call chooses the level for good.
    fn take<'py>(&self, py: Python<'py>, level: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        let inbox = self.inbox(py)?;
        let level = Level::of(level)?;
        let mut state = inbox.lock();
        let chosen = *state.level.get_or_insert(level);
        if chosen != level || state.as_document {
            let is_over = state.end.is_some();
            let reader = if state.as_document { "get_final_…" } else { chosen.name() };
            drop(state);
            if is_over {
                return Ok(None);
            }
            let message = format!("the stream is being read by {reader}(), no longer by {}()", level.name());
            return Err(error::of_kind(py, ErrorKind::Configuration, &message));
        }
        if state.pump.is_none()
            && state.end.is_none()
            && let Some(stream) = state.stream.take()
        {
            let reader = Reader { stream: Some(stream), inbox: Arc::clone(inbox) };
            state.pump = Some(self.runtime.spawn(pump(reader, level)).abort_handle());
        }
        let events = mem::take(&mut state.events);
        let over = events.is_empty() && state.end.is_some();
        let failure = if over { state.failure.take() } else { None };
        // No Python runs while the lock is held: another thread could get its turn and wait for the lock.
        drop(state);
        if over {
            return failure.map_or(Ok(None), |failure| Err(error::to_python(py, &failure)));
        }
        inbox.space.notify_one();
        caught(py, || {
            #[cfg(debug_assertions)]
            gatewright::on_purpose::reach(gatewright::on_purpose::Place::Answer);
            let list = PyList::empty(py);
            for event in events {
                list.append(event.into_python(py)?)?;
            }
            Ok(Some(list))
        })
    }

    /// Blocks until `take` has something to tell.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let inbox = self.inbox(py)?;
        loop {
            let ready = interpreter::detached(py, || {
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

    /// Reads on to the end and gives the whole document; what has not been taken is dropped.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let inbox = Arc::clone(self.inbox(py)?);
        let document = block_on(py, finish(inbox))?;
        document.map_err(|error| error::to_python(py, &error))?.into_python(py)
    }

    /// As `finish`; the future of the document is settled on `event_loop`.
    fn finish_async(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let inbox = Arc::clone(self.inbox(py)?);
        asyncio::spawn(py, event_loop, finish(inbox), |py, document| document.into_python(py))
    }

    /// Closes the connection; what has not been taken is dropped. Of a complete stream the document stays.
    fn close(&self) {
        if self.pid == process::id()
            && let Some(inbox) = &self.inbox
        {
            inbox.close(false);
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
    /// Told when the stream is here again, for whoever wants it next.
    returned: Notify,
    /// Told when the stream is closed, for whoever reads its document.
    closing: Notify,
}

#[derive(Default)]
struct State {
    /// The stream itself while nobody reads from it: before the first read, after the end, between readers.
    stream: Option<RawStream>,
    level: Option<Level>,
    /// The whole document was asked for, so that events are given out no more.
    as_document: bool,
    pump: Option<AbortHandle>,
    events: Vec<Event>,
    end: Option<End>,
    /// Why the stream failed, to be told once.
    failure: Option<Error>,
    /// Futures to settle when there is something to take.
    waiters: Vec<Waiter>,
}

/// How a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Complete,
    Failed,
    /// By its reader, before it was complete.
    Closed,
}

impl State {
    fn is_readable(&self) -> bool {
        self.end.is_some() || !self.events.is_empty() || self.as_document
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds events, and the stream's end if it has come, and wakes whoever waits. Tells whether there is room
    /// for more.
    fn put(&self, events: Vec<Event>, end: Option<Result<(), Error>>) -> bool {
        let mut state = self.lock();
        if state.end.is_none() {
            state.events.extend(events);
            if let Some(end) = end {
                state.end = Some(if end.is_ok() { End::Complete } else { End::Failed });
                state.failure = end.err();
            }
        }
        let room = state.events.len() < INBOX_LIMIT;
        self.wake(state);
        room
    }

    fn wake(&self, mut state: MutexGuard<'_, State>) {
        let waiters = mem::take(&mut state.waiters);
        drop(state);
        self.readable.notify_all();
        for waiter in waiters {
            waiter.settle(|py| Ok(py.None()));
        }
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

    /// Ends reading. for_good: nobody will ask for the document of a stream that has ended either.
    fn close(&self, for_good: bool) {
        let mut state = self.lock();
        state.events.clear();
        state.failure = None;
        if let Some(pump) = state.pump.take() {
            pump.abort();
        }
        let mut stream = None;
        if for_good || state.end.is_none() {
            state.end = Some(End::Closed);
            stream = state.stream.take();
        }
        self.wake(state);
        // Not under the lock: this closes the connection.
        drop(stream);
        self.closing.notify_waiters();
        self.returned.notify_waiters();
    }

    /// The stream, to read its document, from whoever has it now: the pump is stopped, another reader is waited for.
    async fn reclaim(self: &Arc<Self>) -> Result<Reader, Error> {
        loop {
            let returned = self.returned.notified();
            {
                let mut state = self.lock();
                state.as_document = true;
                if let Some(stream) = state.stream.take() {
                    state.events.clear();
                    self.wake(state);
                    return Ok(Reader { stream: Some(stream), inbox: Arc::clone(self) });
                }
                if state.end == Some(End::Closed) {
                    return Err(closed());
                }
                if let Some(pump) = state.pump.take() {
                    pump.abort();
                }
            }
            returned.await;
        }
    }
}

/// Events, and how the stream has ended, if it has.
type Read = (Vec<Event>, Option<Result<(), Error>>);

fn over() -> Read {
    (Vec::new(), Some(Ok(())))
}

/// Whoever reads from the stream now. Gives it back when it is done or dropped.
struct Reader {
    /// None only within `drop`.
    stream: Option<RawStream>,
    inbox: Arc<Inbox>,
}

impl Reader {
    fn stream(&mut self) -> &mut RawStream {
        self.stream.as_mut().expect("given back in drop alone")
    }

    /// The next events of a level, and the stream's end if it has come.
    async fn read(&mut self, level: Level) -> Read {
        let read = async |stream: &mut RawStream| {
            Ok(match level {
                Level::Events => match stream.next_batch().await? {
                    Some(batch) => parse(batch.into_iter().map(|event| event.data), stream),
                    None => over(),
                },
                Level::Raw => match stream.next_frames().await? {
                    Some(frames) => (frames.into_iter().map(Event::Raw).collect(), None),
                    None => over(),
                },
                Level::Text => match stream.next_text().await? {
                    Some(pieces) => (pieces.into_iter().map(Event::Text).collect(), None),
                    None => over(),
                },
            })
        };
        // A panic ends the stream, not the task that everybody waits for.
        self.stream().contain(read).await.unwrap_or_else(|failure| (Vec::new(), Some(Err(failure))))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut state = self.inbox.lock();
        let mut stream = self.stream.take();
        if state.end != Some(End::Closed) {
            state.stream = stream.take();
        }
        drop(state);
        // Not under the lock: this closes the connection.
        drop(stream);
        self.inbox.returned.notify_waiters();
    }
}

async fn pump(mut reader: Reader, level: Level) {
    loop {
        let (events, end) = reader.read(level).await;
        let ended = end.is_some();
        let inbox = Arc::clone(&reader.inbox);
        if ended {
            // The stream is back before its end is known: the document may be asked for at once.
            drop(reader);
            inbox.put(events, end);
            return;
        }
        if !inbox.put(events, None) {
            inbox.room().await;
        }
    }
}

/// The events up to one that cannot be read, and the error for that one.
fn parse(batch: impl ExactSizeIterator<Item = String>, stream: &mut RawStream) -> Read {
    let mut events = Vec::with_capacity(batch.len());
    for data in batch {
        match record::parse(data.as_bytes()) {
            Ok(value) => events.push(Event::Json(value)),
            Err(reason) => {
                let unread = Error::new(ErrorKind::Decode, format!("an event cannot be read: {reason}"));
                return (events, Some(Err(stream.give_up(unread))));
            }
        }
    }
    (events, None)
}

fn closed() -> Error {
    Error::new(ErrorKind::Configuration, "the stream was closed before it was complete")
}

async fn finish(inbox: Arc<Inbox>) -> Result<Answer, Error> {
    let closing = inbox.closing.notified();
    let mut reader = inbox.reclaim().await?;
    let operation = reader.stream().operation();
    let document: Result<RawResponse, Error> = tokio::select! {
        document = reader.stream().contain(async |stream| stream.finish().await) => document,
        () = closing => Err(closed()),
    };
    drop(reader);
    inbox.put(Vec::new(), Some(document.as_ref().map(drop).map_err(|_| closed())));
    inbox.lock().failure = None;
    Answer::parse(operation, document?)
}
