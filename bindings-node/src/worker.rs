//! The thread that does the network work of a JavaScript thread: one runtime on one thread, so that what a socket brings
//! is read, decoded and handed over without waking a third thread. It ends with its JavaScript thread: a worker that is
//! terminated takes its requests and streams along.

use std::cell::RefCell;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::Duration;

use napi::Env;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// How long blocking work (a look-up of a name, a file) may go on when the JavaScript thread ends.
const BLOCKING_GRACE: Duration = Duration::from_millis(100);
/// How long the end of a JavaScript thread waits for this one: a task may be in the middle of a long computation.
const END_GRACE: Duration = Duration::from_secs(1);

thread_local! {
    /// That of this JavaScript thread, once it has work.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

struct Worker {
    runtime: Handle,
    /// How much it works on.
    load: Arc<Load>,
}

#[derive(Default)]
struct Load {
    under_way: AtomicUsize,
    /// Whether anything has ended: the first request has more to prepare.
    is_warm: AtomicBool,
}

/// Where work begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the worker.
    Worker,
    /// On this thread where no other work is under way, so that the worker is not woken before there is something to read: for
    /// work that does little before it first waits.
    Here,
}

/// Runs work on the thread that works for this one. It is dropped if this thread ends first.
pub(crate) fn spawn(
    env: Env,
    place: Place,
    work: impl Future<Output = ()> + Send + 'static,
) -> napi::Result<()> {
    WORKER.with_borrow_mut(|worker| {
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(begin(env)?),
        };
        let is_alone =
            worker.load.is_warm.load(Ordering::Relaxed) && worker.load.under_way.load(Ordering::Relaxed) == 0;
        let work = worker.load.carry(work);
        if place == Place::Here && is_alone {
            Begun::begin(worker.runtime.clone(), Box::pin(work));
        } else {
            worker.runtime.spawn(work);
        }
        Ok(())
    })
}

impl Load {
    fn carry<F: Future<Output = ()>>(self: &Arc<Self>, work: F) -> impl Future<Output = ()> + use<F> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let carried = Carried(Arc::clone(self));
        async move {
            let _carried = carried;
            work.await;
        }
    }
}

/// Work that is not over.
struct Carried(Arc<Load>);

impl Drop for Carried {
    fn drop(&mut self) {
        self.0.is_warm.store(true, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Work that has begun on another thread than the worker. It becomes a task of the worker when it is woken.
struct Begun {
    runtime: Handle,
    state: Mutex<State>,
}

enum State {
    /// The thread that it began on is at it.
    Beginning {
        woken: bool,
    },
    Waiting(Work),
    /// The worker has it, or it is over.
    Passed,
}

impl Begun {
    fn begin(runtime: Handle, mut work: Work) {
        let begun = Arc::new(Self { runtime, state: Mutex::new(State::Beginning { woken: false }) });
        let waker = Waker::from(Arc::clone(&begun));
        let _entered = begun.runtime.enter();
        // As for a task: what panics is over.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(&mut Context::from_waker(&waker))));
        if !polled.is_ok_and(|polled| polled.is_pending()) {
            *begun.state() = State::Passed;
            return;
        }
        let mut state = begun.state();
        if let State::Beginning { woken: false } = *state {
            *state = State::Waiting(work);
        } else {
            *state = State::Passed;
            drop(state);
            begun.runtime.spawn(work);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Begun {
    fn wake(self: Arc<Self>) {
        let mut state = self.state();
        match &mut *state {
            State::Beginning { woken } => *woken = true,
            State::Waiting(_) => {
                let waiting = std::mem::replace(&mut *state, State::Passed);
                drop(state);
                if let State::Waiting(work) = waiting {
                    self.runtime.spawn(work);
                }
            }
            State::Passed => {}
        }
    }
}

fn begin(env: Env) -> napi::Result<Worker> {
    let failed =
        |error: std::io::Error| napi::Error::from_reason(format!("no thread for the client: {error}"));
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
    let worker = Worker { runtime: runtime.handle().clone(), load: Arc::default() };
    let (stop, stopped) = oneshot::channel::<Infallible>();
    let (ended, has_ended) = mpsc::channel::<Infallible>();
    let thread = thread::Builder::new().name("gatewright".to_owned()).spawn(move || {
        // Dropped at the end of this thread, however it ends.
        let _ended = ended;
        let _ = runtime.block_on(stopped);
        runtime.shutdown_timeout(BLOCKING_GRACE);
    });
    let thread = thread.map_err(failed)?;
    env.add_env_cleanup_hook((stop, has_ended, thread), |(stop, has_ended, thread)| {
        // A thread may be given another environment.
        WORKER.take();
        drop(stop);
        // A thread that is gone is joined: one that is detached while it ends may crash an old glibc.
        if has_ended.recv_timeout(END_GRACE) == Err(mpsc::RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    })?;
    Ok(worker)
}
