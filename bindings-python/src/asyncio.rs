//! The bridge to asyncio: work runs on our runtime, and its outcome settles a future on the caller's loop.

use std::cell::{Cell, RefCell};
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCFunction, PyWeakrefReference};
use tokio::task::AbortHandle;

use crate::callbacks;
use crate::error::{self, caught};
use crate::fork_guard;
use crate::interpreter;
use crate::runtime::of_event_loops;

/// Work in progress. The `async def` that awaits `future` calls `cancel()` when it ends for any reason.
#[pyclass(frozen, module = "gatewright._engine")]
pub(crate) struct Pending {
    #[pyo3(get)]
    future: Py<PyAny>,
    task: AbortHandle,
}

#[pymethods]
impl Pending {
    /// Drops the work and closes its request. Does nothing once it has finished.
    fn cancel(&self) {
        self.task.abort();
    }
}

/// Starts `work`; `convert` converts its result to a Python value.
pub(crate) fn spawn<T: Send + 'static>(
    py: Python<'_>,
    event_loop: &Bound<'_, PyAny>,
    work: impl Future<Output = Result<T, gatewright::Error>> + Send + 'static,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Pending> {
    if interpreter::is_closed() {
        return Err(PyRuntimeError::new_err(
            "the interpreter is shutting down: async calls can no longer be made",
        ));
    }
    let outbox = Outbox::of(event_loop)?;
    let future = new_future(event_loop)?;
    let settled = future.clone().unbind();
    let work = callbacks::for_event_loop(event_loop, work)?;
    let task = of_event_loops(py)?.spawn(async move {
        let outcome = gatewright::contained(work).await;
        outbox.put(EndedFuture {
            future: settled,
            outcome: Box::new(|py| match outcome {
                Ok(value) => convert(py, value),
                Err(error) => Err(error::to_python(py, &error)),
            }),
        });
    });
    Ok(Pending { future: future.unbind(), task: task.abort_handle() })
}

fn new_future<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    event_loop.call_method0(intern!(event_loop.py(), "create_future"))
}

/// The outcomes for the futures of one loop. The loop is called back once for everything that has arrived by the time it
/// runs: each callback needs the interpreter, and many concurrent requests would contend with the loop for it.
struct Outbox {
    /// A forked child has its own: in its parent's, results may wait for a thread that doesn't exist in the
    /// child.
    process: u32,
    event_loop: Py<PyWeakrefReference>,
    ended: Mutex<Vec<EndedFuture>>,
}

/// A future, and the outcome to settle it with.
struct EndedFuture {
    future: Py<PyAny>,
    outcome: Outcome,
}

/// Creates the future's value on the loop.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

thread_local! {
    /// The outbox of the loop that this thread ran last.
    static OUTBOX: RefCell<Option<Arc<Outbox>>> = const { RefCell::new(None) };
}

impl Outbox {
    /// The outbox of a loop. Call it on the loop's thread.
    fn of(event_loop: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        let (py, process) = (event_loop.py(), fork_guard::id());
        OUTBOX.with_borrow_mut(|last| {
            if let Some(outbox) = last
                && outbox.process == process
                && outbox.event_loop.bind(py).upgrade().is_some_and(|own| own.is(event_loop))
            {
                return Ok(Arc::clone(outbox));
            }
            let event_loop = PyWeakrefReference::new(event_loop)?.unbind();
            let outbox = Arc::new(Self { process, event_loop, ended: Mutex::default() });
            *last = Some(Arc::clone(&outbox));
            Ok(outbox)
        })
    }

    /// Makes the loop settle a future. Does nothing if the loop has closed or the interpreter is shutting down: no task
    /// waits then.
    fn put(self: Arc<Self>, ended: EndedFuture) {
        let mut waiting = self.ended();
        waiting.push(ended);
        if waiting.len() > 1 {
            // A callback is already scheduled.
            return;
        }
        drop(waiting);
        interpreter::visit(|py| {
            let deliver =
                Bound::new(py, Deliver { outbox: Arc::clone(&self), is_called: AtomicBool::new(false) });
            if let Some(event_loop) = self.event_loop.bind(py).upgrade() {
                // The only error: RuntimeError, the loop is closed.
                drop(
                    deliver
                        .and_then(|it| event_loop.call_method1(intern!(py, "call_soon_threadsafe"), (it,))),
                );
            }
        });
    }

    fn ended(&self) -> MutexGuard<'_, Vec<EndedFuture>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop's callback when something has ended.
#[pyclass(frozen, module = "gatewright._engine")]
struct Deliver {
    outbox: Arc<Outbox>,
    is_called: AtomicBool,
}

/// A closing loop drops its pending callbacks: no task waits any more, and the outcomes would keep the loop alive.
impl Drop for Deliver {
    fn drop(&mut self) {
        if !*self.is_called.get_mut() {
            let forgotten = mem::take(&mut *self.outbox.ended());
            drop(forgotten);
        }
    }
}

#[pymethods]
impl Deliver {
    /// Runs on the loop, and settles all futures even if one fails. Errors: the first of their callbacks' errors, which the
    /// loop reports.
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        self.is_called.store(true, Ordering::Relaxed);
        let ended = mem::take(&mut *self.outbox.ended());
        let mut raised = Ok(());
        for EndedFuture { future, outcome } in ended {
            let (value, failed) = value_of(py, outcome);
            raised = raised.and(settle(future.bind(py), value, failed));
        }
        raised
    }
}

/// An asyncio future and its loop; any thread can settle it.
pub(crate) struct Waiter {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

impl Waiter {
    /// A new future of that loop.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { event_loop: event_loop.clone().unbind(), future: new_future(event_loop)?.unbind() })
    }

    /// The future to await.
    pub(crate) fn future(&self, py: Python<'_>) -> Py<PyAny> {
        self.future.clone_ref(py)
    }

    /// Settles the future with the result of `outcome`. Does nothing if the loop has closed or the interpreter is
    /// shutting down: no task waits then.
    pub(crate) fn settle(self, outcome: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        // The future is released while the interpreter is attached. Otherwise it would live on, with a stream that is
        // its result, until Python next calls this module.
        interpreter::visit(move |py| {
            let (value, failed) = value_of(py, outcome);
            if is_running_here(self.event_loop.bind(py)) {
                // The only errors are those of callbacks, which the loop reports.
                drop(settle(self.future.bind(py), value, failed));
                return;
            }
            let Ok(settle) = settle_function(py) else { return };
            let arguments = (settle, self.future.bind(py), value, failed);
            // The only error: RuntimeError, the loop is closed.
            drop(self.event_loop.bind(py).call_method1("call_soon_threadsafe", arguments));
        });
    }
}

/// The value that settles a future, and whether it is an exception. It must be settled whatever happens: a task waits for it.
fn value_of<'py>(
    py: Python<'py>,
    outcome: impl FnOnce(Python<'py>) -> PyResult<Py<PyAny>>,
) -> (Bound<'py, PyAny>, bool) {
    match caught(py, || outcome(py)) {
        Ok(value) => (value.into_bound(py), false),
        Err(error) => (error.into_value(py).into_bound(py).into_any(), true),
    }
}

thread_local! {
    /// The loop that has called back this thread; 0 for none.
    static CALLING: Cell<usize> = const { Cell::new(0) };
}

/// Runs a loop's callback, on its thread.
pub(crate) fn called_by<T>(event_loop: &Bound<'_, PyAny>, work: impl FnOnce() -> T) -> T {
    let _restored = RestoreCaller(CALLING.replace(event_loop.as_ptr().addr()));
    work()
}

/// Restores the previous loop, even after a panic.
struct RestoreCaller(usize);

impl Drop for RestoreCaller {
    fn drop(&mut self) {
        CALLING.set(self.0);
    }
}

/// Whether this thread runs that loop.
pub(crate) fn is_running_here(event_loop: &Bound<'_, PyAny>) -> bool {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if CALLING.get() == event_loop.as_ptr().addr() {
        return true;
    }
    let py = event_loop.py();
    let running = RUNNING.import(py, "asyncio", "_get_running_loop").and_then(PyAnyMethods::call0);
    running.is_ok_and(|running| running.is(event_loop))
}

fn settle_function(py: Python<'_>) -> PyResult<&Bound<'_, PyCFunction>> {
    static FUNCTION: PyOnceLock<Py<PyCFunction>> = PyOnceLock::new();
    Ok(FUNCTION.get_or_try_init(py, || wrap_pyfunction!(settle, py).map(Bound::unbind))?.bind(py))
}

/// Runs on the loop. A future cancelled in the meantime stays unchanged.
#[pyfunction]
fn settle(future: &Bound<'_, PyAny>, value: Bound<'_, PyAny>, failed: bool) -> PyResult<()> {
    let py = future.py();
    if future.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    if !failed {
        future.call_method1(intern!(py, "set_result"), (value,))?;
    } else if let Err(refused) = future.call_method1("set_exception", (value,)) {
        // A future doesn't accept StopIteration, which a callback may raise; it must be settled anyway.
        future.call_method1("set_exception", (refused.into_value(future.py()),))?;
    }
    Ok(())
}
