//! Video tasks (section 3) in the store. The process that works on a task holds its lease: no other one takes the task over before
//! the lease expires. Once one has, the old lease can no longer change anything, so a task ends only once.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::StoreFuture;
use super::deliveries::Notice;
use super::leases::Lease;
use crate::file_name::StoredFile;

/// Maximum number of tasks in progress.
pub const MAX_TASKS: usize = 1_000;
/// Maximum number of ended tasks; the oldest are removed first.
pub(crate) const MAX_ENDED: usize = 100_000;
/// How long an ended task is kept.
pub(crate) const KNOWN_FOR: Duration = Duration::from_hours(7 * 24);
/// Maximum number of notifications that are promised or waiting.
pub const MAX_NOTICES: usize = 10_000;

/// One task.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Id of the API key that owns it.
    pub owner: Arc<str>,
    /// Seconds since 1970.
    pub created: u64,
    /// As the client named it.
    pub model: Arc<str>,
    /// How far it is.
    pub state: TaskState,
}

/// A finished video (2.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The file with the video.
    pub file: StoredFile,
    /// Length of the video, in seconds.
    pub duration_s: u32,
    /// Width and height, in pixels.
    pub size: (u32, u32),
}

/// The states of section 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskState {
    /// Waiting for a free encoder, or at its provider.
    Pending,
    /// Being made.
    Processing,
    /// There is a video.
    Completed(Output),
    /// There will be none.
    Failed(TaskError),
}

/// What went wrong, with an error code for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskError {
    /// For people.
    pub message: String,
    /// For programs.
    pub code: String,
}

/// The code of a failure without a specific one.
const GENERATION_FAILED: &str = "generation_failed";

impl TaskState {
    /// The names of the states, in order.
    pub const NAMES: [&'static str; 4] = ["pending", "processing", "completed", "failed"];

    /// The name used in section 3.
    pub fn name(&self) -> &'static str {
        let [pending, processing, completed, failed] = Self::NAMES;
        match self {
            Self::Pending => pending,
            Self::Processing => processing,
            Self::Completed(_) => completed,
            Self::Failed(_) => failed,
        }
    }

    /// A failure without a specific code.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(TaskError { message: message.into(), code: GENERATION_FAILED.to_owned() })
    }
}

/// A task whose lease has expired, taken over.
#[derive(Debug)]
pub struct ResumedTask {
    /// The task.
    pub task: Task,
    /// The right to continue it.
    pub lease: Lease,
    /// When it was taken over by the store's clock, in milliseconds since 1970.
    pub now: u64,
    /// The remaining work, as it was stored.
    pub task_payload: String,
}

/// Limits on the number of tasks.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// For the task's key.
    pub of_key: usize,
    /// For the tasks of all keys.
    pub of_all: usize,
    /// For notifications that are promised or waiting.
    pub notices: usize,
    /// For those that belong to the task's key.
    pub notices_of_key: usize,
    /// The share of ended tasks that its key may keep, in percent.
    pub ended_percent: u8,
}

impl Quota {
    /// How many of at most `most` ended tasks of the key remain when another one is added: it replaces the oldest.
    pub(crate) fn ended_of_key(self, most: usize) -> usize {
        (most * usize::from(self.ended_percent) / 100).saturating_sub(1)
    }
}

/// Why a task was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaExceeded {
    /// The key has this many tasks in progress.
    OfKey(usize),
    /// This many tasks are in progress.
    OfAll(usize),
    /// This many notifications are promised or waiting.
    Notices(usize),
    /// This many of them belong to the key.
    NoticesOfKey(usize),
}

/// The store of tasks. The store's clock counts, because the clocks of the processes that use it differ. An operation on a
/// lease returns false, and changes nothing, if the lease is no longer the latest, if the task has ended, or if the new
/// state can't follow its current one. So a change that arrives late, after others with the same lease, does no harm.
pub trait TaskStore {
    /// Adds a task that is being submitted, with its first lease for some time; excess ended tasks of its key are evicted.
    /// No other process takes the task over: if its lease expires before it has a payload, it is removed. `announced`: whether a
    /// notification is sent when it ends.
    fn add_task<'s>(
        &'s self,
        task: &'s Task,
        announced: bool,
        most: Quota,
        lasts: Duration,
    ) -> StoreFuture<'s, Result<Lease, QuotaExceeded>>;

    /// Accepts a task: a process that takes it over continues with the payload. True if the same acceptance was recorded before and
    /// nothing has changed since.
    fn accept_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s TaskState,
        task_payload: &'s str,
    ) -> StoreFuture<'s, bool>;

    /// Removes a task that no client has learned of, whether or not its acceptance was recorded.
    fn drop_task<'s>(&'s self, lease: &'s Lease) -> StoreFuture<'s, ()>;

    /// A task of an API key.
    fn task<'s>(&'s self, owner: &'s str, id: &'s str) -> StoreFuture<'s, Option<Task>>;

    /// Tasks of all API keys, except those being submitted, and when each ended, in seconds since 1970: the newest first, at
    /// most [`MAX_LISTED`](super::MAX_LISTED). `status`: only those with this status.
    fn tasks<'s>(&'s self, status: Option<&'s str>) -> StoreFuture<'s, Vec<(Task, Option<u64>)>>;

    /// Changes the state of a task in progress: one that is processing never goes back to waiting. True if it is already in
    /// that state.
    fn advance_task<'s>(&'s self, lease: &'s Lease, state: &'s TaskState) -> StoreFuture<'s, bool>;

    /// Ends a task. In the same transaction, its notification is queued for delivery.
    fn end_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s TaskState,
        notice: Option<&'s Notice>,
    ) -> StoreFuture<'s, bool>;

    /// Renews leases: they now last this long. Returns those that are no longer the latest, or whose tasks have ended.
    fn renew_leases<'s>(&'s self, leases: &'s [Lease], last: Duration) -> StoreFuture<'s, Vec<Lease>>;

    /// Takes over at most `most` tasks whose leases have expired, for some time, the longest waiting first.
    fn resume_tasks(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<ResumedTask>>;

    /// Removes tasks that were never accepted and whose leases have expired, those that ended `KNOWN_FOR` ago, and the
    /// oldest ones beyond the limit.
    fn forget_tasks(&self) -> StoreFuture<'_, ()>;

    /// Makes all tasks and their leases older by this much, for tests.
    #[cfg(test)]
    fn age_tasks(&self, by: Duration) -> StoreFuture<'_, ()>;
}

/// A state as the store records it: the name used in section 3, and how the task ended.
pub(crate) fn written(state: &TaskState) -> (&'static str, Option<String>) {
    let json = |outcome: Result<String, serde_json::Error>| Some(outcome.expect("plain values"));
    let outcome = match state {
        TaskState::Pending | TaskState::Processing => None,
        TaskState::Completed(output) => json(serde_json::to_string(output)),
        TaskState::Failed(problem) => json(serde_json::to_string(problem)),
    };
    (state.name(), outcome)
}

/// Parses a recorded state. Errors: it is not one.
pub(crate) fn read(status: &str, outcome: Option<&str>) -> Result<TaskState, String> {
    let outcome = outcome.unwrap_or_default();
    let unreadable = |error| format!("the end of a task cannot be read: {error}");
    match status {
        "pending" => Ok(TaskState::Pending),
        "processing" => Ok(TaskState::Processing),
        "completed" => serde_json::from_str(outcome).map(TaskState::Completed).map_err(unreadable),
        "failed" => serde_json::from_str(outcome).map(TaskState::Failed).map_err(unreadable),
        other => Err(format!("a task has the unknown state {other:?}")),
    }
}
