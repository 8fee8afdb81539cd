//! Makes an event loop watch the connection of a stream. Incoming data is read on the loop's thread, so that no other
//! thread is woken for it.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Wake, Waker};

use gatewright::read_ahead::{Now, ReadAhead, SocketGuard};
use pyo3::prelude::*;
use pyo3::types::PyWeakrefReference;

use crate::asyncio::{called_by, is_running_here};
use crate::event::Event;
use crate::interpreter;

/// The loop's callback when there is something to read.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct Watch(Arc<WatchedConnection>);

/// A connection that a loop watches. It keeps neither the stream nor the loop alive.
pub(crate) struct WatchedConnection {
    stream: Weak<ReadAhead<Event>>,
    event_loop: Py<PyWeakrefReference>,
    /// The connection, as long as the loop watches it.
    held: Mutex<Option<SocketGuard>>,
    /// Whether the loop should release it.
    is_over: AtomicBool,
}

impl WatchedConnection {
    /// Errors: the loop can't watch connections.
    pub(crate) fn new(stream: &Arc<ReadAhead<Event>>, event_loop: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let event_loop = PyWeakrefReference::new(event_loop)?.unbind();
        let (held, is_over) = (Mutex::default(), AtomicBool::new(false));
        Ok(Arc::new(Self { stream: Arc::downgrade(stream), event_loop, held, is_over }))
    }

    pub(crate) fn is_of(&self, event_loop: &Bound<'_, PyAny>) -> bool {
        self.event_loop.bind(event_loop.py()).upgrade().is_some_and(|own| own.is(event_loop))
    }

    /// Reads the available data and makes the loop watch for more. Call it on the loop's thread. Errors: the loop can't
    /// watch connections.
    pub(crate) fn go_on(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        let Some(stream) = self.stream.upgrade() else { return Ok(()) };
        if self.held().is_none() {
            let Some(held) = stream.watched().and_then(|watched| watched.hold()) else { return Ok(()) };
            held.set_readable();
            let Some(event_loop) = self.event_loop.bind(py).upgrade() else { return Ok(()) };
            let watch = Bound::new(py, Watch(Arc::clone(self)))?;
            event_loop.call_method1("add_reader", (held.as_fd().as_raw_fd(), watch))?;
            *self.held() = Some(held);
        } else if stream.is_at_rest() {
            return Ok(());
        }
        self.read(py, &stream);
        Ok(())
    }

    fn read(self: &Arc<Self>, py: Python<'_>, stream: &ReadAhead<Event>) {
        let Some(event_loop) = self.event_loop.bind(py).upgrade() else { return };
        let waker = Waker::from(Arc::clone(self));
        // Reading may take long, and other threads may use the interpreter meanwhile.
        let read = || interpreter::detached(py, || stream.read_now(&waker));
        match called_by(&event_loop, read) {
            Now::Readable | Now::Silent => {}
            // A reader that comes back restarts it.
            _ => self.stop(py),
        }
    }

    /// Makes the loop stop watching.
    pub(crate) fn stop(self: &Arc<Self>, py: Python<'_>) {
        let Some(event_loop) = self.event_loop.bind(py).upgrade() else {
            drop(self.held().take());
            return;
        };
        if self.held().is_none() {
            return;
        }
        let is_running = event_loop.call_method0("is_running").is_ok_and(|is| is.is_truthy().unwrap_or(true));
        if is_running && !is_running_here(&event_loop) {
            self.is_over.store(true, Ordering::Relaxed);
            // It is kept open until the loop has released it.
            if let Ok(watch) = Bound::new(py, Watch(Arc::clone(self))) {
                drop(event_loop.call_method1("call_soon_threadsafe", (watch,)));
            }
            return;
        }
        // Not while holding the lock: the loop runs Python, and another thread may want it meanwhile.
        let held = self.held().take();
        if let Some(held) = held {
            // The only error: the loop is closed.
            drop(event_loop.call_method1("remove_reader", (held.as_fd().as_raw_fd(),)));
        }
    }

    fn held(&self) -> MutexGuard<'_, Option<SocketGuard>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time limit of the stream has expired, or there is more to read than fits into a turn.
impl Wake for WatchedConnection {
    fn wake(self: Arc<Self>) {
        interpreter::visit(|py| {
            if let Some(event_loop) = self.event_loop.bind(py).upgrade()
                && let Ok(watch) = Bound::new(py, Watch(Arc::clone(&self)))
            {
                // The only error: the loop is closed.
                drop(event_loop.call_method1("call_soon_threadsafe", (watch,)));
            }
        });
    }
}

#[pymethods]
impl Watch {
    /// Runs on the loop.
    fn __call__(&self, py: Python<'_>) {
        let goes_on = |stream: &Arc<ReadAhead<Event>>| {
            stream.watched().is_some() && !self.0.is_over.load(Ordering::Relaxed)
        };
        match self.0.stream.upgrade().filter(goes_on) {
            Some(stream) => {
                if let Some(held) = &*self.0.held() {
                    held.set_readable();
                }
                self.0.read(py, &stream);
            }
            None => self.0.stop(py),
        }
    }
}
