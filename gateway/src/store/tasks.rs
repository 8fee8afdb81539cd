//! The video tasks and their states (section 3).

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::whole_seconds;
use crate::wire::ApiError;

/// Maximum number of stored tasks; the oldest finished ones are removed first.
const MOST_TASKS: usize = 1_000;
/// Maximum number of videos encoded at once: each takes a processor. Other tasks stay pending.
const MOST_ENCODINGS: usize = 2;
/// Maximum number of questions to providers at once.
const MOST_LOOK_UPS: usize = 16;
/// Maximum number of files fetched from providers at once.
const MOST_FETCHES: usize = 4;
/// Estimated time of a video at a provider that has made none yet.
const FIRST_ESTIMATE: Duration = Duration::from_mins(1);
/// Maximum number of models whose times are known.
const MOST_TIMES: usize = 1_000;
/// Estimated time to encode a second of video.
const PACE: Duration = Duration::from_millis(100);
/// Message of a task that the gateway did not finish.
pub(crate) const STOPPED: &str = "the gateway stopped before the video was ready";

/// The tasks.
pub(crate) struct Tasks {
    kept: Mutex<Kept>,
    places: Arc<Semaphore>,
    /// For questions to providers, and for their files.
    pub(crate) look_ups: Semaphore,
    pub(crate) fetches: Semaphore,
    work: TaskTracker,
    stopped: CancellationToken,
}

#[derive(Default)]
struct Kept {
    tasks: HashMap<String, Task>,
    /// Oldest first.
    order: VecDeque<String>,
    /// Seconds of video that are queued or being encoded.
    ahead_s: u32,
    /// What the last videos of models took at their providers.
    times: HashMap<Arc<str>, Duration>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            kept: Mutex::default(),
            places: Arc::new(Semaphore::new(MOST_ENCODINGS)),
            look_ups: Semaphore::new(MOST_LOOK_UPS),
            fetches: Semaphore::new(MOST_FETCHES),
            work: TaskTracker::new(),
            stopped: CancellationToken::new(),
        }
    }
}

/// One task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// Id of the API key that it belongs to.
    pub(crate) owner: Arc<str>,
    pub(crate) created: u64,
    /// As the client called it.
    pub(crate) model: Arc<str>,
    pub(crate) state: State,
}

/// A finished video (2.7).
#[derive(Debug, Clone)]
pub(crate) struct Output {
    /// Name of the file.
    pub(crate) file: String,
    pub(crate) duration_s: u32,
    pub(crate) size: (u32, u32),
    pub(crate) format: &'static str,
}

/// The states of section 3.
#[derive(Debug, Clone)]
pub(crate) enum State {
    /// Waits for a free encoder, or at its provider.
    Pending,
    Processing,
    Completed(Output),
    /// What went wrong, and the word for programs.
    Failed {
        message: String,
        code: String,
    },
}

/// The word for a failure without one of its own.
const GENERATION_FAILED: &str = "generation_failed";

impl State {
    /// A failure without a word of its own.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), code: GENERATION_FAILED.to_owned() }
    }

    fn is_final(&self) -> bool {
        matches!(self, Self::Completed(_) | Self::Failed { .. })
    }
}

impl Tasks {
    /// Stores a task. `hundredths`: how much of the store the tasks of its key may take. Errors: the store, or that part of
    /// it, is full of unfinished tasks.
    pub(crate) fn add(&self, task: Task, hundredths: u8) -> Result<(), ApiError> {
        let mut guard = self.lock();
        let kept = &mut *guard;
        let most = (MOST_TASKS * usize::from(hundredths) / 100).max(1);
        let is_own = |other: &Task| other.owner == task.owner;
        let full = |code, count: usize, whose: &str| {
            let message = format!("{count} video tasks{whose} are pending or processing");
            ApiError::new(code, message).retry_after(whole_seconds(kept.wait(0)))
        };
        let own = || kept.tasks.values().filter(|other| is_own(other)).count();
        let finished = if most < MOST_TASKS && own() >= most {
            let full = || full(&ErrorCode::RATE_LIMIT_EXCEEDED, most, " of this API key");
            Some(kept.finished(is_own).ok_or_else(full)?)
        } else if kept.order.len() >= MOST_TASKS {
            let full = || full(&ErrorCode::SERVER_IS_OVERLOADED, MOST_TASKS, "");
            Some(kept.finished(|_| true).ok_or_else(full)?)
        } else {
            None
        };
        if let Some(id) = finished.and_then(|place| kept.order.remove(place)) {
            kept.tasks.remove(&id);
        }
        kept.order.push_back(task.id.clone());
        kept.tasks.insert(task.id.clone(), task);
        Ok(())
    }

    /// Forgets a task that nobody was told of.
    pub(crate) fn remove(&self, id: &str) {
        let mut kept = self.lock();
        kept.tasks.remove(id);
        kept.order.retain(|other| other != id);
    }

    /// A provider has finished a video of a model.
    pub(crate) fn took(&self, model: &Arc<str>, time: Duration) {
        let mut kept = self.lock();
        let known = kept.times.len();
        match kept.times.get_mut(model) {
            Some(usual) => *usual = (*usual * 3 + time) / 4,
            None if known < MOST_TIMES => _ = kept.times.insert(Arc::clone(model), time),
            None => {}
        }
    }

    /// Estimated time of a video of a model at its provider: what the last ones took.
    pub(crate) fn usual_time(&self, model: &str) -> Duration {
        self.lock().times.get(model).copied().unwrap_or(FIRST_ESTIMATE)
    }

    /// Updates the state of a task. Returns `None` if the task has ended already.
    pub(crate) fn advance(&self, id: &str, state: State) -> Option<Task> {
        let mut kept = self.lock();
        let task = kept.tasks.get_mut(id).filter(|task| !task.state.is_final())?;
        task.state = state;
        Some(task.clone())
    }

    /// A task of an API key.
    pub(crate) fn get(&self, owner: &str, id: &str) -> Option<Task> {
        self.lock().tasks.get(id).filter(|task| *task.owner == *owner).cloned()
    }

    /// Estimated time until a video of this many seconds is encoded, including the queue before it.
    pub(crate) fn wait(&self, duration_s: u32) -> Duration {
        self.lock().wait(duration_s)
    }

    /// A free encoder, if there is one.
    pub(crate) fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Waits for a free encoder.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Runs a task. The gateway waits for it at shutdown.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.work.spawn(work);
    }

    /// Resolves when the gateway abandons unfinished tasks.
    pub(crate) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Resolves when all tasks have ended and all notifications are sent.
    pub(crate) async fn ended(&self) {
        self.work.close();
        self.work.wait().await;
    }

    /// Ends unfinished tasks as failed and returns their ids.
    pub(crate) async fn stop(&self) -> Vec<String> {
        let mut ended = Vec::new();
        for task in self.lock().tasks.values_mut().filter(|task| !task.state.is_final()) {
            task.state = State::failed(STOPPED);
            ended.push(task.id.clone());
        }
        self.stopped.cancel();
        self.ended().await;
        ended
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// The place of the oldest finished task of a kind.
    fn finished(&self, is_wanted: impl Fn(&Task) -> bool) -> Option<usize> {
        let is_finished = |task: &Task| task.state.is_final() && is_wanted(task);
        self.order.iter().position(|id| self.tasks.get(id).is_some_and(is_finished))
    }

    /// See [`Tasks::wait`].
    fn wait(&self, duration_s: u32) -> Duration {
        PACE * (self.ahead_s / u32::try_from(MOST_ENCODINGS).unwrap_or(1) + duration_s)
    }
}

/// A queued video: counts towards the queue until dropped.
pub(crate) struct Ahead {
    tasks: Arc<Tasks>,
    duration_s: u32,
}

impl Ahead {
    pub(crate) fn new(tasks: &Arc<Tasks>, duration_s: u32) -> Self {
        tasks.lock().ahead_s += duration_s;
        Self { tasks: Arc::clone(tasks), duration_s }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.tasks.lock().ahead_s -= self.duration_s;
    }
}
