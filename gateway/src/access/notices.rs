//! Notifications for operators: lists them, and redelivers them.

use gatewright_store::{Delivery, InvalidMember, Status};
use serde::{Deserialize, Serialize};
use url::Url;

use super::registry::{Registry, RegistryError};

/// The notification of a finished video task (section 6). Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Notification {
    /// The id of the message, the same at each attempt.
    pub id: String,
    /// The task.
    pub task: String,
    /// The id of the API key of the task.
    pub key: String,
    /// Scheme, host and port of the receiver: the rest of its URL may contain secrets.
    pub receiver: String,
    /// `pending`, `delivered` or `dead` (given up).
    pub status: String,
    /// When the task ended.
    pub created: u64,
    /// Number of attempts.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub problem: Option<String>,
    /// When the next attempt is due.
    pub due: Option<u64>,
    /// When it was delivered or given up.
    pub ended: Option<u64>,
}

impl From<Delivery> for Notification {
    fn from(delivery: Delivery) -> Self {
        let Delivery { notice, status, created, attempts, problem, due, ended } = delivery;
        let receiver = Url::parse(&notice.url).map(|url| url.origin().ascii_serialization());
        Self {
            id: notice.id,
            task: notice.task,
            key: notice.owner,
            receiver: receiver.unwrap_or_default(),
            status: status.name().to_owned(),
            created,
            attempts,
            problem,
            due,
            ended,
        }
    }
}

impl Registry {
    /// The newest notifications first, at most 10,000. `status`: only those with this status.
    pub async fn notifications(&self, status: Option<&str>) -> Result<Vec<Notification>, RegistryError> {
        let status = match status.map(|name| (name, Status::of(name))) {
            None => None,
            Some((_, Some(status))) => Some(status),
            Some(_) => {
                let names = Status::ALL.map(Status::name).join(", ");
                let message = format!("must be one of {names}");
                return Err(InvalidMember { member: "status", message }.into());
            }
        };
        let listed = self.store().deliveries(status).await?;
        Ok(listed.into_iter().map(Into::into).collect())
    }

    /// Redelivers a notification as if it had never been attempted. A running gateway does so within seconds.
    pub async fn redeliver(&self, id: &str) -> Result<(), RegistryError> {
        if self.store().redeliver(id).await? {
            Ok(())
        } else {
            Err(RegistryError::NoNotification(id.to_owned()))
        }
    }
}
