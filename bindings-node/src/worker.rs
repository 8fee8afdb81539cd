//! The thread that does the network work of a JavaScript thread: one runtime on one thread, so that what a socket brings
//! is read, decoded and handed over without waking a third thread. It ends with its JavaScript thread: a worker that is
//! terminated takes its requests and streams along.

use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::mpsc;
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
    static WORKER: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Runs work on the thread that works for this one. It is dropped if this thread ends first.
pub(crate) fn spawn(env: Env, work: impl Future<Output = ()> + Send + 'static) -> napi::Result<()> {
    WORKER.with_borrow_mut(|worker| {
        let worker = match worker {
            Some(worker) => worker,
            None => worker.insert(begin(env)?),
        };
        worker.spawn(work);
        Ok(())
    })
}

fn begin(env: Env) -> napi::Result<Handle> {
    let failed =
        |error: std::io::Error| napi::Error::from_reason(format!("no thread for the client: {error}"));
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(failed)?;
    let worker = runtime.handle().clone();
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
