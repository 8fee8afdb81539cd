//! Blocks a thread of Python until a call is done. Meanwhile it drives all connections, runs the callbacks that its own
//! call asks for, and reacts to Ctrl-C.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use pyo3::prelude::*;
use tokio::time::timeout;

use crate::callbacks::{self, Asked, Desk};
use crate::interpreter;
use crate::runtime::runtime;

/// Interval at which a blocked call checks for signals: well below the 200 ms that a person notices.
pub(crate) const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// Why a thread stops driving.
enum Stop<T> {
    Done(T),
    Asked(Asked),
    Tick,
}

/// Waits for `future` with the interpreter released. Signal handlers run every 50 ms. If one raises an exception
/// (Ctrl-C raises KeyboardInterrupt), the future is dropped, which ends the request. A panic of the future becomes an
/// error (Internal).
pub(crate) fn block_on<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, gatewright::Error>> + Send,
) -> PyResult<Result<T, gatewright::Error>> {
    let desk = Desk::default();
    wait(py, &desk, callbacks::for_thread(&desk, gatewright::contained(future)))
}

/// Like [`block_on`], for a future that has no callbacks and cannot panic.
pub(crate) fn wait_for<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    wait(py, &Desk::default(), future)
}

fn wait<T: Send>(py: Python<'_>, desk: &Desk, future: impl Future<Output = T> + Send) -> PyResult<T> {
    let driven = runtime(py)?;
    let mut future = pin!(future);
    loop {
        // Callbacks and signal handlers run outside of the runtime: they may take long, and make calls of their own.
        let stop = interpreter::detached(py, || driven.drive(next_stop(desk, future.as_mut())));
        match stop {
            Stop::Done(value) => return Ok(value),
            Stop::Asked(asked) => asked.run(py),
            Stop::Tick => py.check_signals()?,
        }
    }
}

async fn next_stop<T>(desk: &Desk, mut future: Pin<&mut (impl Future<Output = T> + Send)>) -> Stop<T> {
    let stop = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Stop::Done(value)),
        // Only the future itself asks, while it is polled.
        Poll::Pending => desk.take().map_or(Poll::Pending, |asked| Poll::Ready(Stop::Asked(asked))),
    });
    timeout(SIGNAL_TICK, stop).await.unwrap_or(Stop::Tick)
}
