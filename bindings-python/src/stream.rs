//! Streams: the core reads ahead, and each call takes all events that are ready. If only the whole document is wanted,
//! no events are converted.

use std::mem;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::{Mutex, MutexGuard, PoisonError};

use gatewright::read_ahead::{Level, ReadAhead, TakeResult};
use gatewright::{Error, ErrorKind, RawStream};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use tokio::runtime::Handle;

use crate::answer::Answer;
use crate::asyncio::{self, Pending, Waiter};
use crate::error::{self, caught};
use crate::event::Event;
use crate::fork_guard;
use crate::interpreter;
use crate::response::{Metadata, ResponseInfo};
use crate::runtime::Driven;
use crate::waiting::{block_on, wait_for_stream};
#[cfg(unix)]
use crate::watch::WatchedConnection;

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

/// The kind of a stream's reader.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    Thread(&'static Driven),
    EventLoop,
}

/// A stream in progress. Dropping it closes the connection.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct EngineStream {
    /// None only while it is dropped.
    stream: Option<Arc<ReadAhead<Event>>>,
    metadata: Arc<Metadata>,
    /// The event loop that watches the connection.
    #[cfg(unix)]
    watching: Mutex<Option<Arc<WatchedConnection>>>,
    pid: u32,
}

impl EngineStream {
    /// A stream that has not been read from yet.
    pub(crate) fn new(reader: Reader, stream: RawStream) -> Self {
        let metadata = Arc::new(Metadata {
            status: stream.status(),
            headers: stream.headers().clone(),
            request_id: stream.request_id().map(str::to_owned),
            attempts: stream.attempts(),
            elapsed: stream.elapsed(),
        });
        let stream = match reader {
            Reader::Thread(driven) => {
                let stream = ReadAhead::new(driven.handle(), stream, Event::make);
                if stream.watch() {
                    driven.look_after(stream.caretaker());
                }
                stream
            }
            Reader::EventLoop => {
                let stream = ReadAhead::new(&Handle::current(), stream, Event::make);
                stream.watch();
                stream
            }
        };
        Self {
            stream: Some(Arc::new(stream)),
            metadata,
            #[cfg(unix)]
            watching: Mutex::default(),
            pid: fork_guard::id(),
        }
    }

    pub(crate) fn metadata(&self) -> &Arc<Metadata> {
        &self.metadata
    }

    fn stream(&self, py: Python<'_>) -> PyResult<&Arc<ReadAhead<Event>>> {
        match &self.stream {
            Some(stream) if self.pid == fork_guard::id() => Ok(stream),
            _ => {
                Err(error::of_kind(py, ErrorKind::Configuration, "the stream was opened in another process"))
            }
        }
    }

    /// All events of a level that are ready, the last one first; none once there are no more.
    fn ready<'py>(
        &self,
        py: Python<'py>,
        level: Level,
    ) -> PyResult<Option<impl ExactSizeIterator<Item = Event> + use<'py>>> {
        match self.stream(py)?.take(level) {
            TakeResult::Events(events) => Ok(Some(events.into_iter().rev())),
            TakeResult::Over => Ok(None),
            TakeResult::Failed(failure) => Err(error::to_python(py, &failure)),
            TakeResult::Otherwise(chosen) => {
                let reader = chosen.map_or("get_final_…", name_of);
                let message =
                    format!("the stream is being read by {reader}(), no longer by {}()", name_of(level));
                Err(error::of_kind(py, ErrorKind::Configuration, &message))
            }
            _ => Err(PyValueError::new_err("an answer of another version")),
        }
    }

    /// Makes the loop watch the connection; if it can't, a task reads.
    #[cfg(unix)]
    fn watch(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<()> {
        let stream = self.stream(py)?;
        if stream.watched().is_none() {
            return Ok(());
        }
        let own = self.watching().clone().filter(|own| own.is_of(event_loop));
        let watching = if let Some(own) = own {
            Ok(own)
        } else {
            self.unwatch(py);
            stream.renew_timer();
            let new = WatchedConnection::new(stream, event_loop);
            *self.watching() = new.as_ref().ok().cloned();
            new
        };
        if watching.and_then(|watching| watching.go_on(py)).is_err() {
            stream.unwatch();
        }
        Ok(())
    }

    #[cfg(not(unix))]
    fn watch(&self, _: Python<'_>, _: &Bound<'_, PyAny>) -> PyResult<()> {
        Ok(())
    }

    /// Stops the event loop's watching.
    #[cfg(unix)]
    fn unwatch(&self, py: Python<'_>) {
        let watching = self.watching().take();
        if let Some(watching) = watching {
            watching.stop(py);
        }
    }

    #[cfg(not(unix))]
    fn unwatch(&self, _: Python<'_>) {}

    #[cfg(unix)]
    fn watching(&self) -> MutexGuard<'_, Option<Arc<WatchedConnection>>> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EngineStream {
    fn drop(&mut self) {
        if self.pid != fork_guard::id() {
            // The connection and the task belong to the parent. Its threads do not exist here, and their locks may be
            // held forever.
            mem::forget(self.stream.take());
            return;
        }
        let stream = self.stream.take();
        interpreter::visit_in_passing(|py| {
            self.unwatch(py);
            // Its end settles the waiting futures.
            drop(stream);
        });
    }
}

fn list_of(py: Python<'_>, events: impl Iterator<Item = Event>) -> PyResult<Bound<'_, PyList>> {
    caught(py, || {
        #[cfg(debug_assertions)]
        gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Answer);
        let events = events.map(|event| event.into_python(py));
        PyList::new(py, events.collect::<PyResult<Vec<_>>>()?)
    })
}

/// Reads to the end; returns the whole document.
fn document(stream: &ReadAhead<Event>) -> impl Future<Output = Result<Answer, Error>> + Send + use<> {
    let (operation, document) = (stream.operation(), stream.finish());
    async move { Answer::parse(operation, document.await?) }
}

#[pymethods]
impl EngineStream {
    /// All events of a level that are ready, the last one first, perhaps none; None once the stream is complete or closed.
    /// Raises the error that ended the stream, once, after the last event. The first call fixes the level.
    fn take<'py>(&self, py: Python<'py>, level: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        let events = self.ready(py, level_of(level)?)?;
        events.map(|events| list_of(py, events)).transpose()
    }

    /// Like `take`, but blocks until there is at least one event.
    fn next<'py>(&self, py: Python<'py>, level: &str) -> PyResult<Option<Bound<'py, PyList>>> {
        let level = level_of(level)?;
        loop {
            match self.ready(py, level)? {
                None => return Ok(None),
                Some(events) if events.len() > 0 => return list_of(py, events).map(Some),
                Some(_) => wait_for_stream(py, self.stream(py)?)?,
            }
        }
    }

    /// A future of `event_loop` that is done once `take` has something to return.
    fn readable(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let stream = self.stream(py)?;
        let waiter = Waiter::new(event_loop)?;
        let future = waiter.future(py);
        stream.when_readable(|| waiter.settle(|py| Ok(py.None())));
        self.watch(py, event_loop)?;
        Ok(future)
    }

    /// Reads to the end and returns the whole document; discards events that were not taken.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let document = block_on(py, document(self.stream(py)?))?;
        document.map_err(|error| error::to_python(py, &error))?.into_python(py)
    }

    /// Like `finish`; the document settles a future of `event_loop`.
    fn finish_async(&self, py: Python<'_>, event_loop: &Bound<'_, PyAny>) -> PyResult<Pending> {
        self.unwatch(py);
        let document = document(self.stream(py)?);
        asyncio::spawn(py, event_loop, document, |py, document| document.into_python(py))
    }

    /// Closes the connection; discards events that were not taken. The document of a complete stream remains available.
    fn close(&self, py: Python<'_>) {
        if self.pid == fork_guard::id()
            && let Some(stream) = &self.stream
        {
            stream.close();
            self.unwatch(py);
        }
    }

    /// Status, headers, request id and attempts.
    #[getter]
    fn response(&self) -> ResponseInfo {
        ResponseInfo::new(Arc::clone(&self.metadata))
    }
}
