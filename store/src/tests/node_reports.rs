//! The gateways that use a store.

use super::kinds::Shared;
use crate::traits::NodeRecord;

in_every_store! {
    node_is_listed_with_its_last_report_until_it_goes_silent
    removed_node_is_no_longer_listed
}

fn node(id: &str, name: &str, seen: u64) -> NodeRecord {
    let addresses = vec!["http://127.0.0.1:1".to_owned(), "https://[::1]:2".to_owned()];
    let (id, name, version) = (id.to_owned(), name.to_owned(), "0.1.0".to_owned());
    NodeRecord {
        id,
        name,
        version,
        addresses,
        started: 90,
        seen,
        in_flight: 3,
        leases: u64::MAX / 2,
        config: None,
    }
}

async fn ids(store: &Shared, since: u64) -> Vec<String> {
    store.other.nodes(since).await.expect("a store").into_iter().map(|node| node.id).collect()
}

async fn node_is_listed_with_its_last_report_until_it_goes_silent(store: Shared) {
    let report = async |node: NodeRecord| store.one.report_node(&node, 95).await.expect("a store");
    report(node("a", "two", 100)).await;
    report(node("b", "one", 100)).await;
    report(node("c", "one", 100)).await;
    let changed = NodeRecord { in_flight: 0, leases: 7, config: Some(3), ..node("a", "two", 105) };
    report(changed.clone()).await;
    assert_eq!(ids(&store, 100).await, ["b", "c", "a"]);
    assert_eq!(store.other.nodes(101).await.expect("a store"), [changed]);
    store.one.report_node(&node("c", "one", 106), 101).await.expect("a store");
    assert_eq!(ids(&store, 0).await, ["c", "a"]);
}

async fn removed_node_is_no_longer_listed(store: Shared) {
    for id in ["a", "b"] {
        store.one.report_node(&node(id, id, 100), 0).await.expect("a store");
    }
    store.other.remove_node("a").await.expect("a store");
    store.other.remove_node("a").await.expect("a store");
    assert_eq!(ids(&store, 0).await, ["b"]);
}
