//! Durable data, independent of where it is stored: one trait per subject, which [`Store`] combines. Times are in seconds
//! since 1970. Each operation happens completely or not at all.

mod configs;
mod copies;
mod deliveries;
mod files;
mod keys;
mod leases;
mod nodes;
mod places;
mod replays;
mod tasks;
mod upkeep;
mod usage;

use std::fmt;
use std::pin::Pin;

pub(crate) use self::configs::{ConfigRevision, ConfigStore, MOST_REVISIONS, NewConfig};
pub(crate) use self::copies::{
    COPIES_KEPT_FOR, Copy, CopyChange, CopyStore, FoundCopy, MOST_COPIES, MOST_COPY_BYTES,
};
pub(crate) use self::deliveries::{
    Attempted, Delivery, DeliveryStore, Due, MOST_TOLD, Notice, Status, TOLD_FOR,
};
pub(crate) use self::files::{Expiring, FileRecord, FileStore, Taken};
pub(crate) use self::keys::{KeyRecord, KeyStore, MOST_KEYS, NotAdded};
pub(crate) use self::leases::Lease;
pub(crate) use self::nodes::{NODE_KNOWN_FOR_S, NodeRecord, NodeStore};
pub(crate) use self::places::PlaceStore;
pub(crate) use self::replays::{
    ANSWER_OVERHEAD, AnswerRoom, Keyed, MOST_ANSWER_BYTES, MOST_ANSWERS, ReplayStore, Reserved,
    UNANSWERED_FOR,
};
pub(crate) use self::tasks::{
    Full, KNOWN_FOR, MOST_ENDED, MOST_NOTICES, MOST_TASKS, Most, Output, Problem, Resumed, State, Task,
    TaskStore, read, written,
};
pub(crate) use self::upkeep::{Lines, UpkeepStore};
pub(crate) use self::usage::{Batch, SpentByKey, UsageStore, WRITER_KNOWN_FOR};

/// Maximum number of keys in a list, and of rows in a usage report.
pub(crate) const LONGEST_LIST: usize = 10_000;

/// A store operation in progress.
pub(crate) type Stored<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

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

/// All durable data.
pub(crate) trait Store:
    KeyStore
    + UsageStore
    + PlaceStore
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
