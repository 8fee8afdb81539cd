//! Durable data, independent of where it is stored: one trait per subject, which [`DurableStore`] combines. Times are in seconds
//! since 1970. Each operation happens completely or not at all.

mod configs;
mod copies;
mod deliveries;
mod files;
mod keys;
mod leases;
mod nodes;
mod objects;
mod replays;
mod response_locations;
mod tasks;
mod upkeep;
mod usage;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

pub use self::configs::{ConfigStore, MAX_REVISIONS, NewConfig, StoredRevision};
pub use self::copies::{COPIES_KEPT_FOR, Copy, CopyChange, CopyStore, StoredCopy};
pub(crate) use self::copies::{MAX_COPIES, MAX_COPY_BYTES};
pub(crate) use self::deliveries::{DELIVERY_RETENTION, MAX_DELIVERIES};
pub use self::deliveries::{Delivery, DeliveryOutcome, DeliveryStore, DueDelivery, Notice, Status};
pub use self::files::{ExpiringFile, FileRecord, FileStore, FileTotals};
pub use self::keys::{AddKeyError, KeyRecord, KeyStore, MAX_KEYS, NameTaken};
pub use self::leases::Lease;
pub use self::nodes::{NODE_KNOWN_FOR_S, NodeRecord, NodeStore};
pub(crate) use self::objects::{MAX_OBJECTS, MAX_OBJECTS_IN_MEMORY};
pub use self::objects::{ObjectKind, ObjectLease, ObjectPage, ObjectStore, ProviderObject};
pub(crate) use self::replays::UNANSWERED_FOR;
pub use self::replays::{
    ANSWER_OVERHEAD, AnswerQuota, KeyedRequest, MAX_ANSWER_BYTES, MAX_ANSWERS, ReplaySlot, ReplayStore,
};
pub use self::response_locations::{
    LocationChange, LocationStore, MAX_PLACES, ResponseLocation, StoringUpstream,
};
pub(crate) use self::tasks::{KNOWN_FOR, MAX_ENDED, read, written};
pub use self::tasks::{
    MAX_NOTICES, MAX_TASKS, Output, Quota, QuotaExceeded, ResumedTask, Task, TaskError, TaskState, TaskStore,
};
pub use self::upkeep::{Lines, UpkeepStore};
pub use self::usage::{Batch, SpentByKey, UsageStore, WRITER_KNOWN_FOR};

/// Maximum number of keys in a list, and of rows in a usage report.
pub const MAX_LISTED: usize = 10_000;

/// How long a stopping gateway waits for its store. Its last writes run side by side.
pub(crate) const MAX_LAST_WRITE: Duration = Duration::from_secs(8);

/// A store operation in progress.
pub type StoreFuture<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Why the store failed. The text is the database's own and contains no query values.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// It may work later.
    #[error("the store failed: {0}")]
    Failed(String),
    /// It won't work until an operator changes the store or the configuration.
    #[error("the store cannot be used: {0}")]
    Refused(String),
}

/// A write of a stopping gateway, for eight seconds at most. The write must be safe to cancel.
pub async fn last_write<T>(write: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    let late = |_| StoreError::Failed(format!("no response within {MAX_LAST_WRITE:?}"));
    tokio::time::timeout(MAX_LAST_WRITE, write).await.map_err(late).flatten()
}

/// All durable data.
pub trait DurableStore:
    KeyStore
    + UsageStore
    + LocationStore
    + CopyStore
    + ReplayStore
    + TaskStore
    + DeliveryStore
    + FileStore
    + NodeStore
    + ObjectStore
    + ConfigStore
    + UpkeepStore
    + Send
    + Sync
    + fmt::Debug
{
}
