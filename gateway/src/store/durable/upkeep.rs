//! What operators do with a whole store.

use std::io::{self, BufRead};
use std::path::Path;

use super::Stored;

/// Takes a line without its end.
pub(crate) type Lines<'s> = &'s mut (dyn FnMut(&str) -> io::Result<()> + Send);

/// The upkeep of a store that lasts.
pub(crate) trait UpkeepStore {
    /// Brings the tables to this version. Returns the version.
    fn migrate(&self) -> Stored<'_, i64>;

    /// Looks for damage, and returns what there is.
    fn damage(&self) -> Stored<'_, Vec<String>>;

    /// Writes all rows as lines of JSON, as of one moment. Returns how many.
    fn export<'s>(&'s self, lines: Lines<'s>) -> Stored<'s, u64>;

    /// Reads rows that another store has written, all or none. Returns how many. Errors: this one is not empty.
    fn import<'s>(&'s self, lines: &'s mut (dyn BufRead + Send)) -> Stored<'s, u64>;

    /// Copies the database, as of one moment, into an empty file, while others use it.
    fn copy_to<'s>(&'s self, file: &'s Path) -> Stored<'s, ()>;

    /// Moves what the database keeps beside its file into the file, so that a copy of the file of a gateway that has stopped is whole.
    fn checkpoint(&self) -> Stored<'_, ()>;

    /// All columns of all tables, each with its table: `keys.name`.
    #[cfg(test)]
    fn columns(&self) -> Stored<'_, Vec<String>>;
}
