//! The gateways that use a store.

use super::StoreFuture;

/// How long a gateway is listed after its last report, in seconds.
pub(crate) const NODE_KNOWN_FOR_S: u64 = 60;

/// A running gateway, as it describes itself. Times are in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeRecord {
    /// Id of the process: a new one each time it starts.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// The addresses it listens on.
    pub(crate) addresses: Vec<String>,
    pub(crate) started: u64,
    pub(crate) seen: u64,
    /// Number of requests in progress.
    pub(crate) in_flight: u64,
    /// Number of tasks it works on.
    pub(crate) leases: u64,
    /// The revision of the shared configuration that it uses.
    pub(crate) config: Option<u64>,
}

/// The store of which gateways use it.
pub(crate) trait NodeStore {
    /// Replaces a gateway's report, and removes gateways last seen before a time.
    fn report_node<'s>(&'s self, node: &'s NodeRecord, seen_before: u64) -> StoreFuture<'s, ()>;

    /// The gateways seen at a time or later, by name and id.
    fn nodes(&self, seen_since: u64) -> StoreFuture<'_, Vec<NodeRecord>>;

    /// Removes a gateway.
    fn remove_node<'s>(&'s self, id: &'s str) -> StoreFuture<'s, ()>;
}
