//! The gateways that use a store.

use super::StoreFuture;

/// How long a gateway is listed after its last report, in seconds.
pub const NODE_KNOWN_FOR_S: u64 = 60;

/// A running gateway, as it describes itself. Times are in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// Id of the process: a new one each time it starts.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Its version, such as `0.1.0`.
    pub version: String,
    /// The addresses it listens on.
    pub addresses: Vec<String>,
    /// When its process started.
    pub started: u64,
    /// When it reported itself last.
    pub seen: u64,
    /// Number of requests in progress.
    pub in_flight: u64,
    /// Number of tasks it works on.
    pub leases: u64,
    /// The revision of the shared configuration that it uses.
    pub config: Option<u64>,
}

/// The store of which gateways use it.
pub trait NodeStore {
    /// Replaces a gateway's report, and removes gateways last seen before a time.
    fn report_node<'s>(&'s self, node: &'s NodeRecord, seen_before: u64) -> StoreFuture<'s, ()>;

    /// The gateways seen at a time or later, by name and id.
    fn nodes(&self, seen_since: u64) -> StoreFuture<'_, Vec<NodeRecord>>;

    /// Removes a gateway.
    fn remove_node<'s>(&'s self, id: &'s str) -> StoreFuture<'s, ()>;
}
