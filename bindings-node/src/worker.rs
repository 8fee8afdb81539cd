//! The thread that does the network work of a JavaScript thread: one runtime on one thread, so that data from a socket
//! is read, decoded and handed over without waking a third thread. It ends with its JavaScript thread: a terminated
//! worker takes its requests and streams with it.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use napi::Env;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::inline_start::InlineTask;

/// How long blocking work (a DNS lookup, a file) may continue when the JavaScript thread ends.
const BLOCKING_GRACE: Duration = Duration::from_millis(100);
/// How long the end of a JavaScript thread waits for this one: a task may be in the middle of a long computation.
const END_GRACE: Duration = Duration::from_secs(1);

thread_local! {
    /// The worker of this JavaScript thread, once it has work.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

struct Worker {
    runtime: Handle,
    /// The amount of its work.
    load: Arc<Load>,
}

#[derive(Default)]
struct Load {
    under_way: AtomicUsize,
    /// Whether anything has finished yet: the first request has more to prepare.
    is_warm: AtomicBool,
}

/// Where work begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartThread {
    /// On the worker.
    Worker,
    /// On this thread if no other work is in progress, so that the worker is not woken before there is something to read:
    /// for work that does little before it first waits.
    Here,
}

/// Runs work on this thread's worker. It is dropped if this thread ends first.
pub(crate) fn spawn(
    env: Env,
    place: StartThread,
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
        if place == StartThread::Here && is_alone {
            InlineTask::begin(worker.runtime.clone(), Box::pin(work));
        } else {
            worker.runtime.spawn(work);
        }
        Ok(())
    })
}

impl Load {
    fn carry<F: Future<Output = ()>>(self: &Arc<Self>, work: F) -> impl Future<Output = ()> + use<F> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let carried = TrackedWork(Arc::clone(self));
        async move {
            let _carried = carried;
            work.await;
        }
    }
}

/// Work in progress.
struct TrackedWork(Arc<Load>);

impl Drop for TrackedWork {
    fn drop(&mut self) {
        self.0.is_warm.store(true, Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
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
        // A thread may get another environment.
        WORKER.take();
        drop(stop);
        // A thread that has ended is joined: a detached thread that is ending may crash an old glibc.
        if has_ended.recv_timeout(END_GRACE) == Err(mpsc::RecvTimeoutError::Disconnected) {
            let _ = thread.join();
        }
    })?;
    Ok(worker)
}
