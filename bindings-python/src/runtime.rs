//! The tokio runtime of all calls, one per process. Waiting for a call reacts to Ctrl-C, and a forked child gets a
//! runtime of its own.

use std::process;
use std::sync::{Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};

use crate::callbacks;
use crate::interpreter;

/// Interval at which a blocked call checks for signals: well below the 200 ms that a person notices.
pub(crate) const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// Maximum number of threads that drive the connections of all clients of a process: the work per event is small, and
/// Python's own thread does the rest. Further threads resolve names and end after ten idle seconds. None of them delays
/// the end of the process.
const MAX_WORKERS: usize = 4;

/// The runtime of this process.
///
/// Both taking the lock and a fork by Python need the interpreter. So no other thread holds the lock during a fork, and
/// a child never finds it locked. The parent's threads do not exist in the child. The child therefore creates a new
/// runtime and never drops the old one, which would wait for those threads.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    static CURRENT: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);
    let mut current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    match *current {
        Some((pid, runtime)) if pid == process::id() => Ok(runtime),
        _ => {
            interpreter::begin(py);
            let workers = available_parallelism().map_or(2, usize::from).clamp(2, MAX_WORKERS);
            let runtime = Builder::new_multi_thread()
                .worker_threads(workers)
                .thread_name("gatewright")
                .enable_all()
                .build()
                .map_err(|error| {
                    PyRuntimeError::new_err(format!("cannot start the client's threads: {error}"))
                })?;
            let runtime: &'static Runtime = Box::leak(Box::new(runtime));
            *current = Some((process::id(), runtime));
            Ok(runtime)
        }
    }
}

/// Waits for `future` with the interpreter released. Signal handlers run every 50 ms. If one raises an exception
/// (Ctrl-C raises KeyboardInterrupt), the future is dropped, which ends the request. A panic of the future becomes an
/// error (Internal).
pub(crate) fn block_on<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, gatewright::Error>> + Send,
) -> PyResult<Result<T, gatewright::Error>> {
    let runtime = runtime(py)?;
    interpreter::detached(py, || {
        runtime.block_on(async {
            let mut future = std::pin::pin!(callbacks::for_thread(gatewright::contained(future)));
            loop {
                match tokio::time::timeout(SIGNAL_TICK, &mut future).await {
                    Ok(value) => return Ok(value),
                    Err(_) => attend_to_signals()?,
                }
            }
        })
    })
}

#[expect(
    clippy::redundant_closure_for_method_calls,
    reason = "the method's lifetime is too narrow for attach"
)]
fn attend_to_signals() -> PyResult<()> {
    interpreter::reattached(|py| py.check_signals())
}
