//! Releases the interpreter and attaches to it again, on any thread, until the interpreter shuts down.
//!
//! Python ends a thread that attaches during the shutdown, in the middle of Rust code, and the process aborts. So no
//! thread attaches after the shutdown has started: `close` runs before it and waits for the threads that are about to
//! attach. A later thread gets a refusal, or waits until the process has ended.

use std::cell::Cell;
use std::hint::black_box;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::ffi::{PyObject, PyObject_Call};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::fork_guard;

/// Maximum time that the shutdown waits for threads that are about to attach.
const CLOSING_TIME: Duration = Duration::from_secs(2);

/// The process to which the counts below belong: a forked child starts from zero.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Number of threads that are about to attach, or that are attached for a short visit.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static CLOSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread shuts the interpreter down: it stays attached to the end.
    static CLOSES: Cell<bool> = const { Cell::new(false) };
}

/// Marks a thread that `close` waits for.
struct ThreadMark;

impl ThreadMark {
    /// None once the shutdown has started.
    fn take() -> Option<Self> {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        let pass = Self;
        (!CLOSED.load(Ordering::SeqCst) || CLOSES.get()).then_some(pass)
    }

    /// Like `take`, for a thread that cannot continue without one: it waits until the process has ended.
    fn take_or_stay() -> Self {
        loop {
            match Self::take() {
                Some(pass) => return pass,
                None => thread::park(),
            }
        }
    }
}

impl Drop for ThreadMark {
    fn drop(&mut self) {
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Runs `work` while other threads may use the interpreter.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    begin(py);
    let (value, pass) = py.detach(|| {
        // A panic also needs a pass to return.
        let value = catch_unwind(AssertUnwindSafe(work));
        (value, ThreadMark::take_or_stay())
    });
    drop(pass);
    value.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Stops a thread that Python unwinds, until the process has ended. Interpreters before 3.14 unwind daemon threads when
/// they shut down, and the Rust code below would abort the process.
struct ThreadParker;

impl Drop for ThreadParker {
    fn drop(&mut self) {
        // Only that unwinding gets here: a normal return forgets this value, and no panic crosses the interpreter.
        loop {
            thread::park();
        }
    }
}

/// Calls Python code that may take long enough for the interpreter to shut down meanwhile.
#[expect(unsafe_code, reason = "pyo3 declares that its function never unwinds, so `Stay` would not run")]
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    type Call = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    type Unwinding =
        unsafe extern "C-unwind" fn(*mut PyObject, *mut PyObject, *mut PyObject) -> *mut PyObject;
    // SAFETY: the types differ only in that the second may unwind, which is always correct for the caller.
    let call: Unwinding = unsafe { mem::transmute::<Call, Unwinding>(PyObject_Call) };
    let stay = ThreadParker;
    // SAFETY: the references prove that both are alive and that the interpreter is attached; a null pointer means no
    // keywords. `black_box` hides from the optimiser that this is the function declared as never unwinding.
    let value = unsafe { black_box(call)(function.as_ptr(), arguments.as_ptr(), std::ptr::null_mut()) };
    mem::forget(stay);
    // SAFETY: the value is a new reference, or null if an exception is set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), value) }
}

/// Runs `visit` with the interpreter attached, on a thread that Python did not start. None during the shutdown: then
/// the result is not needed.
pub(crate) fn visit<T>(visit: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _pass = ThreadMark::take()?;
    Python::try_attach(visit)
}

/// Runs `work` on a thread that Python did not start and that often attaches to the interpreter: Python keeps its thread
/// state between visits. Does nothing during the shutdown.
pub(crate) fn known(work: impl FnOnce() + Send) {
    let Some(pass) = ThreadMark::take() else { return };
    Python::try_attach(|py| {
        drop(pass);
        py.detach(work);
    });
}

/// Like [`visit`], for values being dropped: Python also drops values while an exception propagates, and nothing that
/// `work` calls may see or lose it.
pub(crate) fn visit_in_passing(work: impl FnOnce(Python<'_>)) {
    visit(|py| {
        let on_its_way = PyErr::take(py);
        work(py);
        if let Some(error) = on_its_way {
            error.restore(py);
        }
    });
}

/// Runs `work` with the interpreter attached, on a thread inside `detached`.
pub(crate) fn reattached<T>(work: impl FnOnce(Python<'_>) -> T) -> T {
    let pass = ThreadMark::take_or_stay();
    Python::attach(|py| {
        drop(pass);
        work(py)
    })
}

/// Whether the shutdown has started, so that no thread may attach any more.
pub(crate) fn is_closed() -> bool {
    PROCESS.load(Ordering::SeqCst) == fork_guard::id() && CLOSED.load(Ordering::SeqCst)
}

/// Call this before any other function of this file in a process. The interpreter is attached, so that two threads
/// never run it at once.
pub(crate) fn begin(_: Python<'_>) {
    let process = fork_guard::id();
    if PROCESS.swap(process, Ordering::SeqCst) != process {
        INSIDE.store(0, Ordering::SeqCst);
        CLOSED.store(false, Ordering::SeqCst);
    }
}

/// Registered with `atexit`: it runs before the interpreter shuts down.
#[pyfunction]
pub(crate) fn close(py: Python<'_>) {
    begin(py);
    CLOSES.set(true);
    CLOSED.store(true, Ordering::SeqCst);
    let started = Instant::now();
    py.detach(|| {
        while INSIDE.load(Ordering::SeqCst) > 0 && started.elapsed() < CLOSING_TIME {
            thread::sleep(Duration::from_millis(1));
        }
    });
}
