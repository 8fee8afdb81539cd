//! The gateways that share a store, for operators.

use gatewright_store::{NODE_KNOWN_FOR_S, NodeRecord};
use gatewright_system::clock::unix_seconds;
use serde::{Deserialize, Serialize};

use super::registry::{Registry, RegistryError};

/// A gateway of a store, as of its report some seconds ago. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    /// Id of the process: a new one each time it starts.
    pub id: String,
    /// As configured, or the name of its machine.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// Base URLs of the addresses it listens on.
    pub addresses: Vec<String>,
    /// When it started.
    pub started: u64,
    /// When it last reported. After a minute of silence, it is no longer listed.
    pub seen: u64,
    /// Number of requests in progress.
    pub in_flight: u64,
    /// Number of video tasks it works on.
    pub leases: u64,
    /// The revision of the shared configuration that it uses. `None`: it has its own configuration, or none yet.
    #[serde(default)]
    pub config: Option<u64>,
}

impl From<NodeRecord> for Node {
    fn from(node: NodeRecord) -> Self {
        let NodeRecord { id, name, version, addresses, started, seen, in_flight, leases, config } = node;
        Self { id, name, version, addresses, started, seen, in_flight, leases, config }
    }
}

impl Registry {
    /// The gateways that use the store, by name.
    pub async fn nodes(&self) -> Result<Vec<Node>, RegistryError> {
        let since = unix_seconds().saturating_sub(NODE_KNOWN_FOR_S);
        Ok(self.store().nodes(since).await?.into_iter().map(Into::into).collect())
    }
}
