//! Files and batches that providers have: who owns them. Their content is sealed; the store can't read it.

use std::sync::Arc;
use std::time::Duration;

use super::StoreFuture;

/// Maximum number of files and batches.
pub(crate) const MAX_OBJECTS: usize = 100_000;
/// The same while the database is in memory.
pub(crate) const MAX_OBJECTS_IN_MEMORY: usize = 10_000;

/// What a provider has for an API key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A file.
    File,
    /// A batch of requests.
    Batch,
}

impl ObjectKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Batch => "batch",
        }
    }
}

/// A file or a batch, identified by the id of its API key and its own id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderObject {
    /// Id of the API key that owns it.
    pub owner: Arc<str>,
    /// As its provider named it.
    pub id: String,
    /// What it is.
    pub kind: ObjectKind,
    /// What it is for; empty for a batch.
    pub purpose: String,
    /// What is known of it, sealed.
    pub content: Vec<u8>,
}

/// The right to follow a batch until another process takes the next lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectLease {
    /// Id of the API key that owns the batch.
    pub owner: Arc<str>,
    /// Id of the batch.
    pub id: String,
    /// Distinguishes it from other leases of this batch.
    pub number: i64,
}

/// A page of a list, the newest first or the oldest first.
#[derive(Debug, Clone, Copy)]
pub struct ObjectPage<'a> {
    /// What is listed.
    pub kind: ObjectKind,
    /// Only files for this purpose.
    pub purpose: Option<&'a str>,
    /// The page starts after the object with this id.
    pub after: Option<&'a str>,
    /// Whether the oldest come first.
    pub ascending: bool,
    /// Maximum number of objects.
    pub limit: usize,
}

/// The store of files and batches.
pub trait ObjectStore {
    /// Adds an object. `expires`: after this time it is removed. `follows`: it is a batch in progress, and no other process follows it
    /// for this long. `percent`: the share of all objects that one API key may have. Returns whether there was room; an object that
    /// is already known stays as it is.
    fn add_object<'s>(
        &'s self,
        object: &'s ProviderObject,
        expires: Option<Duration>,
        follows: Option<Duration>,
        percent: u8,
    ) -> StoreFuture<'s, bool>;

    /// An object of an API key.
    fn object<'s>(
        &'s self,
        owner: &'s str,
        kind: ObjectKind,
        id: &'s str,
    ) -> StoreFuture<'s, Option<ProviderObject>>;

    /// A page of the objects of an API key. `None`: it has no object where the page starts.
    fn objects<'s>(
        &'s self,
        owner: &'s str,
        page: ObjectPage<'s>,
    ) -> StoreFuture<'s, Option<Vec<ProviderObject>>>;

    /// Removes an object of an API key. Returns whether there was one.
    fn remove_object<'s>(&'s self, owner: &'s str, kind: ObjectKind, id: &'s str) -> StoreFuture<'s, bool>;

    /// Records what is known of a batch in progress. `follows`: no other process follows it for this long; `None`: it has ended. False,
    /// and nothing changes, if the lease is no longer the latest, or if the batch has ended.
    fn update_batch<'s>(
        &'s self,
        lease: &'s ObjectLease,
        content: &'s [u8],
        follows: Option<Duration>,
    ) -> StoreFuture<'s, bool>;

    /// Takes over at most `most` batches that no process follows any more, for this long.
    fn resume_batches(
        &self,
        follows: Duration,
        most: usize,
    ) -> StoreFuture<'_, Vec<(ProviderObject, ObjectLease)>>;

    /// Removes objects that have expired.
    fn forget_objects(&self) -> StoreFuture<'_, ()>;
}
