//! The configuration that gateways share: a document. Each change of it is a revision.

use std::pin::Pin;

use super::StoreFuture;

/// How many of the newest revisions are kept.
pub const MAX_REVISIONS: usize = 100;

/// A revision, without its document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRevision {
    /// Starts at 1. A later revision has a higher number.
    pub number: u64,
    /// In seconds since 1970.
    pub made: u64,
    /// The name that its author gave.
    pub author: String,
    /// The earlier revision whose document it restores.
    pub repeats: Option<u64>,
}

/// A document that becomes a revision.
#[derive(Debug, Clone, Copy)]
pub struct NewConfig<'n> {
    /// In seconds since 1970.
    pub made: u64,
    /// The name that its author gave.
    pub author: &'n str,
    /// The earlier revision whose document it restores.
    pub repeats: Option<u64>,
    /// Its text.
    pub document: &'n str,
}

/// The store of the configuration that gateways share.
pub trait ConfigStore {
    /// Waits until another process may have added a revision. A store without notifications waits forever, so callers must
    /// also poll. At most one task waits at a time.
    fn config_changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    /// The revisions, the newest first, at most [`MAX_REVISIONS`].
    fn config_revisions(&self, most: usize) -> StoreFuture<'_, Vec<StoredRevision>>;

    /// The document of a revision, if it is still stored.
    fn config_document(&self, number: u64) -> StoreFuture<'_, Option<String>>;

    /// Adds a revision and removes the oldest ones beyond [`MAX_REVISIONS`]. Returns its number, or none if `after` is
    /// given and is not the newest revision; 0 means that there is no revision yet.
    fn add_config<'s>(&'s self, new: NewConfig<'s>, after: Option<u64>) -> StoreFuture<'s, Option<u64>>;
}
