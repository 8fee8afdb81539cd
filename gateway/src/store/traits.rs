//! Durable data, independent of where it is stored: one trait per subject, which [`DurableStore`] combines. Times are in seconds
//! since 1970. Each operation happens completely or not at all.

mod configs;
mod copies;
mod deliveries;
mod files;
mod keys;
mod leases;
mod nodes;
mod replays;
mod response_locations;
mod tasks;
mod upkeep;
mod usage;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

pub(crate) use self::configs::{ConfigStore, MAX_REVISIONS, NewConfig, StoredRevision};
pub(crate) use self::copies::{
    COPIES_KEPT_FOR, Copy, CopyChange, CopyStore, MAX_COPIES, MAX_COPY_BYTES, StoredCopy,
};
pub(crate) use self::deliveries::{
    Delivery, DeliveryOutcome, DeliveryStore, DueDelivery, MAX_TOLD, Notice, Status, TOLD_FOR,
};
pub(crate) use self::files::{ExpiringFile, FileRecord, FileStore, FileTotals};
pub(crate) use self::keys::{AddKeyError, KeyRecord, KeyStore, MAX_KEYS, NameTaken};
pub(crate) use self::leases::Lease;
pub(crate) use self::nodes::{NODE_KNOWN_FOR_S, NodeRecord, NodeStore};
pub(crate) use self::replays::{
    ANSWER_OVERHEAD, AnswerQuota, KeyedRequest, MAX_ANSWER_BYTES, MAX_ANSWERS, ReplaySlot, ReplayStore,
    UNANSWERED_FOR,
};
pub(crate) use self::response_locations::LocationStore;
pub(crate) use self::tasks::{
    KNOWN_FOR, MAX_ENDED, MAX_NOTICES, MAX_TASKS, Output, Quota, QuotaExceeded, ResumedTask, Task, TaskError,
    TaskState, TaskStore, read, written,
};
pub(crate) use self::upkeep::{Lines, UpkeepStore};
pub(crate) use self::usage::{Batch, SpentByKey, UsageStore, WRITER_KNOWN_FOR};

/// Maximum number of keys in a list, and of rows in a usage report.
pub(crate) const LONGEST_LIST: usize = 10_000;

/// How long a stopping gateway waits for its store. Its last writes run side by side.
pub(crate) const MAX_LAST_WRITE: Duration = Duration::from_secs(8);

/// A store operation in progress.
pub(crate) type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Why the store failed. The text is the database's own and contains no query values.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum StoreError {
    /// It may work later.
    #[error("the store failed: {0}")]
    Failed(String),
    /// It won't work until somebody changes the store or the configuration.
    #[error("the store cannot be used: {0}")]
    Refused(String),
}

/// A write of a stopping gateway, for [`MAX_LAST_WRITE`] at most. The write must be safe to cancel.
pub(crate) async fn last_write<T>(
    write: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let late = |_| StoreError::Failed(format!("no response within {MAX_LAST_WRITE:?}"));
    tokio::time::timeout(MAX_LAST_WRITE, write).await.map_err(late).flatten()
}

/// All durable data.
pub(crate) trait DurableStore:
    KeyStore
    + UsageStore
    + LocationStore
    + CopyStore
    + ReplayStore
    + TaskStore
    + DeliveryStore
    + FileStore
    + NodeStore
    + ConfigStore
    + UpkeepStore
    + Send
    + Sync
    + fmt::Debug
{
}
