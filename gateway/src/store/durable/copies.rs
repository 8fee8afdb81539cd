//! Copies of stored responses. Their content is sealed: the store does not read it.

use std::sync::Arc;
use std::time::Duration;

use super::Stored;

/// Maximum number of copies; the oldest are removed first.
pub(crate) const MOST_COPIES: u64 = 100_000;
/// Maximum size of all copies, in bytes.
pub(crate) const MOST_COPY_BYTES: u64 = 512 * 1024 * 1024;
/// How long a copy stays.
pub(crate) const COPIES_KEPT_FOR: Duration = Duration::from_hours(30 * 24);

/// A copy, by the id of its API key and its own.
#[derive(Debug, Clone)]
pub(crate) struct Copy {
    pub(crate) owner: Arc<str>,
    pub(crate) id: Arc<str>,
    /// Tells it from others of the same id.
    pub(crate) stamp: i64,
    /// Milliseconds since 1970.
    pub(crate) kept: u64,
    pub(crate) content: Vec<u8>,
}

/// A change of what copies there are.
#[derive(Debug, Clone)]
pub(crate) enum CopyChange {
    Kept(Copy),
    Removed { owner: Arc<str>, id: Arc<str> },
}

impl CopyChange {
    pub(crate) fn place(&self) -> (&str, &str) {
        match self {
            Self::Kept(Copy { owner, id, .. }) | Self::Removed { owner, id } => (owner, id),
        }
    }
}

/// What the store has in place of a copy that somebody knows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundCopy {
    None,
    /// The very same.
    Same,
    Other {
        stamp: i64,
        content: Vec<u8>,
    },
}

/// The store of copies.
pub(crate) trait CopyStore {
    /// The copy of a response of an API key. `known`: the stamp of the one that need not be read again.
    fn copy<'s>(&'s self, owner: &'s str, id: &'s str, known: Option<i64>) -> Stored<'s, FoundCopy>;

    /// Takes changes over: of each copy, in their order.
    fn change_copies<'s>(&'s self, changes: &'s [CopyChange]) -> Stored<'s, ()>;

    /// Forgets copies that were kept before a time, in milliseconds since 1970, and the oldest of too many. `hundredths`: how much
    /// of the room those of one API key may take.
    fn forget_copies(&self, kept_before: u64, hundredths: u8) -> Stored<'_, ()>;
}
