//! Connections to one database.

use std::io;
use std::time::{Duration, Instant};

use gatewright_system::crash;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions, install_default_drivers};
use sqlx::error::DatabaseError;
use sqlx::{AnyConnection, AnyPool, ConnectOptions as _, Connection as _, Executor as _, Row as _};
use tokio::sync::{Mutex, OnceCell};
use url::Url;

use super::dialect::Dialect;
use super::migrations::migrate;
use crate::traits::StoreError;

/// The oldest version of Postgres that is tested and still maintained.
const OLDEST: u32 = 14;
/// Ends a transaction that an abandoned operation left open, and changes nothing otherwise. The driver forgets a `BEGIN` whose caller
/// leaves before it is answered (sqlx issue 4393): what later operations write would be in that transaction, unseen by others, and be
/// lost with it. If the transaction has failed, so does this, and the pool closes the connection.
const END_TRANSACTION: &str = "BEGIN; ROLLBACK";
/// How long an operation waits for a connection.
const PATIENCE: Duration = Duration::from_secs(4);

/// See the module. Connections are opened on first use.
#[derive(Debug)]
pub(super) struct Connections {
    dialect: Dialect,
    options: Box<AnyConnectOptions>,
    /// The statements run at the start of each connection.
    first: &'static str,
    pool: AnyPool,
    migrated: OnceCell<()>,
    /// When the last preparation failed, and why.
    failed: Mutex<Option<(Instant, StoreError)>>,
}

impl Connections {
    /// `most`: maximum number of connections. `first`: the statements run at the start of each.
    pub(super) fn new(
        dialect: Dialect,
        url: &Url,
        most: u32,
        first: &'static str,
    ) -> Result<Self, sqlx::Error> {
        install_default_drivers();
        let options = AnyConnectOptions::from_url(url)?;
        // By default, the pool checks each connection that is returned, and waits for as long as TCP does: a server that
        // vanished would block all connections.
        let pool = AnyPoolOptions::new()
            .max_connections(most)
            .acquire_timeout(PATIENCE)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    if !first.is_empty() {
                        connection.execute(first).await?;
                    }
                    Ok(())
                })
            })
            .after_release(move |connection, _| {
                Box::pin(async move {
                    if dialect == Dialect::Postgres {
                        let silent = |_| io::Error::from(io::ErrorKind::TimedOut);
                        let end = connection.execute(END_TRANSACTION);
                        tokio::time::timeout(PATIENCE, end).await.map_err(silent)??;
                    }
                    Ok(true)
                })
            })
            // SQLite ends a transaction itself if the disk is full. The driver then fails to end it, and never considers the
            // connection free again.
            .before_acquire(|connection, _| {
                let is_free = !connection.is_in_transaction();
                Box::pin(async move { Ok(is_free) })
            })
            .connect_lazy_with(options.clone());
        Ok(Self {
            dialect,
            options: Box::new(options),
            first,
            pool,
            migrated: OnceCell::new(),
            failed: Mutex::default(),
        })
    }

    /// The pool, once the database has the tables of this version. One caller at a time prepares it, and those waiting for a
    /// failed attempt share its error: one after the other, each would wait for a silent server just as long.
    pub(super) async fn ready(&self) -> Result<AnyPool, StoreError> {
        if !self.migrated.initialized() {
            let requested = Instant::now();
            let mut failed = self.failed.lock().await;
            if let Some((at, error)) = &*failed
                && *at >= requested
            {
                return Err(error.clone());
            }
            if let Err(error) = self.migrated.get_or_try_init(|| self.get_ready()).await {
                *failed = Some((Instant::now(), error.clone()));
                return Err(error);
            }
        }
        Ok(self.pool.clone())
    }

    /// A connection that isn't the pool's.
    pub(super) async fn connect(&self) -> Result<AnyConnection, StoreError> {
        Ok(self.options.connect().await?)
    }

    async fn get_ready(&self) -> Result<(), StoreError> {
        match self.dialect {
            Dialect::Sqlite => self.write_ahead().await?,
            Dialect::Postgres => {
                let version = sqlx::query("SELECT current_setting('server_version_num')");
                check_version(version.fetch_one(&self.pool).await?.try_get(0)?)?;
            }
        }
        migrate(&self.pool, self.dialect).await
    }

    /// Enables readers to read while another process writes. The setting persists in the file. If several processes set it
    /// at once, SQLite doesn't let any of them wait for another.
    async fn write_ahead(&self) -> Result<(), sqlx::Error> {
        let started = Instant::now();
        loop {
            match self.try_write_ahead().await {
                Err(error) if is_busy(&error) && started.elapsed() < PATIENCE => {
                    tokio::time::sleep(Duration::from_millis(rand::random_range(5..25))).await;
                }
                tried => return tried,
            }
        }
    }

    /// Uses a separate connection. If a connection can't be established, as with a damaged file, the pool retries and
    /// finally only reports that it has none.
    async fn try_write_ahead(&self) -> Result<(), sqlx::Error> {
        let mut connection = self.options.connect().await?;
        connection.execute(self.first).await?;
        let mode = sqlx::query("PRAGMA journal_mode").fetch_one(&mut connection).await?;
        if mode.try_get::<&str, _>(0)? != "wal" {
            crash::point();
            connection.execute("PRAGMA journal_mode = WAL").await?;
        }
        connection.close().await
    }

    pub(super) async fn close(&self) {
        self.pool.close().await;
    }
}

/// Whether another process has locked the file (`SQLITE_BUSY`).
fn is_busy(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(DatabaseError::code).is_some_and(|code| code == "5")
}

/// `version`: of Postgres, such as 150014 for 15.14.
fn check_version(version: &str) -> Result<(), StoreError> {
    let version = version.parse::<u32>().unwrap_or_default() / 10_000;
    if version < OLDEST {
        let message =
            format!("the server is Postgres {version}; the gateway needs Postgres {OLDEST} or later");
        return Err(StoreError::Refused(message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_server_is_rejected_with_the_required_version() {
        assert!(check_version("140000").is_ok() && check_version("180002").is_ok());
        let error = check_version("130020").expect_err("too old").to_string();
        assert!(error.contains("Postgres 13") && error.contains("14 or later"), "{error}");
    }
}
