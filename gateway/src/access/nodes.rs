//! The gateways that share a store, for operators.

use serde::{Deserialize, Serialize};

use super::registry::{Registry, RegistryError};
use crate::clock::unix_seconds;
use crate::store::{NODE_KNOWN_FOR_S, NodeRecord};

/// A gateway of a store, as it said of itself some seconds ago. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Node {
    /// Id of the process: another one each time it starts.
    pub id: String,
    /// As configured, or the name of its machine.
    pub name: String,
    /// Of the program.
    pub version: String,
    /// Base URLs of the addresses that it listens on.
    pub addresses: Vec<String>,
    /// When it started.
    pub started: u64,
    /// When it said so. One that is silent for a minute is no longer listed.
    pub seen: u64,
    /// Requests that it is answering.
    pub in_flight: u64,
    /// Video tasks that it works on.
    pub leases: u64,
    /// The revision of the shared configuration that it uses. `None`: it has a configuration of its own, or none yet.
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
