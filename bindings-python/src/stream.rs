//! Streams: the core reads ahead, and each call takes all events that are ready. If only the whole document is wanted,
//! no events are converted.

use std::mem;
use std::process;
use std::sync::Arc;

use gatewright::read_ahead::{Level, Read, ReadAhead, Taken};
use gatewright::{Error, ErrorKind, Frame, RawStream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use tokio::runtime::Handle;

use crate::answer::Answer;
use crate::asyncio::{self, Pending, Waiter};
use crate::error::{self, caught};
use crate::raw_event::RawEvent;
use crate::record::{self, Value};
use crate::response::{Metadata, ResponseInfo};
use crate::waiting::{block_on, wait_for};

fn level_of(name: &str) -> PyResult<Level> {
    match name {
        "events" => Ok(Level::Chunks),
        "raw_events" => Ok(Level::Frames),
        "text" => Ok(Level::Text),
        _ => Err(PyValueError::new_err(format!("there is no level {name}"))),
    }
}

fn name_of(level: Level) -> &'static str {
    match level {
        Level::Chunks => "events",
        Level::Frames => "raw_events",
        Level::Text => "text",
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

/// A stream in progress. Dropping it closes the connection.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct EngineStream {
    /// None only while it is dropped.
    stream: Option<ReadAhead<Event>>,
    metadata: Arc<Metadata>,
    pid: u32,
}

impl EngineStream {
    /// A stream that nobody has read from yet.
    pub(crate) fn new(runtime: &Handle, stream: RawStream) -> Self {
        let metadata = Arc::new(Metadata {
            status: stream.status(),
            headers: stream.headers().clone(),
            request_id: stream.request_id().map(str::to_owned),
            attempts: stream.attempts(),
            elapsed: stream.elapsed(),
        });
        Self { stream: Some(ReadAhead::new(runtime, stream, make)), metadata, pid: process::id() }
    }

    pub(crate) fn metadata(&self) -> &Arc<Metadata> {
        &self.metadata
    }

    fn stream(&self, py: Python<'_>) -> PyResult<&ReadAhead<Event>> {
        match &self.stream {
            Some(stream) if self.pid == process::id() => Ok(stream),
            _ => {
                Err(error::of_kind(py, ErrorKind::Configuration, "the stream was opened in another process"))
            }
        }
    }
}

impl Drop for EngineStream {
    fn drop(&mut self) {
        if self.pid != process::id() {
            // The connection and the task belong to the parent. Its threads do not exist here, and may hold locks for
            // ever.
            mem::forget(self.stream.take());
        }
    }
}

/// Reads to the end; returns the whole document.
fn document(stream: &ReadAhead<Event>) -> impl Future<Output = Result<Answer, Error>> + Send + use<> {
    let (operation, document) = (stream.operation(), stream.finish());
    async move { Answer::parse(operation, document.await?) }
}

#[pymethods]
impl EngineStream {
    /// All events of a level that are ready, perhaps none; None once the stream is complete or closed. Raises the error
    /// that ended the stream, once, after the last event. The first call fixes the level.
    fn take<'py>(&self, py: Python<'py>, level: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        let stream = self.stream(py)?;
        let level = level_of(level)?;
        let events = match stream.take(level) {
            Taken::Events(events) => events,
            Taken::Over => return Ok(None),
            Taken::Failed(failure) => return Err(error::to_python(py, &failure)),
            Taken::Otherwise(chosen) => {
                let reader = chosen.map_or("get_final_…", name_of);
                let message =
                    format!("the stream is being read by {reader}(), no longer by {}()", name_of(level));
                return Err(error::of_kind(py, ErrorKind::Configuration, &message));
            }
            _ => return Err(PyValueError::new_err("an answer of another version")),
        };
        caught(py, || {
            #[cfg(debug_assertions)]
            gatewright::on_purpose::reach(gatewright::on_purpose::Place::Answer);
            let events = events.into_iter().map(|event| event.into_python(py));
            PyList::new(py, events.collect::<PyResult<Vec<_>>>()?).map(Some)
        })
    }

    /// Blocks until `take` has something to return.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        wait_for(py, self.stream(py)?.readable())
    }

    /// A future of `event_loop` that is done once `take` has something to return.
    fn readable(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let stream = self.stream(py)?;
        let waiter = Waiter::new(event_loop)?;
        let future = waiter.future(py);
        stream.when_readable(|| waiter.settle(|py| Ok(py.None())));
        Ok(future)
    }

    /// Reads to the end and returns the whole document; discards events that were not taken.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let document = block_on(py, document(self.stream(py)?))?;
        document.map_err(|error| error::to_python(py, &error))?.into_python(py)
    }

    /// Like `finish`; the document settles a future of `event_loop`.
    fn finish_async(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Pending> {
        let document = document(self.stream(py)?);
        asyncio::spawn(py, event_loop, document, |py, document| document.into_python(py))
    }

    /// Closes the connection; discards events that were not taken. The document of a complete stream remains available.
    fn close(&self) {
        if self.pid == process::id()
            && let Some(stream) = &self.stream
        {
            stream.close();
        }
    }

    /// Status, headers, request id and attempts.
    #[getter]
    fn response(&self) -> ResponseInfo {
        ResponseInfo::new(Arc::clone(&self.metadata))
    }
}

/// Converts what the core's task has read, without the interpreter.
fn make(read: Read) -> Result<Event, String> {
    match read {
        Read::Chunk(document) => record::parse(document.as_bytes()).map(Event::Json),
        Read::Frame(frame) => Ok(Event::Raw(frame)),
        Read::Text(text) => Ok(Event::Text(text)),
        _ => Err("a level of another version".to_owned()),
    }
}
