//! What the gateway does around the store: it keeps stored responses and answers by idempotency key in memory too, and
//! serves while the store is away; generated files have their contents in a folder, a bucket or memory.

mod files;
mod history;
mod history_keeper;
mod objects;
mod replays;
#[cfg(test)]
mod spool_tests;

pub(crate) use self::files::{
    Contents, FileReservation, GeneratedFiles, KeyFileQuota, LIFETIME, OpenFile, PART_BYTES, PREFIX,
    missing_files, store_unavailable,
};
pub(crate) use self::history::{History, MAX_RESPONSE_BYTES, ResponseDocuments, ResponseRecord};
pub(crate) use self::history_keeper::{HistoryKeeper, PendingStore, StoreUnavailable};
pub(crate) use self::objects::{BatchRequests, MAX_RECORD_BYTES, ObjectRecord, ProviderObjects};
pub(crate) use self::replays::{
    IdempotentRequest, KEY_HEADER, REPLAYED_HEADER, ReplayDecision, Replays, RunningRequest,
};
