//! The gateways of one process, in memory.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use super::{MemoryStore, done};
use crate::traits::{NodeRecord, NodeStore, StoreFuture};

/// By name and id.
pub(super) type Nodes = BTreeMap<(String, String), NodeRecord>;

impl MemoryStore {
    fn known_nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NodeStore for MemoryStore {
    fn report_node<'s>(&'s self, node: &'s NodeRecord, seen_before: u64) -> StoreFuture<'s, ()> {
        let mut nodes = self.known_nodes();
        nodes.insert((node.name.clone(), node.id.clone()), node.clone());
        nodes.retain(|_, node| node.seen >= seen_before);
        done(())
    }

    fn nodes(&self, seen_since: u64) -> StoreFuture<'_, Vec<NodeRecord>> {
        done(self.known_nodes().values().filter(|node| node.seen >= seen_since).cloned().collect())
    }

    fn remove_node<'s>(&'s self, id: &'s str) -> StoreFuture<'s, ()> {
        self.known_nodes().retain(|_, node| node.id != id);
        done(())
    }
}
