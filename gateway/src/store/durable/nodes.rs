//! Which gateways use a store.

use super::Stored;

/// How long a gateway is listed that says nothing more, in seconds.
pub(crate) const NODE_KNOWN_FOR_S: u64 = 60;

/// A gateway that runs, as it says of itself. Times are in seconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NodeRecord {
    /// Of the process: another one each time it starts.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    /// Where it listens.
    pub(crate) addresses: Vec<String>,
    pub(crate) started: u64,
    pub(crate) seen: u64,
    /// Requests that it is answering.
    pub(crate) in_flight: u64,
    /// Tasks that it works on.
    pub(crate) leases: u64,
    /// The revision of the shared configuration that it uses.
    pub(crate) config: Option<u64>,
}

/// The store of which gateways use it.
pub(crate) trait NodeStore {
    /// Keeps what a gateway says of itself in place of what it said before, and forgets those that were seen before a time.
    fn report_node<'s>(&'s self, node: &'s NodeRecord, seen_before: u64) -> Stored<'s, ()>;

    /// The gateways that were seen at a time or later, by name and id.
    fn nodes(&self, seen_since: u64) -> Stored<'_, Vec<NodeRecord>>;

    /// Forgets a gateway.
    fn remove_node<'s>(&'s self, id: &'s str) -> Stored<'s, ()>;
}
