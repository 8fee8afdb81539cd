//! A Postgres server.

use std::fmt;
use std::sync::OnceLock;

use sqlx::AnyPool;
use url::Url;

use super::connections::Connections;
use super::dialect::Dialect;
use super::listening::NotificationListener;
use crate::address::StoreUrl;
use crate::traits::StoreError;

/// Maximum number of connections per gateway: ten gateways leave some of the hundred that Postgres accepts by
/// default.
const MAX_CONNECTIONS: u32 = 8;

/// See the module.
pub(super) struct PostgresServer {
    /// Contains a password.
    url: Url,
    connections: Connections,
    /// Starts when a caller waits for changes: the program's commands never do.
    listening: OnceLock<Option<NotificationListener>>,
}

impl PostgresServer {
    pub(super) fn new(url: &StoreUrl) -> Result<Self, StoreError> {
        let url = url.for_connections();
        let connections = Connections::new(Dialect::Postgres, &url, MAX_CONNECTIONS, "")?;
        Ok(Self { url, connections, listening: OnceLock::new() })
    }

    pub(super) async fn connections(&self) -> Result<AnyPool, StoreError> {
        self.connections.ready().await
    }

    /// See [`KeyStore::keys_changed`](crate::traits::KeyStore::keys_changed).
    pub(super) async fn keys_changed(&self) {
        match self.listening() {
            Some(listening) => listening.keys().await,
            None => std::future::pending().await,
        }
    }

    /// See [`ConfigStore::config_changed`](crate::traits::ConfigStore::config_changed).
    pub(super) async fn config_changed(&self) {
        match self.listening() {
            Some(listening) => listening.config().await,
            None => std::future::pending().await,
        }
    }

    fn listening(&self) -> Option<&NotificationListener> {
        self.listening.get_or_init(|| NotificationListener::start(&self.url).ok()).as_ref()
    }
}

impl fmt::Debug for PostgresServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PostgresServer")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}
