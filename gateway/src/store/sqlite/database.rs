//! The file of the database. A program that has a file open goes on writing to it when it was moved or removed, where
//! nobody finds what it writes: this notices, and opens the file that is in its place.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use tokio::sync::OnceCell;

use crate::store::durable::StoreError;

/// How long an operation waits for another process that writes.
const BUSY: Duration = Duration::from_secs(2);
/// Maximum number of connections: one writes, the others read meanwhile.
const MOST_CONNECTIONS: u32 = 3;

/// See the module.
#[derive(Debug)]
pub(super) struct Database {
    file: PathBuf,
    open: Mutex<Arc<Open>>,
}

/// Connections to one file.
#[derive(Debug)]
struct Open {
    identity: Identity,
    pool: SqlitePool,
    migrated: OnceCell<()>,
}

/// Device and number of a file; none where files that are open cannot be moved.
type Identity = Option<(u64, u64)>;

impl Database {
    /// See [`SqliteStore::open`](super::SqliteStore::open).
    pub(super) fn open(file: &Path) -> io::Result<Self> {
        // SQLite gives its other files the permissions of this one.
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(file)?;
        let open = Mutex::new(Arc::new(Open::new(file, identity(file)?)));
        Ok(Self { file: file.to_path_buf(), open })
    }

    /// Connections to the file, with the tables of this version.
    pub(super) async fn pool(&self) -> Result<SqlitePool, StoreError> {
        let open = self.in_place()?;
        open.migrated.get_or_try_init(|| migrate(&open.pool)).await?;
        Ok(open.pool.clone())
    }

    /// The file that is in its place now.
    fn in_place(&self) -> Result<Arc<Open>, StoreError> {
        let found = identity(&self.file);
        let found = found.map_err(|error| StoreError(format!("the database file is away: {error}")))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.identity != found {
            tracing::warn!("another file is in the place of the database and is used from now on");
            let before = std::mem::replace(&mut *open, Arc::new(Open::new(&self.file, found)));
            tokio::spawn(async move { before.pool.close().await });
        }
        Ok(Arc::clone(&open))
    }
}

impl Open {
    fn new(file: &Path, identity: Identity) -> Self {
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            // A key that was revoked stays revoked after a power failure.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY);
        let pool = SqlitePoolOptions::new()
            .max_connections(MOST_CONNECTIONS)
            .acquire_timeout(2 * BUSY)
            .connect_lazy_with(options);
        Self { identity, pool, migrated: OnceCell::new() }
    }
}

#[cfg(unix)]
fn identity(file: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;

    file.metadata().map(|found| Some((found.dev(), found.ino())))
}

#[cfg(not(unix))]
fn identity(_: &Path) -> io::Result<Identity> {
    Ok(None)
}

async fn migrate(pool: &SqlitePool) -> Result<(), StoreError> {
    let first = include_str!("../../../migrations/sqlite/0001_keys_and_usage.sql");
    let second = include_str!("../../../migrations/sqlite/0002_places_of_responses.sql");
    let migrations = [(1, "keys and usage", first), (2, "places of responses", second)];
    let migrations = migrations.map(|(version, what, sql)| {
        Migration::new(version, what.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    Migrator::with_migrations(migrations.into())
        .run(pool)
        .await
        .map_err(|error| StoreError(error.to_string()))
}
