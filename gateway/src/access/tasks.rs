//! Video tasks for operators: lists them, without prompts and results.

use gatewright_store::{InvalidMember, Task, TaskState};
use serde::{Deserialize, Serialize};

use super::registry::{Registry, RegistryError};

/// A video task (section 3). Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VideoTask {
    /// The id of the task.
    pub id: String,
    /// The id of the API key of the task.
    pub key: String,
    /// The model, as the client named it.
    pub model: String,
    /// `pending`, `processing`, `completed` or `failed`.
    pub status: String,
    /// When it was submitted.
    pub created: u64,
    /// When it ended.
    pub ended: Option<u64>,
    /// Why it failed, as reported to the client.
    pub problem: Option<String>,
}

impl From<(Task, Option<u64>)> for VideoTask {
    fn from((task, ended): (Task, Option<u64>)) -> Self {
        let Task { id, owner, created, model, state } = task;
        let status = state.name().to_owned();
        let problem = if let TaskState::Failed(problem) = state { Some(problem.message) } else { None };
        Self { id, key: owner.to_string(), model: model.to_string(), status, created, ended, problem }
    }
}

impl Registry {
    /// The newest video tasks of all keys first, at most 10,000. `status`: only those with this status.
    pub async fn tasks(&self, status: Option<&str>) -> Result<Vec<VideoTask>, RegistryError> {
        if status.is_some_and(|status| !TaskState::NAMES.contains(&status)) {
            let message = format!("must be one of {}", TaskState::NAMES.join(", "));
            return Err(InvalidMember { member: "status", message }.into());
        }
        Ok(self.store().tasks(status).await?.into_iter().map(Into::into).collect())
    }
}
