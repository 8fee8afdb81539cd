//! Where the database is.

use std::io;
use std::path::Path;

use sqlx::{Any, AnyPool, Transaction};

use super::dialect::Dialect;
use super::file::SqliteFile;
use super::memory::MemoryDatabase;
use super::server::PostgresServer;
use crate::address::StoreUrl;
use crate::traits::StoreError;

/// See the module.
#[derive(Debug)]
pub(super) enum Database {
    /// SQLite, without a file.
    Memory(MemoryDatabase),
    /// SQLite.
    File(SqliteFile),
    /// Postgres.
    Server(PostgresServer),
}

impl Database {
    pub(super) fn in_memory() -> Self {
        Self::Memory(MemoryDatabase::new())
    }

    pub(super) fn in_file(path: &Path) -> io::Result<Self> {
        SqliteFile::open(path).map(Self::File)
    }

    pub(super) fn at(url: &StoreUrl) -> Result<Self, StoreError> {
        PostgresServer::new(url).map(Self::Server)
    }

    pub(super) fn dialect(&self) -> Dialect {
        match self {
            Self::Memory(_) | Self::File(_) => Dialect::Sqlite,
            Self::Server(_) => Dialect::Postgres,
        }
    }

    pub(super) async fn connections(&self) -> Result<AnyPool, StoreError> {
        match self {
            Self::Memory(memory) => memory.connections().await,
            Self::File(file) => file.connections().await,
            Self::Server(server) => server.connections().await,
        }
    }

    pub(super) async fn keys_changed(&self) {
        match self {
            Self::Memory(_) | Self::File(_) => std::future::pending().await,
            Self::Server(server) => server.keys_changed().await,
        }
    }

    pub(super) async fn config_changed(&self) {
        match self {
            Self::Memory(_) | Self::File(_) => std::future::pending().await,
            Self::Server(server) => server.config_changed().await,
        }
    }

    pub(super) async fn begin_writing(&self) -> Result<Transaction<'static, Any>, StoreError> {
        Ok(self.connections().await?.begin_with(self.dialect().begin_writing()).await?)
    }
}
