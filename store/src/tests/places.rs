//! Places of responses.

use super::kinds::Shared;
use crate::traits::{LocationChange, ResponseLocation, StoringUpstream};

in_every_store! {
    locations_are_stored_in_order_per_key
    restored_location_becomes_the_newest
    concurrently_stored_location_is_kept_once
}

fn place(id: &str, owner: &str, key: Option<i64>) -> LocationChange {
    let holder = StoringUpstream { upstream: "one".into(), key, model: "mine".into() };
    LocationChange::Kept(ResponseLocation { id: id.into(), owner: owner.into(), holder })
}

async fn ids(store: &Shared) -> Vec<String> {
    let places = store.other.places().await.expect("a store");
    places.into_iter().map(|place| place.id.to_string()).collect()
}

async fn locations_are_stored_in_order_per_key(store: Shared) {
    let removed = LocationChange::Removed("b".into());
    let changes = [place("a", "k", None), place("b", "k", Some(i64::MIN)), removed, place("c", "l", Some(7))];
    store.one.change_places(&changes).await.expect("a store");
    assert_eq!(ids(&store).await, ["a", "c"]);
    assert!(store.other.place("k", "c").await.expect("a store").is_none());
    let found = store.other.place("l", "c").await.expect("a store").expect("a place");
    assert_eq!((&*found.owner, &*found.holder.upstream, &*found.holder.model), ("l", "one", "mine"));
    assert_eq!((found.holder.key, &*found.id), (Some(7), "c"));
}

async fn restored_location_becomes_the_newest(store: Shared) {
    let changes = [place("a", "k", None), place("b", "k", None), place("a", "l", Some(1))];
    store.one.change_places(&changes).await.expect("a store");
    assert_eq!(ids(&store).await, ["b", "a"]);
    assert!(store.other.place("k", "a").await.expect("a store").is_none());
    assert!(store.other.place("l", "a").await.expect("a store").is_some());
}

async fn concurrently_stored_location_is_kept_once(store: Shared) {
    let changes: Vec<_> = (0..50).map(|id| place(&format!("resp_{id}"), "k", None)).collect();
    let (one, other) = tokio::join!(store.one.change_places(&changes), store.other.change_places(&changes));
    one.expect("a store");
    other.expect("a store");
    assert_eq!(ids(&store).await.len(), 50);
}
