//! The tokio runtimes of a process. A thread that waits for a blocking call drives its connections itself; a keeper
//! thread drives them while no call does. Work for event loops has its own thread. A forked child gets its own
//! runtimes. See decision 0045.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;

use crate::fork_guard;
use crate::interpreter;

/// How long no other thread must have driven before the keeper does: long enough not to interfere with a program that
/// reads a stream event by event, and short compared to any timeout.
const GRACE: Duration = Duration::from_millis(20);

/// A runtime without its own threads, and the state of who drives it.
pub(crate) struct Driven {
    runtime: Runtime,
    /// Number of threads that drive, or wait until they can, except the keeper.
    inside: AtomicUsize,
    /// How many times one of them has left.
    turns: AtomicU64,
    /// Whether the keeper drives.
    keeping: AtomicBool,
    /// Tells the keeper to stop driving.
    leave: Notify,
    /// Keep reading streams whose readers have gone away; the keeper calls them until they return false.
    caretakers: Mutex<Vec<Box<dyn Fn() -> bool + Send>>>,
}

/// One value per process.
struct PerProcess<T: 'static>(Mutex<Option<(u32, &'static T)>>);

impl<T> PerProcess<T> {
    const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The value of this process, created on first use.
    ///
    /// Both taking the lock and a fork by Python need the interpreter. So no other thread holds the lock during a fork,
    /// and a child never finds it locked. The parent's threads do not exist in the child. The child therefore makes
    /// another, and never drops the old one.
    fn get(&self, py: Python<'_>, start: impl FnOnce() -> std::io::Result<T>) -> PyResult<&'static T> {
        let process = fork_guard::ask();
        let mut current = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, made)) = current.filter(|(pid, _)| *pid == process) {
            return Ok(made);
        }
        interpreter::begin(py);
        let new = start().map_err(|error| {
            PyRuntimeError::new_err(format!("cannot start the client's threads: {error}"))
        })?;
        let made: &'static T = Box::leak(Box::new(new));
        *current = Some((process, made));
        Ok(made)
    }
}

/// The runtime of blocking calls.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Driven> {
    static CURRENT: PerProcess<Arc<Driven>> = PerProcess::new();
    Ok(&**CURRENT.get(py, Driven::start)?)
}

/// The runtime for event loops, on a separate thread: settling their futures runs Python code, which must not happen
/// on a thread that signals interrupt.
pub(crate) fn of_event_loops(py: Python<'_>) -> PyResult<&'static Runtime> {
    static CURRENT: PerProcess<Arc<Runtime>> = PerProcess::new();
    let started = CURRENT.get(py, || {
        let runtime = Arc::new(Builder::new_current_thread().thread_name("gatewright").enable_all().build()?);
        let driven = Arc::clone(&runtime);
        thread::Builder::new()
            .name("gatewright".to_owned())
            .spawn(move || interpreter::known(|| driven.block_on(pending::<()>())))?;
        Ok(runtime)
    });
    Ok(&**started?)
}

impl Driven {
    fn start() -> std::io::Result<Arc<Self>> {
        // Threads that resolve names end after ten idle seconds. None of them delays the end of the process.
        let runtime = Builder::new_current_thread().thread_name("gatewright").enable_all().build()?;
        let driven = Arc::new(Self {
            runtime,
            inside: AtomicUsize::new(0),
            turns: AtomicU64::new(0),
            keeping: AtomicBool::new(false),
            leave: Notify::new(),
            caretakers: Mutex::default(),
        });
        let keeper = Arc::clone(&driven);
        thread::Builder::new().name("gatewright".to_owned()).spawn(move || keeper.keep())?;
        Ok(driven)
    }

    /// For spawning tasks; they run whenever the runtime is driven.
    pub(crate) fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Drives all connections on this thread until `future` is done. If another thread already drives, this one waits
    /// and takes over when that one leaves. The interpreter must be released.
    pub(crate) fn drive<F: Future>(&self, future: F) -> F::Output {
        let _inside = Inside::of(self);
        self.runtime.block_on(future)
    }

    /// Makes the keeper call it every 20 ms, until it returns false.
    pub(crate) fn look_after(&self, caretaker: impl Fn() -> bool + Send + 'static) {
        self.caretakers().push(Box::new(caretaker));
        // The keeper may be waiting only for others to leave.
        if self.keeping.load(Ordering::SeqCst) {
            self.leave.notify_one();
        }
    }

    fn caretakers(&self) -> MutexGuard<'_, Vec<Box<dyn Fn() -> bool + Send>>> {
        self.caretakers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is anything left to take care of.
    fn take_care(&self) -> bool {
        let mut caretakers = self.caretakers();
        caretakers.retain(|goes_on| goes_on());
        !caretakers.is_empty()
    }

    /// The keeper's loop: it stops driving as soon as another thread wants to drive.
    fn keep(&self) -> ! {
        loop {
            let turns = self.turns.load(Ordering::SeqCst);
            thread::sleep(GRACE);
            self.take_care();
            if self.turns.load(Ordering::SeqCst) != turns {
                continue;
            }
            self.keeping.store(true, Ordering::SeqCst);
            // Threads that come after this check see that the keeper drives.
            if self.inside.load(Ordering::SeqCst) == 0 {
                self.runtime.block_on(async {
                    while tokio::time::timeout(GRACE, self.leave.notified()).await.is_err() {
                        if !self.take_care() {
                            self.leave.notified().await;
                            break;
                        }
                    }
                });
            }
            self.keeping.store(false, Ordering::SeqCst);
        }
    }
}

/// A thread that drives or waits for its turn.
struct Inside<'a>(&'a Driven);

impl<'a> Inside<'a> {
    fn of(driven: &'a Driven) -> Self {
        driven.inside.fetch_add(1, Ordering::SeqCst);
        if driven.keeping.load(Ordering::SeqCst) {
            driven.leave.notify_one();
        }
        Self(driven)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.turns.fetch_add(1, Ordering::SeqCst);
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}
