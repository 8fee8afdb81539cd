//! What outlives a request. Keys, their usage, and which upstream stores whose responses last, behind [`Store`]: in an
//! SQLite database, or in memory where the gateway has no data folder. Files, copies of responses, idempotency replays and
//! tasks are in memory, within limits.

mod durable;
mod files;
mod history;
mod memory;
mod places;
mod replays;
mod sqlite;
mod tasks;

pub(crate) use self::durable::{KeyRecord, LONGEST_LIST, MOST_KEYS, NotAdded, SpentByKey, Store, StoreError};
pub(crate) use self::files::{Files, Kind, LIFETIME, PREFIX, Room};
pub(crate) use self::history::{Documents, History, Holder, Known, LONGEST};
pub(crate) use self::memory::MemoryStore;
pub(crate) use self::places::{PlaceKeeper, Untold};
pub(crate) use self::replays::{Begun, REPLAYED_HEADER, Replays, UnderWay, fingerprint};
pub(crate) use self::sqlite::SqliteStore;
pub(crate) use self::tasks::{Ahead, Output, STOPPED, State, Task, Tasks};
