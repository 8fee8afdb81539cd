//! Operations on a whole store, for operators.

use std::io::{self, BufRead};
use std::path::Path;

use super::StoreFuture;

/// Receives a line without its line break.
pub type Lines<'s> = &'s mut (dyn FnMut(&str) -> io::Result<()> + Send);

/// The upkeep of a durable store.
pub trait UpkeepStore {
    /// Migrates the tables to this version. Returns the version.
    fn migrate(&self) -> StoreFuture<'_, i64>;

    /// Checks for damage, and returns the findings.
    fn damage(&self) -> StoreFuture<'_, Vec<String>>;

    /// Writes all rows as lines of JSON, from one snapshot. Returns how many.
    fn export<'s>(&'s self, lines: Lines<'s>) -> StoreFuture<'s, u64>;

    /// Reads rows that another store has exported, all or none. Returns how many. Errors: this store is not
    /// empty.
    fn import<'s>(&'s self, lines: &'s mut (dyn BufRead + Send)) -> StoreFuture<'s, u64>;

    /// Copies the database, from one snapshot, into an empty file while others use it.
    fn copy_to<'s>(&'s self, file: &'s Path) -> StoreFuture<'s, ()>;

    /// Moves what the database keeps in other files (its write-ahead log) into the file, so that a copy of the file of a
    /// stopped gateway is complete.
    fn checkpoint(&self) -> StoreFuture<'_, ()>;

    /// All columns of all tables, each with its table: `keys.name`.
    #[cfg(test)]
    fn columns(&self) -> StoreFuture<'_, Vec<String>>;
}
