//! The store in an SQL database, SQLite or Postgres. Several processes may use one database. Each subject has a file here,
//! with statements that both databases understand, and migrations for each of the two.

mod configs;
mod connections;
mod copies;
mod database;
mod deliveries;
mod dialect;
mod file;
mod files;
mod keys;
mod listening;
mod memory;
mod migrations;
mod nodes;
mod objects;
mod places;
mod replays;
mod server;
mod tables;
mod tasks;
mod upkeep;
mod usage;

use std::io;
use std::path::Path;
use std::time::Duration;

use gatewright_system::crash;
use sqlx::any::AnyRow;
use sqlx::{Any, AnyPool, Transaction};

use self::database::Database;
use self::dialect::Dialect;
#[cfg(test)]
pub(crate) use self::migrations::{LATEST, of_version};
use self::replays::RetainedAnswers;
use super::address::StoreUrl;
use super::traits::{DurableStore, StoreError, StoreFuture};

/// Time limit of an operation. A network that drops packets would block it for many minutes.
const MAX_CALL_TIME: Duration = Duration::from_secs(20);

/// A store in an SQL database, SQLite or Postgres. Several processes may use one database.
#[derive(Debug)]
pub struct SqlStore {
    database: Database,
    kept_since: RetainedAnswers,
}

impl DurableStore for SqlStore {}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::PoolTimedOut => {
                Self::Failed("the database does not respond, or has no free connection".to_owned())
            }
            error if is_refusal(&error) => Self::Refused(error.to_string()),
            error if is_damage(&error) => Self::Refused(format!(
                "{error}; restore a backup, or move it away to start with an empty one"
            )),
            other => Self::Failed(other.to_string()),
        }
    }
}

/// Whether Postgres rejects the user or password, doesn't have the database, or doesn't let the user create
/// tables.
fn is_refusal(error: &sqlx::Error) -> bool {
    has_code(error, &["28000", "28P01", "3D000", "42501"])
}

/// Whether SQLite finds its file damaged (`SQLITE_CORRUPT`), or not a database (`SQLITE_NOTADB`).
fn is_damage(error: &sqlx::Error) -> bool {
    has_code(error, &["11", "26"])
}

fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| codes.contains(&&*code))
}

/// An operation with a time limit.
fn stored<'s, T>(operation: impl Future<Output = Result<T, StoreError>> + Send + 's) -> StoreFuture<'s, T> {
    Box::pin(async {
        crash::point();
        let outcome = tokio::time::timeout(MAX_CALL_TIME, operation).await;
        crash::point();
        outcome.unwrap_or_else(|_| Err(StoreError::Failed("the database does not respond".to_owned())))
    })
}

/// The row of a statement that changes one and returns it. Reads all rows first: SQLite commits at the end of the statement,
/// and a reader that stops at the first row would miss a failed commit.
fn changed(rows: Vec<AnyRow>) -> Option<AnyRow> {
    rows.into_iter().next()
}

impl SqlStore {
    /// Opens a new SQLite database in memory, which is lost with the store. Connects on first use. Needs a Tokio runtime.
    pub fn in_memory() -> Self {
        Self { database: Database::in_memory(), kept_since: RetainedAnswers::default() }
    }

    /// Opens an SQLite file, which is created if it is missing, with access for its owner only. Connects on first use. Needs
    /// a Tokio runtime.
    pub fn in_file(file: &Path) -> io::Result<Self> {
        Ok(Self { database: Database::in_file(file)?, kept_since: RetainedAnswers::default() })
    }

    /// Opens a Postgres database. Connects on first use. Needs a Tokio runtime.
    pub fn at(url: &StoreUrl) -> Result<Self, StoreError> {
        Ok(Self { database: Database::at(url)?, kept_since: RetainedAnswers::default() })
    }

    /// Connections to the database, with the tables migrated to this version.
    pub(super) async fn connections(&self) -> Result<AnyPool, StoreError> {
        self.database.connections().await
    }

    /// Whether it takes the memory of this process.
    fn is_in_memory(&self) -> bool {
        matches!(self.database, Database::Memory(_))
    }

    fn dialect(&self) -> Dialect {
        self.database.dialect()
    }

    /// Commits a transaction.
    async fn commit(&self, writing: Transaction<'static, Any>) -> Result<(), StoreError> {
        crash::point();
        Ok(writing.commit().await?)
    }

    /// Begins to change several rows. In SQLite, no other connection writes meanwhile; in Postgres, others may.
    async fn begin_writing(&self) -> Result<Transaction<'static, Any>, StoreError> {
        self.database.begin_writing().await
    }
}

/// A count as databases store it.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count as it was stored.
fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
