//! The records of generated files.

use std::sync::Arc;
use std::time::Duration;

use super::StoreFuture;
use crate::file_name::FileName;

/// A generated file, without its contents.
#[derive(Debug, Clone)]
pub struct FileRecord {
    /// Its name.
    pub name: FileName,
    /// The id of the API key that it belongs to.
    pub owner: Arc<str>,
    /// Its size.
    pub bytes: u64,
}

/// The number and size of several files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileTotals {
    /// How many.
    pub files: u64,
    /// Their total size.
    pub bytes: u64,
}

impl FileTotals {
    /// The total with more files.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        let (files, bytes) = (self.files.saturating_add(more.files), self.bytes.saturating_add(more.bytes));
        Self { files, bytes }
    }
}

/// A generated file, and when it expires.
#[derive(Debug, Clone)]
pub struct ExpiringFile {
    /// The file.
    pub file: FileRecord,
    /// Seconds until it expires; 0 if it has expired.
    pub left: u64,
}

/// The store of file records. An expired file is listed until it is removed. The store's clock counts, because the clocks of
/// the processes that use it differ.
pub trait FileStore {
    /// The clock of the store, in milliseconds since 1970.
    fn clock(&self) -> StoreFuture<'_, u64>;

    /// Adds files, which expire after `lifetime`: all of them, or none. A file that already exists is the same one, recorded
    /// again: it gets the new expiry. Returns the expiry, in seconds since 1970.
    fn add_files<'s>(&'s self, files: &'s [FileRecord], lifetime: Duration) -> StoreFuture<'s, u64>;

    /// The totals of all files, and of those of one API key.
    fn taken_by_files<'s>(&'s self, owner: &'s str) -> StoreFuture<'s, (FileTotals, FileTotals)>;

    /// The files that expire first, in order, at most `most`. `owner`: only those of this API key.
    fn first_to_expire<'s>(&'s self, owner: Option<&'s str>, most: u32)
    -> StoreFuture<'s, Vec<ExpiringFile>>;

    /// Whether a file is recorded.
    fn has_file<'s>(&'s self, name: &'s FileName) -> StoreFuture<'s, bool>;

    /// Removes the records of files.
    fn remove_files<'s>(&'s self, names: &'s [FileName]) -> StoreFuture<'s, ()>;
}
