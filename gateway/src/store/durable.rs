//! What must last: the keys, their usage, and where responses are stored, whatever holds them.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;

use super::history::{Change, Place};
use crate::keys::{Digest, Key};
use crate::usage::{Asked, Day, Rows, Spent, UsageRow};

/// Maximum number of keys that are not revoked: all are in memory.
pub(crate) const MOST_KEYS: usize = 100_000;
/// Maximum number of keys that a list shows, and of rows that a report of usage has.
pub(crate) const LONGEST_LIST: usize = 10_000;

/// An operation of the store that has not ended.
pub(crate) type Stored<'s, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 's>>;

/// Why the store failed. The text is the database's own, without any value of a query.
#[derive(Debug, thiserror::Error)]
#[error("the store failed: {0}")]
pub(crate) struct StoreError(pub(crate) String);

/// A key with what its secret is recognised by.
#[derive(Debug, Clone)]
pub(crate) struct KeyRecord {
    pub(crate) key: Key,
    pub(crate) digest: Digest,
    /// The digest of the secret before, and until when it works, in seconds since 1970.
    pub(crate) old: Option<(Digest, u64)>,
}

/// Why a key was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAdded {
    /// Another key in use has the name.
    NameTaken,
    /// There are [`MOST_KEYS`] already.
    Full,
}

/// What a key spent today and this month.
pub(crate) type SpentByKey = HashMap<String, (Spent, Spent)>;

/// The store of the places of responses.
pub(crate) trait Places {
    /// All places, the oldest first. Their number is bounded.
    fn places(&self) -> Stored<'_, Vec<Place>>;

    /// The place of one response of an API key.
    fn place<'s>(&'s self, owner: &'s str, id: &'s str) -> Stored<'s, Option<Place>>;

    /// Takes changes over, in their order.
    fn change_places<'s>(&'s self, changes: &'s [Change]) -> Stored<'s, ()>;
}

/// The store of keys and usage. Times are in seconds since 1970. Each operation happens wholly or not at all.
pub(crate) trait Store: Places + Send + Sync + fmt::Debug {
    /// A number that changes with every change of a key, in whatever process.
    fn revision(&self) -> Stored<'_, i64>;

    /// Keeps the check of the pepper if there is none yet. Returns the one that is kept.
    fn pepper_check(&self, check: Digest) -> Stored<'_, Digest>;

    /// The keys that are not revoked.
    fn keys_in_use(&self) -> Stored<'_, Vec<KeyRecord>>;

    /// The keys, the newest first, at most [`LONGEST_LIST`]. `revoked`: with those that are revoked.
    fn list_keys(&self, revoked: bool) -> Stored<'_, Vec<Key>>;

    /// The key with this id, or the one in use with this name.
    fn find_key<'s>(&'s self, name: &'s str) -> Stored<'s, Option<Key>>;

    fn add_key(&self, record: KeyRecord) -> Stored<'_, Result<(), NotAdded>>;

    /// Gives a key in use another secret; the present one works until `old_until`. Returns the key, if there is one.
    fn rotate_key<'s>(
        &'s self,
        id: &'s str,
        digest: Digest,
        now: u64,
        old_until: Option<u64>,
    ) -> Stored<'s, Option<Key>>;

    /// Revokes a key in use. Returns the key, if there is one.
    fn revoke_key<'s>(&'s self, id: &'s str, now: u64) -> Stored<'s, Option<Key>>;

    /// Adds usage to what is kept.
    fn add_usage<'s>(&'s self, rows: &'s Rows) -> Stored<'s, ()>;

    /// Reports usage, sorted, at most [`LONGEST_LIST`] rows and one more, which says that there are more.
    fn usage<'s>(&'s self, asked: &'s Asked) -> Stored<'s, Vec<UsageRow>>;

    /// What the keys spent on a day, and in its month until then.
    fn spent(&self, day: Day) -> Stored<'_, SpentByKey>;
}
