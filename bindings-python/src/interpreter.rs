//! Leaving the interpreter and coming back to it, on any thread, up to its end.
//!
//! A thread that asks for the interpreter while it goes down is ended there and then, in the middle of Rust code,
//! which takes the process with it. So nobody asks once it has begun to: `close` runs before that, waits for those
//! who are on their way, and whoever comes later is told, or kept for the little time that is left.

use std::cell::Cell;
use std::hint::black_box;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::ffi::{PyObject, PyObject_Call};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

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
        // A panic, too, comes back only with a pass.
        let value = catch_unwind(AssertUnwindSafe(work));
        (value, Pass::take_or_stay())
    });
    drop(pass);
    value.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Keeps a thread that Python ends in the middle of its code where it is, until the process is over: interpreters before
/// 3.14 end daemon threads when they go down, by unwinding them, and the Rust code beneath would take the process along.
struct Stay;

impl Drop for Stay {
    fn drop(&mut self) {
        // Only that unwinding comes here: a call that returns forgets it, and no panic crosses the interpreter.
        loop {
            thread::park();
        }
    }
}

/// Calls Python code that may take its time, so that the interpreter may go down meanwhile.
#[expect(
    unsafe_code,
    reason = "pyo3 calls by a function that it says never unwinds, so that nothing could stay"
)]
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    type Call = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    type Unwinding =
        unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    // SAFETY: the two types differ in nothing but that the second may unwind, which any code has to reckon with.
    let call: Unwinding = unsafe { mem::transmute::<Call, Unwinding>(PyObject_Call) };
    let stay = Stay;
    // SAFETY: both are alive and the interpreter is attached, as the references show; no keywords is a null pointer.
    // The function is hidden from the optimiser, which might find out that it is the one that never unwinds.
    let value = unsafe { black_box(call)(function.as_ptr(), arguments.as_ptr(), std::ptr::null_mut()) };
    mem::forget(stay);
    // SAFETY: a new reference, or null where an exception is set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), value) }
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
