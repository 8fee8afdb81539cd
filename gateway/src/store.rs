//! Durable data. [`DurableStore`] holds keys, their usage, responses and which upstream stores them, answers by idempotency key,
//! video tasks and their notifications, and the records of generated files: in an SQL database, or in memory if the gateway
//! has neither a data folder nor a server.

mod address;
mod bucket;
mod file_name;
mod files;
mod history;
mod history_keeper;
mod memory;
mod replays;
mod sealing;
#[cfg(test)]
pub(crate) mod small_disk;
mod spool;
mod sql;
mod store_health;
#[cfg(test)]
mod tests;
mod traits;

pub use self::address::{InvalidStoreUrl, StoreUrl};
pub use self::bucket::Bucket;
pub(crate) use self::bucket::place_of;
pub(crate) use self::file_name::{FileKind, FileName, StoredFile};
pub(crate) use self::files::{
    Contents, FileReservation, GeneratedFiles, KeyFileQuota, LIFETIME, OpenFile, PART_BYTES, PREFIX,
    missing_files, untold,
};
pub(crate) use self::history::{History, LONGEST, ResponseDocuments, ResponseRecord, StoringUpstream};
pub(crate) use self::history_keeper::{HistoryKeeper, PendingStore, StoreUnavailable};
pub(crate) use self::memory::MemoryStore;
pub(crate) use self::replays::{
    IdempotentRequest, KEY_HEADER, REPLAYED_HEADER, ReplayDecision, Replays, RunningRequest,
};
pub(crate) use self::sealing::Sealer;
pub(crate) use self::spool::{ENDING_OF_LOCKS, Spool};
pub(crate) use self::sql::SqlStore;
#[cfg(test)]
pub(crate) use self::traits::StoreFuture;
pub(crate) use self::traits::{
    AddKeyError, AnswerQuota, Batch, Delivery, DeliveryOutcome, DueDelivery, DurableStore, KeyRecord,
    LONGEST_LIST, Lease, MAX_KEYS, MAX_NOTICES, MAX_REVISIONS, MAX_TASKS, NODE_KNOWN_FOR_S, NameTaken,
    NewConfig, NodeRecord, Notice, Output, Quota, QuotaExceeded, ResumedTask, SpentByKey, Status, StoreError,
    StoredRevision, Task, TaskError, TaskState, UsageStore, WRITER_KNOWN_FOR, last_write,
};
