//! Durable data. [`Store`] holds keys, their usage, responses and which upstream stores them, answers by idempotency key,
//! video tasks and their notifications, and the records of generated files: in an SQL database, or in memory if the gateway
//! has neither a data folder nor a server.

mod address;
mod bucket;
mod durable;
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

pub use self::address::{InvalidStoreUrl, StoreUrl};
pub use self::bucket::Bucket;
pub(crate) use self::bucket::place_of;
#[cfg(test)]
pub(crate) use self::durable::Stored;
pub(crate) use self::durable::{
    AnswerRoom, Attempted, Batch, ConfigRevision, Delivery, Due, Full, KeyRecord, LONGEST_LIST, Lease,
    MOST_KEYS, MOST_NOTICES, MOST_REVISIONS, MOST_TASKS, Most, NODE_KNOWN_FOR_S, NewConfig, NodeRecord,
    NotAdded, Notice, Output, Problem, Resumed, SpentByKey, State, Status, Store, StoreError, Task,
    UsageStore, WRITER_KNOWN_FOR,
};
pub(crate) use self::file_name::{FileName, KeptFile, Kind};
pub(crate) use self::files::{
    Contents, Files, LIFETIME, MostOfKey, OpenFile, PREFIX, Room, missing_files, untold,
};
pub(crate) use self::history::{Documents, History, Holder, Known, LONGEST};
pub(crate) use self::history_keeper::{HistoryKeeper, StoreUnavailable, Storing};
pub(crate) use self::memory::MemoryStore;
pub(crate) use self::replays::{Begun, IdempotentRequest, KEY_HEADER, REPLAYED_HEADER, Replays, UnderWay};
pub(crate) use self::sealing::Sealer;
pub(crate) use self::spool::{ENDING_OF_LOCKS, Spool};
pub(crate) use self::sql::SqlStore;
