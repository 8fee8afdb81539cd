//! Works on stored tasks: renews the leases of those in progress here, takes over abandoned ones, and ends each once. A temporary
//! outage of the store delays the end of a task, but loses none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright::ErrorCode;
use gatewright_store::{
    DurableStore, Lease, MAX_NOTICES, MAX_TASKS, Notice, Quota, QuotaExceeded, ResumedTask, StoreError, Task,
    TaskState, last_write,
};
use gatewright_system::clock::{millis, whole_seconds};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::schedule::Schedule;
use crate::observe::Tally;
use crate::webhooks::Outbox;
use crate::wire::ApiError;

/// Message of a task that the gateway didn't finish.
pub(crate) const STOPPED: &str = "the gateway stopped before the video was ready";
/// Pause before retrying a failed change in the store.
const STORE_PAUSE: Duration = Duration::from_millis(500);
/// How long a submission waits for the store.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of attempts to delete an unannounced task if the store doesn't answer.
const TRIES: u32 = 10;
/// Maximum number of tasks taken over at once.
const MAX_RESUMED: usize = 64;
/// The `retry-after` if the store doesn't answer, or too many notifications are waiting.
const RETRY_AFTER_S: u64 = 10;

/// See the module.
pub(crate) struct TaskRunner {
    store: Arc<dyn DurableStore>,
    outbox: Arc<Outbox>,
    /// Whether tasks survive the process.
    lasting: bool,
    /// Duration of a lease. It is renewed three times as often.
    lease: Duration,
    leases: Mutex<HashMap<Lease, CancellationToken>>,
    /// Leases of tasks that weren't finished when the gateway stopped.
    unfinished: Mutex<Vec<Lease>>,
    /// Tasks whose end isn't in the store yet.
    ending: Tally,
    work: TaskTracker,
    stopped: CancellationToken,
    pub(crate) schedule: Arc<Schedule>,
}

/// A lease that this process renews until it is dropped.
pub(crate) struct LeaseGuard {
    task_runner: Arc<TaskRunner>,
    lease: Lease,
    /// The store's clock when it granted the lease, in milliseconds since 1970, and the local time of that.
    granted: (u64, Instant),
    lost: CancellationToken,
}

impl TaskRunner {
    /// `lease`: how long a task waits if its process has died.
    pub(crate) fn new(
        store: Arc<dyn DurableStore>,
        outbox: Arc<Outbox>,
        lasting: bool,
        lease: Duration,
    ) -> Self {
        let (leases, unfinished, ending, work, stopped, schedule) = Default::default();
        Self { store, outbox, lasting, lease, leases, unfinished, ending, work, stopped, schedule }
    }

    /// Stores a task that is being submitted. `percent`: the share of the slots that the tasks of its key may take, in
    /// percent. Errors: no slot is left, or the store doesn't answer.
    pub(crate) async fn add(
        self: &Arc<Self>,
        task: &Task,
        announced: bool,
        percent: u8,
    ) -> Result<LeaseGuard, ApiError> {
        let of_key = (MAX_TASKS * usize::from(percent) / 100).max(1);
        let most = Quota {
            of_key,
            of_all: MAX_TASKS,
            notices: MAX_NOTICES,
            notices_of_key: (MAX_NOTICES * usize::from(percent) / 100).max(1),
            ended_percent: percent,
        };
        let now = self.store.clock().await.map_err(|error| unanswered(&error))?;
        let granted = (now, Instant::now());
        let added = self.store.add_task(task, announced, most, self.lease).await;
        match added.map_err(|error| unanswered(&error))? {
            Ok(lease) => Ok(self.hold(lease, granted)),
            Err(full) => Err(self.refusal(full, percent)),
        }
    }

    fn refusal(&self, full: QuotaExceeded, percent: u8) -> ApiError {
        let wait = whole_seconds(self.schedule.wait(0));
        let (code, message, wait) = match full {
            QuotaExceeded::OfKey(count) if percent < 100 => {
                let message = format!("{count} video tasks of this API key are pending or processing");
                (&ErrorCode::RATE_LIMIT_EXCEEDED, message, wait)
            }
            QuotaExceeded::OfKey(count) | QuotaExceeded::OfAll(count) => {
                let message = format!("{count} video tasks are pending or processing");
                (&ErrorCode::SERVER_IS_OVERLOADED, message, wait)
            }
            QuotaExceeded::NoticesOfKey(count) if percent < 100 => {
                let message = format!("{count} notifications of this API key are pending already");
                (&ErrorCode::RATE_LIMIT_EXCEEDED, message, RETRY_AFTER_S)
            }
            QuotaExceeded::NoticesOfKey(count) | QuotaExceeded::Notices(count) => {
                let message = format!("{count} notifications are pending already");
                (&ErrorCode::SERVER_IS_OVERLOADED, message, RETRY_AFTER_S)
            }
        };
        ApiError::new(code, message).retry_after(wait)
    }

    /// A task of an API key. Errors: the store doesn't answer.
    pub(crate) async fn find(&self, owner: &str, id: &str) -> Result<Option<Task>, ApiError> {
        self.store.task(owner, id).await.map_err(|error| unanswered(&error))
    }

    /// Runs work that the gateway waits for when it stops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.work.spawn(work);
    }

    /// Resolves when the gateway abandons unfinished work.
    pub(crate) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Renews the leases of the tasks in progress here. Cancels work whose lease was taken over. Returns the time until the next
    /// renewal.
    pub(crate) async fn renew_leases(&self) -> Duration {
        let leases: Vec<Lease> = self.leases().keys().cloned().collect();
        if !leases.is_empty() {
            match self.store.renew_leases(&leases, self.lease).await {
                Ok(lost) => {
                    let held = self.leases();
                    for token in lost.iter().filter_map(|lease| held.get(lease)) {
                        token.cancel();
                    }
                }
                Err(error) => tracing::warn!("{error}: other gateways may take over video tasks"),
            }
        }
        (self.lease / 3).mul_f64(rand::random_range(0.8..1.0))
    }

    /// Number of tasks in progress here.
    pub(crate) fn under_way(&self) -> u64 {
        self.leases().len().try_into().unwrap_or(u64::MAX)
    }

    /// Number of tasks that have ended here but not in the store yet.
    pub(crate) fn ending(&self) -> usize {
        self.ending.now()
    }

    /// Takes over abandoned tasks.
    pub(crate) async fn resume(self: &Arc<Self>) -> Vec<(ResumedTask, LeaseGuard)> {
        let most = MAX_TASKS.saturating_sub(self.leases().len()).min(MAX_RESUMED);
        if !self.lasting || self.work.is_closed() || most == 0 {
            return Vec::new();
        }
        match self.store.resume_tasks(self.lease, most).await {
            Ok(resumed) => resumed
                .into_iter()
                .map(|one| {
                    let held = self.hold(one.lease.clone(), (one.now, Instant::now()));
                    (one, held)
                })
                .collect(),
            Err(error) => {
                tracing::warn!("{error}: cannot take over video tasks of other gateways");
                Vec::new()
            }
        }
    }

    /// Deletes tasks that ended long ago.
    pub(crate) async fn forget(&self) {
        if let Err(error) = self.store.forget_tasks().await {
            tracing::warn!("{error}: old video tasks are not removed");
        }
    }

    /// Resolves when no work is in progress. No new work starts then.
    pub(crate) async fn ended(&self) {
        self.work.close();
        self.work.wait().await;
    }

    /// Abandons unfinished work.
    pub(crate) async fn abandon(&self) {
        self.stopped.cancel();
        self.ended().await;
    }

    /// Gives up the leases of abandoned tasks. If tasks are durable, another gateway, or this one after a restart, resumes them.
    /// Otherwise they end as failed; returns their ids.
    pub(crate) async fn release(&self) -> Vec<String> {
        let unfinished = std::mem::take(&mut *self.unfinished.lock().unwrap_or_else(PoisonError::into_inner));
        if self.lasting {
            match last_write(self.store.renew_leases(&unfinished, Duration::ZERO)).await {
                Ok(_) if unfinished.is_empty() => {}
                Ok(_) => {
                    tracing::info!(
                        "{} video tasks will resume when a gateway uses this store",
                        unfinished.len()
                    );
                }
                Err(error) => tracing::warn!("{error}: video tasks will resume when their leases expire"),
            }
            return Vec::new();
        }
        for lease in &unfinished {
            let failed = TaskState::failed(STOPPED);
            if let Err(error) = self.store.end_task(lease, &failed, None).await {
                tracing::warn!(task = lease.id, "{error}");
            }
        }
        unfinished.into_iter().map(|lease| lease.id).collect()
    }

    fn hold(self: &Arc<Self>, lease: Lease, granted: (u64, Instant)) -> LeaseGuard {
        let lost = CancellationToken::new();
        self.leases().insert(lease.clone(), lost.clone());
        LeaseGuard { task_runner: Arc::clone(self), lease, granted, lost }
    }

    fn leases(&self) -> MutexGuard<'_, HashMap<Lease, CancellationToken>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Upper limit for waiting for a time from the store, which may be anything.
const MAX_WAIT: Duration = Duration::from_hours(365 * 24);

/// Adds a duration to a point in time without overflow.
fn after(now: Instant, time: Duration) -> Instant {
    now + time.min(MAX_WAIT)
}

/// The error while the store doesn't answer: a task that isn't stored isn't accepted.
fn unanswered(error: &StoreError) -> ApiError {
    tracing::warn!("{error}: a video task cannot be looked up");
    let message = "the gateway's store does not respond; try again later";
    ApiError::new(&ErrorCode::SERVER_IS_OVERLOADED, message).retry_after(RETRY_AFTER_S)
}

impl LeaseGuard {
    /// The store's clock, in milliseconds since 1970. All gateways share it, while their own clocks differ.
    pub(crate) fn now(&self) -> u64 {
        let (now, since) = self.granted;
        now.saturating_add(millis(since.elapsed()))
    }

    /// The local time for a time by the store's clock, in milliseconds since 1970: now if that has passed, and no later than
    /// after [`MAX_WAIT`].
    pub(crate) fn at(&self, time: u64) -> Instant {
        after(Instant::now(), Duration::from_millis(time.saturating_sub(self.now())))
    }

    /// Resolves when another process has taken the task over.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Accepts the task: a process that takes it over continues with the payload. Errors: the store doesn't answer in time, or
    /// the task is lost.
    pub(crate) async fn accept(&self, state: &TaskState, task_payload: &str) -> Result<(), ApiError> {
        let accepting = async {
            loop {
                match self.task_runner.store.accept_task(&self.lease, state, task_payload).await {
                    Ok(true) => return Ok(()),
                    Ok(false) => return Err(StoreError::Failed("the task has passed".to_owned())),
                    Err(_) => tokio::time::sleep(STORE_PAUSE).await,
                }
            }
        };
        let accepted = tokio::time::timeout(PATIENCE, accepting).await;
        let late = |_| StoreError::Failed(format!("no response within {PATIENCE:?}"));
        accepted.map_err(late).flatten().map_err(|error| unanswered(&error))
    }

    /// Deletes the task, which was never announced.
    pub(crate) async fn forget(&self) {
        for _ in 0..TRIES {
            match self.task_runner.store.drop_task(&self.lease).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(task = self.lease.id, "{error}: the task will be removed later"),
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Changes the state of the task, which continues even if the store fails.
    pub(crate) async fn advance(&self, state: &TaskState) {
        if let Err(error) = self.task_runner.store.advance_task(&self.lease, state).await {
            tracing::warn!(task = self.lease.id, "{error}: its stored state is out of date");
        }
    }

    /// Ends the task as soon as the store accepts it, and queues its notification. False if another process has taken it over.
    pub(crate) async fn end(&self, state: &TaskState, notice: Option<&Notice>) -> bool {
        let _waits = self.task_runner.ending.one();
        loop {
            match self.task_runner.store.end_task(&self.lease, state, notice).await {
                Ok(ended) => {
                    if ended && notice.is_some() {
                        self.task_runner.outbox.look();
                    }
                    return ended;
                }
                Err(error) => {
                    tracing::warn!(task = self.lease.id, "{error}: the end of the task is not stored yet");
                }
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Leaves the task unfinished: the gateway has stopped.
    pub(crate) fn leave(&self) {
        self.task_runner.unfinished.lock().unwrap_or_else(PoisonError::into_inner).push(self.lease.clone());
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.task_runner.leases().remove(&self.lease);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_delay_does_not_overflow() {
        let now = Instant::now();
        assert_eq!(after(now, Duration::from_millis(u64::MAX)), now + MAX_WAIT);
        assert_eq!(after(now, Duration::MAX), now + MAX_WAIT);
        assert_eq!(after(now, Duration::from_secs(1)), now + Duration::from_secs(1));
    }
}
