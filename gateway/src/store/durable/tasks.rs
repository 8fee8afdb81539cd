//! Video tasks (section 3) as the store keeps them. Whoever works on one has its lease: until it runs out, nobody
//! else takes the task over, and once somebody has, the lease before changes nothing any more. So a task ends once, whoever
//! worked on it.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Stored;
use super::deliveries::Notice;
use super::leases::Lease;
use crate::store::file_name::KeptFile;

/// Maximum number of tasks in progress.
pub(crate) const MOST_TASKS: usize = 1_000;
/// Maximum number of tasks that have ended; the oldest are removed first.
pub(crate) const MOST_ENDED: usize = 100_000;
/// How long a task that has ended stays known.
pub(crate) const KNOWN_FOR: Duration = Duration::from_hours(7 * 24);
/// Maximum number of notifications that are promised or wait.
pub(crate) const MOST_NOTICES: usize = 10_000;

/// One task.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) id: String,
    /// Id of the API key that it belongs to.
    pub(crate) owner: Arc<str>,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// As the client called it.
    pub(crate) model: Arc<str>,
    pub(crate) state: State,
}

/// A finished video (2.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Output {
    pub(crate) file: KeptFile,
    pub(crate) duration_s: u32,
    pub(crate) size: (u32, u32),
}

/// The states of section 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for a free encoder, or at its provider.
    Pending,
    Processing,
    Completed(Output),
    Failed(Problem),
}

/// What went wrong, and the word for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) code: String,
}

/// The word for a failure without one of its own.
const GENERATION_FAILED: &str = "generation_failed";

impl State {
    /// The words for the states, in their order.
    pub(crate) const NAMES: [&'static str; 4] = ["pending", "processing", "completed", "failed"];

    /// The word of section 3.
    pub(crate) fn name(&self) -> &'static str {
        let [pending, processing, completed, failed] = Self::NAMES;
        match self {
            Self::Pending => pending,
            Self::Processing => processing,
            Self::Completed(_) => completed,
            Self::Failed(_) => failed,
        }
    }

    /// A failure without a word of its own.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(Problem { message: message.into(), code: GENERATION_FAILED.to_owned() })
    }
}

/// A task that nobody works on, taken over.
#[derive(Debug)]
pub(crate) struct Resumed {
    pub(crate) task: Task,
    pub(crate) lease: Lease,
    /// When it was taken over by the clock of the store, in milliseconds since 1970.
    pub(crate) now: u64,
    /// What is left to do, as it was kept.
    pub(crate) task_payload: String,
}

/// How many tasks there may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Of the key of the task.
    pub(crate) of_key: usize,
    pub(crate) of_all: usize,
    pub(crate) notices: usize,
    pub(crate) notices_of_key: usize,
    /// How much of the places of tasks that have ended those of its key may take, in hundredths.
    pub(crate) ended_hundredths: u8,
}

impl Most {
    /// How many of so many tasks that have ended stay when one of the same key is added: it takes the place of the oldest.
    pub(crate) fn ended_of_key(self, most: usize) -> usize {
        (most * usize::from(self.ended_hundredths) / 100).saturating_sub(1)
    }
}

/// Why a task was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// So many tasks of its key are in progress.
    OfKey(usize),
    /// So many tasks are in progress.
    OfAll(usize),
    /// So many notifications are promised or wait.
    Notices(usize),
    /// So many of them are of its key.
    NoticesOfKey(usize),
}

/// The store of tasks. What time it is, the store says: the clocks of the processes that use it differ. What is done with a lease
/// returns false if it is no longer the last one, the task has ended, or it is in no state that this one follows: nothing has
/// changed then. So a change that arrives late, after others of the same lease, does no harm.
pub(crate) trait TaskStore {
    /// Adds a task that is being submitted, with its first lease for some time; too many of its key that have ended give way.
    /// Nobody takes it over: if its lease runs out before it has a payload, it is forgotten. `announced`: whether somebody is
    /// told of its end.
    fn add_task<'s>(
        &'s self,
        task: &'s Task,
        announced: bool,
        most: Most,
        lasts: Duration,
    ) -> Stored<'s, Result<Lease, Full>>;

    /// Accepts a task: whoever takes it over continues with the payload. True if the same acceptance was kept before, and nothing since.
    fn accept_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s State,
        task_payload: &'s str,
    ) -> Stored<'s, bool>;

    /// Forgets a task that nobody was told of, whether or not its acceptance was kept.
    fn drop_task<'s>(&'s self, lease: &'s Lease) -> Stored<'s, ()>;

    /// A task of an API key.
    fn task<'s>(&'s self, owner: &'s str, id: &'s str) -> Stored<'s, Option<Task>>;

    /// Tasks of all API keys, without those that are being submitted, and when each ended, in seconds since 1970: the newest
    /// first, at most [`LONGEST_LIST`](super::LONGEST_LIST). `status`: only those of this word.
    fn tasks<'s>(&'s self, status: Option<&'s str>) -> Stored<'s, Vec<(Task, Option<u64>)>>;

    /// Changes the state of a task, which goes on: what is processing does not wait again. True if it is in that state already.
    fn advance_task<'s>(&'s self, lease: &'s Lease, state: &'s State) -> Stored<'s, bool>;

    /// Ends a task. In the same transaction, its notification begins to wait for its delivery.
    fn end_task<'s>(
        &'s self,
        lease: &'s Lease,
        state: &'s State,
        notice: Option<&'s Notice>,
    ) -> Stored<'s, bool>;

    /// Renews leases: from now on, they last so long. Returns those that are no longer the last ones, or whose tasks have ended.
    fn renew_leases<'s>(&'s self, leases: &'s [Lease], last: Duration) -> Stored<'s, Vec<Lease>>;

    /// Takes tasks over whose leases have run out, for some time, at most so many, the longest waiting first.
    fn resume_tasks(&self, last: Duration, most: usize) -> Stored<'_, Vec<Resumed>>;

    /// Forgets tasks that were never accepted and whose leases have run out, those that ended [`KNOWN_FOR`] ago, and the oldest
    /// of too many.
    fn forget_tasks(&self) -> Stored<'_, ()>;

    /// Makes all of them, and their leases, so much older, for tests.
    #[cfg(test)]
    fn age_tasks(&self, by: Duration) -> Stored<'_, ()>;
}

/// A state as the store keeps it: the word of section 3, and how the task ended.
pub(crate) fn written(state: &State) -> (&'static str, Option<String>) {
    let json = |outcome: Result<String, serde_json::Error>| Some(outcome.expect("plain values"));
    let outcome = match state {
        State::Pending | State::Processing => None,
        State::Completed(output) => json(serde_json::to_string(output)),
        State::Failed(problem) => json(serde_json::to_string(problem)),
    };
    (state.name(), outcome)
}

/// The state that was written. Errors: it is none.
pub(crate) fn read(status: &str, outcome: Option<&str>) -> Result<State, String> {
    let outcome = outcome.unwrap_or_default();
    let unreadable = |error| format!("the end of a task cannot be read: {error}");
    match status {
        "pending" => Ok(State::Pending),
        "processing" => Ok(State::Processing),
        "completed" => serde_json::from_str(outcome).map(State::Completed).map_err(unreadable),
        "failed" => serde_json::from_str(outcome).map(State::Failed).map_err(unreadable),
        other => Err(format!("a task has the unknown state {other:?}")),
    }
}
