//! The bridge to asyncio: work runs on our runtime, and its outcome settles a future on the caller's loop.

use std::cell::Cell;

use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyCFunction;
use tokio::task::AbortHandle;

use crate::callbacks;
use crate::error::{self, caught};
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
    let waiter = Waiter::new(event_loop)?;
    let future = waiter.future(py);
    let work = callbacks::for_event_loop(event_loop, work)?;
    let task = of_event_loops(py)?.spawn(async move {
        let outcome = gatewright::contained(work).await;
        waiter.settle(|py| match outcome {
            Ok(value) => convert(py, value),
            Err(error) => Err(error::to_python(py, &error)),
        });
    });
    Ok(Pending { future, task: task.abort_handle() })
}

/// An asyncio future and its loop; any thread can settle it.
pub(crate) struct Waiter {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

impl Waiter {
    /// A new future of that loop.
    pub(crate) fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let future = event_loop.call_method0(intern!(event_loop.py(), "create_future"))?.unbind();
        Ok(Self { event_loop: event_loop.clone().unbind(), future })
    }

    /// The future, for whoever awaits it.
    pub(crate) fn future(&self, py: Python<'_>) -> Py<PyAny> {
        self.future.clone_ref(py)
    }

    /// Settles the future with the result of `outcome`. Does nothing if the loop has closed or the interpreter is
    /// shutting down: nobody waits then.
    pub(crate) fn settle(self, outcome: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        // The future is let go of while the interpreter is attached. Otherwise it would live, with a stream that is its
        // result, until Python next calls this module.
        interpreter::visit(move |py| {
            // Whatever happens, somebody waits for this.
            let (value, failed) = match caught(py, || outcome(py)) {
                Ok(value) => (value, false),
                Err(error) => (error.into_value(py).into_any(), true),
            };
            if is_running_here(self.event_loop.bind(py)) {
                // The only errors are those of callbacks, which the loop reports.
                drop(settle(self.future.bind(py), value.into_bound(py), failed));
                return;
            }
            let Ok(settle) = settle_function(py) else { return };
            let arguments = (settle, self.future.bind(py), value, failed);
            // The only error: RuntimeError, the loop is closed.
            drop(self.event_loop.bind(py).call_method1("call_soon_threadsafe", arguments));
        });
    }
}

thread_local! {
    /// The loop that has called this thread back; 0 for none.
    static CALLING: Cell<usize> = const { Cell::new(0) };
}

/// Runs what a loop has called back for, on its thread.
pub(crate) fn called_by<T>(event_loop: &Bound<'_, PyAny>, work: impl FnOnce() -> T) -> T {
    let _restored = Restored(CALLING.replace(event_loop.as_ptr().addr()));
    work()
}

/// Restores who has called, also after a panic.
struct Restored(usize);

impl Drop for Restored {
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

/// Runs on the loop. A future that was cancelled meanwhile stays as it is.
#[pyfunction]
fn settle(future: &Bound<'_, PyAny>, value: Bound<'_, PyAny>, failed: bool) -> PyResult<()> {
    let py = future.py();
    if future.call_method0(intern!(py, "done"))?.is_truthy()? {
        return Ok(());
    }
    if !failed {
        future.call_method1(intern!(py, "set_result"), (value,))?;
    } else if let Err(refused) = future.call_method1("set_exception", (value,)) {
        // A future takes no StopIteration, which a callback may raise; it must be settled all the same.
        future.call_method1("set_exception", (refused.into_value(future.py()),))?;
    }
    Ok(())
}
