//! A run on a thread of its own, for callers whose language has another idea of concurrency: they ask for the next
//! event, and are not called back.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use gatewright::Error;
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use crate::run::{CheckKit, Finished, Progress};

/// Threads that drive a run's connections.
const WORKERS: usize = 2;

/// A run under way, or done. Dropping it cancels it.
#[derive(Debug)]
pub struct BackgroundRun {
    events: Mutex<Receiver<Progress>>,
    finished: Arc<OnceLock<Result<Finished, Error>>>,
    cancel: CancellationToken,
}

/// What came of waiting.
#[derive(Debug)]
pub enum Next {
    /// The run tells something.
    Event(Progress),
    /// Nothing yet.
    Pending,
    /// The run is over: see [`BackgroundRun::finished`].
    Done,
}

impl BackgroundRun {
    /// Begins a run. Errors: the system has no thread for it.
    pub fn start(kit: CheckKit) -> io::Result<Self> {
        // Room for everything a run tells: the plan, and of each cell its beginning and its end. So it never waits.
        let (sender, receiver) = sync_channel(1 + 2 * kit.cells().len());
        let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        let finished = Arc::new(OnceLock::new());
        let cancel = CancellationToken::new();
        let (outcome, cancelled) = (Arc::clone(&finished), cancel.clone());
        std::thread::Builder::new().name("gatewright-check".to_owned()).spawn(move || {
            // Nobody listening is no reason to stop.
            let tell = |progress| drop(sender.try_send(progress));
            let run = async {
                #[cfg(debug_assertions)]
                gatewright::on_purpose::reach(gatewright::on_purpose::Place::Check);
                Ok(kit.run(&tell, &cancelled).await)
            };
            let run = runtime.block_on(gatewright::contained(run));
            runtime.shutdown_background();
            // Set before the sender goes, which says that it is there.
            let _ = outcome.set(run);
        })?;
        Ok(Self { events: Mutex::new(receiver), finished, cancel })
    }

    /// The next event, waited for no longer than `wait`.
    pub fn next(&self, wait: Duration) -> Next {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        match events.recv_timeout(wait) {
            Ok(event) => Next::Event(event),
            Err(RecvTimeoutError::Timeout) => Next::Pending,
            Err(RecvTimeoutError::Disconnected) => Next::Done,
        }
    }

    /// Ends the run early; its report is whole all the same.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// What the run left behind, once it is done. Errors (Internal): the kit itself broke.
    pub fn finished(&self) -> Option<Result<&Finished, &Error>> {
        self.finished.get().map(Result::as_ref)
    }
}

impl Drop for BackgroundRun {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
