//! A database in memory, until the process ends.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::{AnyConnection, AnyPool};
use tokio::sync::OnceCell;
use url::Url;

use super::connections::Connections;
use super::dialect::Dialect;
use crate::traits::StoreError;

/// Connections share what they cache, and lock each other's tables without waiting: one at a time uses the database.
const MAX_CONNECTIONS: u32 = 1;
/// Pages of 4 KiB: the database takes at most 256 MiB.
const FIRST: &str = "PRAGMA max_page_count = 65536";

/// Tells the databases of one process apart.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// See the module.
#[derive(Debug)]
pub(super) struct MemoryDatabase {
    connections: Connections,
    /// SQLite drops the database with its last connection, and the pool closes those that fail.
    anchor: OnceCell<Mutex<AnyConnection>>,
}

impl MemoryDatabase {
    pub(super) fn new() -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let url = format!("sqlite:file:gatewright-{number}?mode=memory");
        let url = Url::parse(&url).expect("a number makes no invalid URL");
        let connections = Connections::new(Dialect::Sqlite, &url, MAX_CONNECTIONS, FIRST);
        Self { connections: connections.expect("the URL is one of SQLite"), anchor: OnceCell::new() }
    }

    /// Connections to the database, with its tables.
    pub(super) async fn connections(&self) -> Result<AnyPool, StoreError> {
        self.anchor.get_or_try_init(async || self.connections.connect().await.map(Mutex::new)).await?;
        self.connections.ready().await
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Connection as _;

    use crate::keys::{Digest, NewKey};
    use crate::traits::{KeyRecord, KeyStore as _};
    use crate::{SqlStore, StoreError};

    fn record(name: &str) -> KeyRecord {
        let mut digest = [0; 32];
        digest[..name.len()].copy_from_slice(name.as_bytes());
        KeyRecord { key: NewKey::new(name).issue(1_790_000_000), digest: Digest(digest), old: None }
    }

    async fn names(store: &SqlStore) -> Vec<String> {
        let keys = store.list_keys(true).await.expect("a store");
        keys.into_iter().map(|key| key.name).collect()
    }

    #[tokio::test]
    async fn database_outlives_its_connections_and_is_not_shared() {
        let (one, other) = (SqlStore::in_memory(), SqlStore::in_memory());
        one.add_key(record("a")).await.expect("a store").expect("added");
        let pool = one.connections().await.expect("connections");
        pool.acquire().await.expect("a connection").detach().close().await.expect("closed");
        // Abandoned within a transaction.
        let mut writing = one.begin_writing().await.expect("a transaction");
        sqlx::query("DELETE FROM keys").execute(&mut *writing).await.expect("deleted");
        drop(writing);
        assert_eq!(names(&one).await, ["a"]);
        assert_eq!(names(&other).await, [""; 0]);
    }

    #[tokio::test]
    async fn database_that_is_full_refuses_to_grow_and_keeps_what_it_has() {
        let store = SqlStore::in_memory();
        let pool = store.connections().await.expect("connections");
        sqlx::query("PRAGMA max_page_count = 1").execute(&pool).await.expect("set");
        let mut added = 0;
        let error = loop {
            match store.add_key(record(&added.to_string())).await {
                Ok(_) => added += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, StoreError::Failed(why) if why.contains("full")), "{error}");
        assert_eq!(names(&store).await.len(), added);
    }
}
