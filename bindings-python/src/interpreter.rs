//! Leaving the interpreter and coming back to it, on any thread, up to its end.
//!
//! A thread that asks for the interpreter while it goes down is ended there and then, in the middle of Rust code,
//! which takes the process with it. So nobody asks once it has begun to: `close` runs before that, waits for those
//! who are on their way, and whoever comes later is told, or kept for the little time that is left.

use std::cell::Cell;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// How long the end of the interpreter waits for threads on their way to it.
const CLOSING_TIME: Duration = Duration::from_secs(2);

/// The process that the counts below are of: a forked child begins anew.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Threads on their way to the interpreter, or on short visits to it.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The thread that brings the interpreter down: it is in it to the last.
    static CLOSES: Cell<bool> = const { Cell::new(false) };
}

/// A place among those that `close` waits for.
struct Pass;

impl Pass {
    /// None once the interpreter goes down.
    fn take() -> Option<Self> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let pass = Self;
        (!CLOSED.load(Ordering::SeqCst) || CLOSES.get()).then_some(pass)
    }

    /// As `take`, for a thread that cannot go on without: it waits out the end of the process.
    fn take_or_stay() -> Self {
        loop {
            match Self::take() {
                Some(pass) => return pass,
                None => thread::park(),
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `work` with the interpreter released to others.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    begin(py);
    let (value, pass) = py.detach(|| {
        let value = work();
        (value, Pass::take_or_stay())
    });
    drop(pass);
    value
}

/// Runs `visit` within the interpreter, on a thread that Python did not start. None where it goes down: then nobody
/// waits for what would be told.
pub(crate) fn visit<T>(visit: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _pass = Pass::take()?;
    Python::try_attach(visit)
}

/// Runs `work` within the interpreter, on a thread that is in `detached`.
pub(crate) fn reattached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    let pass = Pass::take_or_stay();
    Python::attach(|py| {
        drop(pass);
        work(py)
    })
}

/// Whether the interpreter goes down, so that no visit is let in any more.
pub(crate) fn is_closed() -> bool {
    PROCESS.load(Ordering::SeqCst) == process::id() && CLOSED.load(Ordering::SeqCst)
}

/// To be called before anything is left or visited in this process. With the interpreter attached, so that no two
/// threads are here at once.
pub(crate) fn begin(_: Python<'_>) {
    let process = process::id();
    if PROCESS.swap(process, Ordering::SeqCst) != process {
        INSIDE.store(0, Ordering::SeqCst);
        CLOSED.store(false, Ordering::SeqCst);
    }
}

/// Registered with `atexit`, whose functions run when the interpreter is still whole.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    begin(py);
    CLOSES.set(true);
    CLOSED.store(true, Ordering::SeqCst);
    let begun = Instant::now();
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 && begun.elapsed() < CLOSING_TIME {
            thread::sleep(Duration::from_millis(1));
        }
    });
}
