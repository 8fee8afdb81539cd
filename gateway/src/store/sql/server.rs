//! A Postgres server.

use std::fmt;
use std::sync::OnceLock;

use sqlx::AnyPool;
use url::Url;

use super::connections::Connections;
use super::dialect::Dialect;
use super::listening::Listening;
use crate::store::address::StoreUrl;
use crate::store::durable::StoreError;

/// Maximum number of connections per gateway: ten gateways leave some of the hundred that Postgres accepts by
/// default.
const MOST_CONNECTIONS: u32 = 8;

/// See the module.
pub(super) struct Server {
    /// Contains a password.
    url: Url,
    connections: Connections,
    /// Starts when somebody waits for changes: the program's commands never do.
    listening: OnceLock<Option<Listening>>,
}

impl Server {
    pub(super) fn new(url: &StoreUrl) -> Result<Self, StoreError> {
        let url = url.for_connections();
        let connections = Connections::new(Dialect::Postgres, &url, MOST_CONNECTIONS, "")?;
        Ok(Self { url, connections, listening: OnceLock::new() })
    }

    pub(super) async fn connections(&self) -> Result<AnyPool, StoreError> {
        self.connections.ready().await
    }

    /// See [`KeyStore::keys_changed`](crate::store::durable::KeyStore::keys_changed).
    pub(super) async fn keys_changed(&self) {
        match self.listening() {
            Some(listening) => listening.keys().await,
            None => std::future::pending().await,
        }
    }

    /// See [`ConfigStore::config_changed`](crate::store::durable::ConfigStore::config_changed).
    pub(super) async fn config_changed(&self) {
        match self.listening() {
            Some(listening) => listening.config().await,
            None => std::future::pending().await,
        }
    }

    fn listening(&self) -> Option<&Listening> {
        self.listening.get_or_init(|| Listening::start(&self.url).ok()).as_ref()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Server").field("connections", &self.connections).finish_non_exhaustive()
    }
}
