//! The database file. A program that has a file open keeps writing to it after it was moved or removed, where its
//! data is lost: this notices, and opens the file that is now in its place.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gatewright_system::crash;
use gatewright_system::disk::private_file;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sqlx::AnyPool;
use url::Url;

use super::connections::Connections;
use super::dialect::Dialect;
use crate::traits::StoreError;

/// Maximum number of connections: one writes while the others read.
const MAX_CONNECTIONS: u32 = 3;
/// An operation waits up to two seconds for another process that writes. Committed changes are on the disk: a revoked key
/// stays revoked after a power failure.
const FIRST: &str = "PRAGMA busy_timeout = 2000; PRAGMA synchronous = FULL";

/// See the module.
#[derive(Debug)]
pub(super) struct SqliteFile {
    path: PathBuf,
    url: Url,
    open: Mutex<Arc<OpenDatabase>>,
}

/// Connections to one file.
#[derive(Debug)]
struct OpenDatabase {
    identity: Identity,
    connections: Connections,
}

/// Device and inode of a file; none on systems where open files can't be moved.
type Identity = Option<(u64, u64)>;

impl SqliteFile {
    /// See [`SqlStore::in_file`](super::SqlStore::in_file).
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        // SQLite gives its other files the permissions of this one.
        crash::point();
        private_file().append(true).create(true).open(path)?;
        crash::point();
        let url = url(path).ok_or_else(|| io::Error::other("its path is not Unicode text"))?;
        let open = OpenDatabase::new(&url, identity(path)?).map_err(io::Error::other)?;
        Ok(Self { path: path.to_path_buf(), url, open: Mutex::new(Arc::new(open)) })
    }

    /// Connections to the file, with the tables migrated to this version.
    pub(super) async fn connections(&self) -> Result<AnyPool, StoreError> {
        self.in_place()?.connections.ready().await
    }

    /// The file that is now at the path.
    fn in_place(&self) -> Result<Arc<OpenDatabase>, StoreError> {
        let found = identity(&self.path);
        let found =
            found.map_err(|error| StoreError::Failed(format!("the database file is missing: {error}")))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.identity != found {
            tracing::warn!("the database file was replaced; using the new one");
            let before = std::mem::replace(&mut *open, Arc::new(OpenDatabase::new(&self.url, found)?));
            tokio::spawn(async move { before.connections.close().await });
        }
        Ok(Arc::clone(&open))
    }
}

impl OpenDatabase {
    fn new(url: &Url, identity: Identity) -> Result<Self, sqlx::Error> {
        let connections = Connections::new(Dialect::Sqlite, url, MAX_CONNECTIONS, FIRST)?;
        Ok(Self { identity, connections })
    }
}

/// The path as a URL that preserves all of it, such as its dots.
fn url(path: &Path) -> Option<Url> {
    let path = utf8_percent_encode(path.to_str()?, NON_ALPHANUMERIC);
    Url::parse(&format!("sqlite:{path}")).ok()
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

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use sqlx::Row as _;

    use super::*;

    /// A gateway and a command that start with a new folder.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn concurrent_creators_of_a_database_wait_for_each_other() {
        for _ in 0..20 {
            let folder = tempfile::tempdir().expect("a folder");
            let open = || SqliteFile::open(&folder.path().join("a.db")).expect("a database");
            let files = [open(), open(), open(), open()];
            for opened in join_all(files.iter().map(SqliteFile::connections)).await {
                opened.expect("connections");
            }
        }
    }

    #[tokio::test]
    async fn damaged_file_is_rejected_at_once_and_left_unchanged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.db");
        // All data is in the file once no process has it open.
        SqliteFile::open(&path).expect("a database").connections().await.expect("connections").close().await;
        let sound = std::fs::read(&path).expect("the file");
        let damaged = |from: usize, to: usize| {
            let mut damaged = sound.clone();
            damaged[from..to].fill(0xa5);
            damaged
        };
        for damaged in [damaged(0, sound.len()), damaged(16, 100), damaged(100, sound.len())] {
            std::fs::write(&path, &damaged).expect("written");
            let started = std::time::Instant::now();
            let error = SqliteFile::open(&path).expect("opened").connections().await.expect_err("damaged");
            assert!(matches!(error, StoreError::Refused(_)), "{error}");
            assert!(error.to_string().contains("restore a backup"), "{error}");
            assert!(started.elapsed().as_secs() < 2, "it is not retried");
            assert_eq!(std::fs::read(&path).expect("the file"), damaged);
        }
    }

    #[tokio::test]
    async fn connections_use_wal_and_full_synchronous() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = SqliteFile::open(&folder.path().join("a.db")).expect("a database");
        let connections = file.connections().await.expect("connections");
        // Of each connection.
        let mut all = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            all.push(connections.acquire().await.expect("a connection"));
        }
        for connection in &mut all {
            let synchronous = sqlx::query("PRAGMA synchronous").fetch_one(&mut **connection).await;
            assert_eq!(synchronous.expect("a row").get::<i64, _>(0), 2);
            let mode = sqlx::query("PRAGMA journal_mode").fetch_one(&mut **connection).await.expect("a row");
            assert_eq!(mode.get::<&str, _>(0), "wal");
        }
    }
}
