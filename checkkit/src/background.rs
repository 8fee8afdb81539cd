//! A run on its own thread, for callers in languages with a different concurrency model: they poll for the next event
//! instead of receiving callbacks.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gatewright::Error;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::run::{CheckKit, Progress, RunResult};

/// Threads that drive a run's connections.
const WORKERS: usize = 2;

/// A running or finished run. Dropping it cancels the run.
#[derive(Debug)]
pub struct BackgroundRun {
    events: Mutex<Receiver<Progress>>,
    finished: Arc<OnceLock<Result<RunResult, Error>>>,
    cancel: CancellationToken,
}

/// The result of waiting.
#[derive(Debug)]
pub enum Next {
    /// An event of the run.
    Event(Progress),
    /// No event yet.
    Pending,
    /// The run is over: see [`BackgroundRun::finished`].
    Done,
}

impl BackgroundRun {
    /// Starts a run. Errors: the system cannot start a thread.
    pub fn start(kit: CheckKit) -> io::Result<Self> {
        // Room for all events of a run (the plan, twice at most, the start and end of each cell, and each additional check), so that
        // sending never waits.
        let (sender, receiver) = sync_channel(2 + 2 * kit.cells().len() + kit.max_additional_checks());
        let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        let finished = Arc::new(OnceLock::new());
        let cancel = CancellationToken::new();
        let (outcome, cancelled) = (Arc::clone(&finished), cancel.clone());
        std::thread::Builder::new().name("gatewright-check".to_owned()).spawn(move || {
            // The run continues even without a listener.
            let send = |progress| drop(sender.try_send(progress));
            let run = async {
                #[cfg(debug_assertions)]
                gatewright::on_purpose::reach(gatewright::on_purpose::PanicPoint::Check);
                Ok(kit.run(&send, &cancelled).await)
            };
            let run = runtime.block_on(gatewright::contained(run));
            runtime.shutdown_background();
            // Set before the sender is dropped, since the drop signals that the result is available.
            let _ = outcome.set(run);
        })?;
        Ok(Self { events: Mutex::new(receiver), finished, cancel })
    }

    /// Waits for the next event, for at most `wait`.
    pub fn next(&self, wait: Duration) -> Next {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        match events.recv_timeout(wait) {
            Ok(event) => Next::Event(event),
            Err(RecvTimeoutError::Timeout) => Next::Pending,
            Err(RecvTimeoutError::Disconnected) => Next::Done,
        }
    }

    /// Cancels the run; its report is still complete.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// The result of a finished run. Errors (Internal): the kit itself failed.
    pub fn finished(&self) -> Option<Result<&RunResult, &Error>> {
        self.finished.get().map(Result::as_ref)
    }
}

impl Drop for BackgroundRun {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
