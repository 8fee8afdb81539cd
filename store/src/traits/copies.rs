//! Copies of stored responses. Their content is sealed; the store can't read it.

use std::sync::Arc;
use std::time::Duration;

use super::StoreFuture;

/// Maximum number of copies; the oldest are removed first.
pub(crate) const MAX_COPIES: u64 = 100_000;
/// Maximum size of all copies, in bytes.
pub(crate) const MAX_COPY_BYTES: u64 = 512 * 1024 * 1024;
/// How long a copy is kept.
pub const COPIES_KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// A copy, identified by the id of its API key and its own id.
#[derive(Debug, Clone)]
pub struct Copy {
    /// Id of the API key that owns the response.
    pub owner: Arc<str>,
    /// Id of the response.
    pub id: Arc<str>,
    /// Distinguishes it from other copies with the same id.
    pub stamp: i64,
    /// Milliseconds since 1970.
    pub kept: u64,
    /// The response and its items, sealed.
    pub content: Vec<u8>,
}

/// A change to the set of copies.
#[derive(Debug, Clone)]
pub enum CopyChange {
    /// It is stored, and replaces the one before.
    Kept(Copy),
    /// It is deleted.
    Removed {
        /// Id of the API key that owns the response.
        owner: Arc<str>,
        /// Id of the response.
        id: Arc<str>,
    },
}

impl CopyChange {
    pub(crate) fn place(&self) -> (&str, &str) {
        match self {
            Self::Kept(Copy { owner, id, .. }) | Self::Removed { owner, id } => (owner, id),
        }
    }
}

/// The store's copy, compared with the one that the caller knows.
#[derive(Debug, PartialEq, Eq)]
pub enum StoredCopy {
    /// There is none.
    None,
    /// The same copy.
    Same,
    /// Another copy.
    Other {
        /// Distinguishes it from others of the same response.
        stamp: i64,
        /// The response and its items, sealed.
        content: Vec<u8>,
    },
}

/// The store of copies.
pub trait CopyStore {
    /// An API key's copy of a response. `known`: the stamp of the copy that need not be read again.
    fn copy<'s>(&'s self, owner: &'s str, id: &'s str, known: Option<i64>) -> StoreFuture<'s, StoredCopy>;

    /// Applies changes; those to the same copy in order.
    fn change_copies<'s>(&'s self, changes: &'s [CopyChange]) -> StoreFuture<'s, ()>;

    /// Removes copies stored before a time, in milliseconds since 1970, and the oldest ones beyond the limits. `percent`:
    /// the share of the limits that the copies of one API key may take.
    fn forget_copies(&self, kept_before: u64, percent: u8) -> StoreFuture<'_, ()>;
}
