//! Durable data of the Gatewright gateway. [`DurableStore`] holds keys, their usage, which upstream stores a response, copies of
//! responses, answers by idempotency key, video tasks and their notifications, the records of generated files, who owns files and batches of providers, the gateways
//! that use it, and the configuration that they share: in an SQL database ([`SqlStore`]), which is in memory if the gateway
//! has neither a data folder nor a server. What a store didn't accept in time waits in a [`Spool`].
//!
//! The crate knows what is stored, and nothing of the requests that it comes from: no HTTP, no protocol, no configuration.
//! It has no stable interface: it is a part of the crate `gatewright-gateway`.

mod address;
mod file_name;
mod keys;
mod memory_replays;
mod pepper;
mod sealing;
mod spool;
mod sql;
mod store_health;
#[cfg(test)]
mod tests;
mod traits;
mod usage;

pub use self::address::{InvalidStoreUrl, StoreUrl};
pub use self::file_name::{FileKind, FileName, NoFileName, StoredFile};
pub use self::keys::{
    ADMIN_KEY, CONFIGURED_KEY, Digest, InvalidMember, IssuedKey, Key, KeyLimits, KeyUpdate, NewKey, Rotation,
    Scopes, null_is_default, random_key,
};
pub use self::memory_replays::MemoryReplays;
pub use self::pepper::{InvalidPepper, Pepper};
pub use self::sealing::{Sealer, UnsealError};
pub use self::spool::{ENDING_OF_LOCKS, EntryKind, RecoveredEntry, Spool, SpoolEntry};
pub use self::sql::SqlStore;
pub use self::store_health::StoreHealth;
pub use self::traits::{
    ANSWER_OVERHEAD, AddKeyError, AnswerQuota, Batch, COPIES_KEPT_FOR, ConfigStore, Copy, CopyChange,
    CopyStore, Delivery, DeliveryOutcome, DeliveryStore, DueDelivery, DurableStore, ExpiringFile, FileRecord,
    FileStore, FileTotals, KeyRecord, KeyStore, KeyedRequest, Lease, Lines, LocationChange, LocationStore,
    MAX_ANSWER_BYTES, MAX_ANSWERS, MAX_KEYS, MAX_LISTED, MAX_NOTICES, MAX_PLACES, MAX_REVISIONS, MAX_TASKS,
    NODE_KNOWN_FOR_S, NameTaken, NewConfig, NodeRecord, NodeStore, Notice, ObjectKind, ObjectLease,
    ObjectPage, ObjectStore, Output, ProviderObject, Quota, QuotaExceeded, ReplaySlot, ReplayStore,
    ResponseLocation, ResumedTask, SpentByKey, Status, StoreError, StoreFuture, StoredCopy, StoredRevision,
    StoringUpstream, Task, TaskError, TaskState, TaskStore, UpkeepStore, UsageStore, WRITER_KNOWN_FOR,
    last_write,
};
pub use self::usage::{
    Day, ResolvedUsageQuery, Rows, Spent, SpentSoFar, Totals, UsageKey, UsageQuery, UsageRow, amount,
    billionths,
};
