//! Callbacks that run within a call: middleware, and a callable that returns the key.
//!
//! A callback runs where the call was made: on the blocked thread, or on the event loop that awaits, in the context of
//! its task. The caller gets the exceptions of callbacks unchanged.
//!
//! The client in Python owns the callbacks. This file holds only weak references to them, so that callbacks that refer
//! to their client are collected with it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use gatewright::{ApiKeyProvider, Attempt, BoxFuture, Error, ErrorKind, Middleware, Outcome};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyWeakrefMethods, PyWeakrefReference};
use tokio::sync::oneshot;

use crate::error;
use crate::headers::{headers_to_python, pairs_of};
use crate::interpreter;

tokio::task_local! {
    static CALLER: Caller;
}

/// The caller of the current call.
struct Caller {
    place: CallbackSite,
    /// The Python object of the current attempt: the same one from the first `before` to the last `after`.
    attempt: Mutex<Option<(u32, Py<PyAny>)>>,
}

/// Where callbacks run.
#[derive(Clone)]
enum CallbackSite {
    /// On the thread that waits for the call.
    Thread(CallbackQueue),
    EventLoop(Arc<EventLoop>),
}

/// Where a thread that waits for a call finds the callbacks requested by it.
#[derive(Clone, Default)]
pub(crate) struct CallbackQueue(Arc<Mutex<Vec<PendingCallback>>>);

impl CallbackQueue {
    /// A callback that the call has requested.
    pub(crate) fn take(&self) -> Option<PendingCallback> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

/// A callback that a call waits for.
pub(crate) struct PendingCallback {
    function: Py<PyAny>,
    arguments: Py<PyTuple>,
    outcome: oneshot::Sender<PyResult<Py<PyAny>>>,
}

impl PendingCallback {
    /// Runs it on this thread and reports the outcome to its call.
    pub(crate) fn run(self, py: Python<'_>) {
        // If the call was dropped in the meantime, the result is not needed.
        drop(self.outcome.send(call_plainly(py, &self.function, self.arguments.bind(py))));
    }
}

struct EventLoop {
    event_loop: Py<PyAny>,
    /// Context variables of the awaiting task.
    context: Py<PyAny>,
}

/// Runs a call for a thread that waits for it and checks `desk` whenever it has polled the call.
pub(crate) fn for_thread<F: Future>(
    desk: &CallbackQueue,
    call: F,
) -> impl Future<Output = F::Output> + use<F> {
    CALLER.scope(Caller { place: CallbackSite::Thread(desk.clone()), attempt: Mutex::default() }, call)
}

/// Runs a call for a task of an event loop.
pub(crate) fn for_event_loop<F: Future>(
    event_loop: &Bound<'_, PyAny>,
    call: F,
) -> PyResult<impl Future<Output = F::Output> + use<F>> {
    static COPY_CONTEXT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let context = COPY_CONTEXT.import(event_loop.py(), "contextvars", "copy_context")?.call0()?.unbind();
    let place =
        CallbackSite::EventLoop(Arc::new(EventLoop { event_loop: event_loop.clone().unbind(), context }));
    Ok(CALLER.scope(Caller { place, attempt: Mutex::default() }, call))
}

/// The exception that Python code raised, as the source of the core's error.
#[derive(Debug)]
struct RaisedException(PyErr);

impl fmt::Display for RaisedException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exception of Python")
    }
}

impl std::error::Error for RaisedException {}

fn raised(error: PyErr) -> Error {
    // The core passes on only this kind unchanged, wherever a callback fails.
    Error::new(ErrorKind::Configuration, "a callback of the client raised")
        .with_source(RaisedException(error))
}

/// The exception of a callback that caused this error, if any.
pub(crate) fn raised_within(py: Python<'_>, error: &Error) -> Option<PyErr> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(RaisedException(raised)) = cause.downcast_ref() {
            return Some(raised.clone_ref(py));
        }
        source = cause.source();
    }
    None
}

/// Runs something short with the interpreter attached, unless it is shutting down.
fn attached<T>(run: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T, Error> {
    interpreter::visit(run)
        .ok_or_else(|| Error::new(ErrorKind::Cancelled, "the interpreter is shutting down"))?
        .map_err(raised)
}

/// Calls a function of the caller in its context, and awaits the result there if it is awaitable.
async fn invoke(function: Py<PyAny>, arguments: Py<PyTuple>) -> Result<Py<PyAny>, Error> {
    #[cfg(debug_assertions)]
    gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Callback);
    let event_loop = match CALLER.try_with(|caller| caller.place.clone()) {
        Ok(CallbackSite::EventLoop(event_loop)) => event_loop,
        Ok(CallbackSite::Thread(desk)) => {
            let (sender, outcome) = oneshot::channel();
            let pending = PendingCallback { function, arguments, outcome: sender };
            desk.0.lock().unwrap_or_else(PoisonError::into_inner).push(pending);
            let gone = |_| Error::new(ErrorKind::Cancelled, "the thread of the call has gone");
            return outcome.await.map_err(gone)?.map_err(raised);
        }
        // Outside a call, on a thread that may block: the callback may make a call itself.
        Err(_) => {
            let call = move || interpreter::reattached(|py| call_plainly(py, &function, arguments.bind(py)));
            let called = tokio::task::spawn_blocking(call).await;
            let broke = |error| Error::new(ErrorKind::Internal, "a callback broke off").with_source(error);
            return called.map_err(broke)?.map_err(raised);
        }
    };
    let (sender, outcome) = oneshot::channel();
    let reply = attached(|py| {
        static START: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let reply = Py::new(py, Reply { sender: Mutex::new(Some(sender)), task: Mutex::default() })?;
        let start = START.import(py, "gatewright._callbacks", "start")?;
        let keywords = PyDict::new(py);
        keywords.set_item("context", &event_loop.context)?;
        let arguments = (start, function, arguments, reply.clone_ref(py));
        event_loop.event_loop.bind(py).call_method("call_soon_threadsafe", arguments, Some(&keywords))?;
        Ok(CancelOnDrop(reply))
    })?;
    let outcome = outcome.await;
    drop(reply);
    match outcome {
        Ok(outcome) => outcome.map_err(raised),
        Err(_) => Err(Error::new(ErrorKind::Cancelled, "the event loop of the call has closed")),
    }
}

fn call_plainly(py: Python<'_>, function: &Py<PyAny>, arguments: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let value = interpreter::call(function.bind(py), arguments)?;
    if value.hasattr("__await__")? {
        if value.hasattr("close")? {
            value.call_method0("close")?;
        }
        let message =
            "a callback of Client must be a plain function; use AsyncClient for coroutine functions";
        return Err(PyTypeError::new_err(message));
    }
    Ok(value.unbind())
}

/// Takes the outcome of a callback on an event loop.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct Reply {
    sender: Mutex<Option<oneshot::Sender<PyResult<Py<PyAny>>>>>,
    task: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Reply {
    /// The callback continues as this task, which is cancelled with the call: immediately if the call is gone
    /// already.
    fn goes_on(&self, task: &Bound<'_, PyAny>) -> PyResult<()> {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone().unbind());
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let is_awaited = sender.as_ref().is_some_and(|sender| !sender.is_closed());
        drop(sender);
        if !is_awaited {
            task.call_method0("cancel")?;
        }
        Ok(())
    }

    /// The callback has returned `value` or, if `failed`, raised it.
    fn settle(&self, value: Bound<'_, PyAny>, failed: bool) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let outcome = if failed { Err(PyErr::from_value(value)) } else { Ok(value.unbind()) };
            // If the call was cancelled, the result is not needed.
            drop(sender.send(outcome));
        }
    }
}

/// Cancels the task of a callback when the call that waits for it ends.
struct CancelOnDrop(Py<Reply>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        interpreter::visit(|py| {
            let task = self.0.get().task.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(task) = task
                && let Ok(event_loop) = task.bind(py).call_method0("get_loop")
                && let Ok(cancel) = task.bind(py).getattr("cancel")
            {
                // Cancelling a finished task does nothing. The only error: the loop is closed.
                drop(event_loop.call_method1("call_soon_threadsafe", (cancel,)));
            }
        });
    }
}

/// Where a client keeps its callbacks.
struct CallbackOwner(Py<PyWeakrefReference>);

impl CallbackOwner {
    fn new(owner: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(PyWeakrefReference::new(owner)?.unbind()))
    }

    fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let gone = || PyRuntimeError::new_err("the client and its callbacks were freed during its call");
        self.0.bind(py).upgrade().ok_or_else(gone)
    }
}

/// A callable that returns the key.
pub(crate) struct KeyCallable {
    owner: CallbackOwner,
    /// Whether it takes the keyword `refresh`.
    takes_refresh: bool,
}

impl KeyCallable {
    /// owner: its `key` is the callable.
    pub(crate) fn new(owner: &Bound<'_, PyAny>) -> PyResult<Self> {
        let takes_refresh = owner.py().import("gatewright._callbacks")?.getattr("takes_refresh")?;
        let takes_refresh = takes_refresh.call1((owner.getattr("key")?,))?.is_truthy()?;
        Ok(Self { owner: CallbackOwner::new(owner)?, takes_refresh })
    }
}

impl ApiKeyProvider for KeyCallable {
    fn api_key(&self, refresh: bool) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move {
            let (function, arguments) = attached(|py| {
                let callable = self.owner.get(py)?.getattr("key")?;
                if !self.takes_refresh {
                    return Ok((callable.unbind(), PyTuple::empty(py).unbind()));
                }
                let keywords = PyDict::new(py);
                keywords.set_item("refresh", refresh)?;
                let partial = py.import("functools")?.getattr("partial")?;
                let function = partial.call((callable,), Some(&keywords))?;
                Ok((function.unbind(), PyTuple::empty(py).unbind()))
            })?;
            let key = invoke(function, arguments).await?;
            attached(|py| {
                key.extract::<String>(py).map_err(|_| PyTypeError::new_err("api_key() did not return text"))
            })
        })
    }
}

/// An object with `before(attempt)`, `after(attempt, outcome)` or both.
pub(crate) struct PythonMiddleware {
    owner: CallbackOwner,
    index: usize,
    before: bool,
    after: bool,
}

impl PythonMiddleware {
    /// owner: its list `middleware` holds the object at this index.
    pub(crate) fn new(owner: &Bound<'_, PyAny>, index: usize) -> PyResult<Self> {
        let object = owner.getattr("middleware")?.get_item(index)?;
        let (before, after) = (object.hasattr("before")?, object.hasattr("after")?);
        if !before && !after {
            let kind = object.get_type().name()?;
            let message = format!(
                "middleware needs a method before(attempt) or after(attempt, outcome); {kind} has neither"
            );
            return Err(PyTypeError::new_err(message));
        }
        Ok(Self { owner: CallbackOwner::new(owner)?, index, before, after })
    }

    fn method(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
        let object = self.owner.get(py)?.getattr("middleware")?.get_item(self.index)?;
        Ok(object.getattr(name)?.unbind())
    }
}

impl Middleware for PythonMiddleware {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if !self.before {
                return Ok(());
            }
            let (function, view) =
                attached(|py| Ok((self.method(py, "before")?, attempt_to_python(py, attempt)?)))?;
            let arguments = attached(|py| Ok((view.clone_ref(py),).into_pyobject(py)?.unbind()))?;
            invoke(function, arguments).await?;
            let wanted = attached(|py| {
                let wanted = view.bind(py).getattr("headers")?.cast_into::<PyDict>()?;
                let is_changed = !wanted.eq(headers_to_python(py, attempt.headers())?)?;
                is_changed.then(|| pairs_of(&wanted)).transpose()
            })?;
            wanted.map_or(Ok(()), |wanted| attempt.set_headers(&wanted))
        })
    }

    fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            if !self.after {
                return Ok(());
            }
            let (function, arguments) = attached(|py| {
                let view = attempt_to_python(py, attempt)?;
                let arguments = (view, outcome_to_python(py, outcome)?).into_pyobject(py)?;
                Ok((self.method(py, "after")?, arguments.unbind()))
            })?;
            invoke(function, arguments).await.map(drop)
        })
    }
}

/// The Python object of the attempt, always the same one for an attempt.
fn attempt_to_python(py: Python<'_>, attempt: &Attempt) -> PyResult<Py<PyAny>> {
    let known = CALLER.try_with(|caller| {
        let known = caller.attempt.lock().unwrap_or_else(PoisonError::into_inner);
        known.as_ref().filter(|(number, _)| *number == attempt.number()).map(|(_, view)| view.clone_ref(py))
    });
    if let Some(view) = known.ok().flatten() {
        return Ok(view);
    }
    let members = PyDict::new(py);
    members.set_item("operation", attempt.operation().id)?;
    members.set_item("number", attempt.number())?;
    members.set_item("max_retries", attempt.max_retries())?;
    members.set_item("remaining", attempt.remaining().as_secs_f64())?;
    members.set_item("method", attempt.method().as_str())?;
    members.set_item("url", attempt.url())?;
    members.set_item("headers", headers_to_python(py, attempt.headers())?)?;
    members.set_item("body", attempt.body().map(|body| PyBytes::new(py, body)))?;
    let view = py.import("gatewright.middleware")?.getattr("Attempt")?.call((), Some(&members))?.unbind();
    // Outside a call, nothing stores it.
    let _ = CALLER.try_with(|caller| {
        *caller.attempt.lock().unwrap_or_else(PoisonError::into_inner) =
            Some((attempt.number(), view.clone_ref(py)));
    });
    Ok(view)
}

fn outcome_to_python<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyAny>> {
    let members = PyDict::new(py);
    members.set_item("status_code", outcome.status())?;
    let headers = outcome.headers().map(|headers| headers_to_python(py, headers)).transpose()?;
    members.set_item("headers", headers)?;
    members.set_item("request_id", outcome.request_id())?;
    members.set_item("elapsed", outcome.elapsed().as_secs_f64())?;
    members.set_item("body", outcome.body().map(|body| PyBytes::new(py, body)))?;
    members.set_item("error", outcome.error().map(|error| error::to_python(py, error).into_value(py)))?;
    py.import("gatewright.middleware")?.getattr("Outcome")?.call((), Some(&members))
}
