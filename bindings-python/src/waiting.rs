//! Blocks a Python thread until a call is done. Meanwhile it drives all connections, runs the callbacks that its own
//! call requests, and reacts to Ctrl-C.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use gatewright::read_ahead::{Now, ReadAhead, Slot, SocketGuard};
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::callbacks::{self, CallbackQueue, PendingCallback};
use crate::interpreter;
use crate::runtime::runtime;

/// Interval at which a blocked call checks for signals: well below the 200 ms that a person notices.
pub(crate) const SIGNAL_TICK: Duration = Duration::from_millis(50);

/// Why a thread stops driving.
enum Stop<T> {
    Done(T),
    Callback(PendingCallback),
    Tick,
}

/// Waits for `future` with the interpreter released. Signal handlers run every 50 ms. If one raises an exception
/// (Ctrl-C raises KeyboardInterrupt), the future is dropped, which ends the request. A panic of the future becomes an
/// error (Internal).
pub(crate) fn block_on<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, gatewright::Error>> + Send,
) -> PyResult<Result<T, gatewright::Error>> {
    let desk = CallbackQueue::default();
    wait(py, &desk, callbacks::for_thread(&desk, gatewright::contained(future)))
}

/// Like [`block_on`], for a future that has no callbacks and cannot panic.
pub(crate) fn wait_for<T: Send>(py: Python<'_>, future: impl Future<Output = T> + Send) -> PyResult<T> {
    wait(py, &CallbackQueue::default(), future)
}

/// Waits until a stream has something to take. If its reader watches the connection, this thread waits for that and
/// reads what arrives.
pub(crate) fn wait_for_stream<E: Send>(py: Python<'_>, stream: &ReadAhead<E>) -> PyResult<()> {
    loop {
        match interpreter::detached(py, || watch(stream)) {
            Some(Now::Silent) => py.check_signals()?,
            None | Some(Now::Elsewhere) => {
                wait_for(py, stream.readable())?;
                if stream.watched().is_none() {
                    return Ok(());
                }
            }
            Some(_) => return Ok(()),
        }
    }
}

/// Reads until there is something to take, or until it is time to check for signals (Silent). None if there is no
/// connection to watch.
fn watch<E: Send>(stream: &ReadAhead<E>) -> Option<Now> {
    let _attending = stream.attend();
    let started = Instant::now();
    let mut now = if stream.is_at_rest() { Now::Silent } else { stream.read_now(Waker::noop()) };
    while now == Now::Silent {
        let held = stream.watched()?.hold()?;
        let is_ready = started.elapsed() < SIGNAL_TICK && is_ready(&held);
        if is_ready {
            held.set_readable();
        }
        drop(held);
        // Also checks the time limits.
        now = stream.read_now(Waker::noop());
        if !is_ready {
            break;
        }
    }
    Some(now)
}

/// Waits until a connection has something to read, or room for a blocked write; false after 50 ms, or after a signal.
#[cfg(unix)]
fn is_ready(held: &SocketGuard) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let tick = Timespec { tv_sec: 0, tv_nsec: i64::from(SIGNAL_TICK.subsec_nanos()) };
    let wanted = if held.is_blocked() { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let mut awaited = [PollFd::new(held, wanted)];
    poll(&mut awaited, Some(&tick)).is_ok_and(|ready| ready > 0)
}

#[cfg(not(unix))]
fn is_ready(_: &SocketGuard) -> bool {
    true
}

fn wait<T: Send>(
    py: Python<'_>,
    desk: &CallbackQueue,
    future: impl Future<Output = T> + Send,
) -> PyResult<T> {
    let driven = runtime(py)?;
    let mut future = pin!(future);
    let mut slot = Slot::default();
    loop {
        // Callbacks and signal handlers run outside of the runtime: they may take long, and make calls themselves.
        let stop = interpreter::detached(py, || {
            let entered = driven.handle().enter();
            if let Some(stop) = watch_call(desk, future.as_mut(), &mut slot) {
                return stop;
            }
            drop(entered);
            driven.drive(next_stop(desk, future.as_mut()))
        });
        match stop {
            Stop::Done(value) => return Ok(value),
            Stop::Callback(callback) => callback.run(py),
            Stop::Tick => py.check_signals()?,
        }
    }
}

/// Polls a call as long as it waits for a connection that this thread watches; none once it waits for something else.
fn watch_call<T>(
    desk: &CallbackQueue,
    mut future: Pin<&mut (impl Future<Output = T> + Send)>,
    slot: &mut Slot,
) -> Option<Stop<T>> {
    let started = Instant::now();
    // Time limits are checked every 50 ms.
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = slot.watching(|| future.as_mut().poll(&mut context)) {
            return Some(Stop::Done(value));
        }
        if let Some(callback) = desk.take() {
            return Some(Stop::Callback(callback));
        }
        let held = slot.connection()?.hold()?;
        if started.elapsed() >= SIGNAL_TICK || !is_ready(&held) {
            return Some(Stop::Tick);
        }
        held.set_readable();
    }
}

async fn next_stop<T>(
    desk: &CallbackQueue,
    mut future: Pin<&mut (impl Future<Output = T> + Send)>,
) -> Stop<T> {
    let stop = poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Stop::Done(value)),
        // Only the future itself makes requests, while it is polled.
        Poll::Pending => desk.take().map_or(Poll::Pending, |callback| Poll::Ready(Stop::Callback(callback))),
    });
    timeout(SIGNAL_TICK, stop).await.unwrap_or(Stop::Tick)
}
