//! Files and batches of providers.

use std::time::Duration;

use super::kinds::Shared;
use crate::traits::{ObjectKind, ObjectPage, ProviderObject};

in_every_store! {
    object_belongs_to_one_key
    pages_list_a_keys_objects_of_one_kind_in_both_directions
    key_has_at_most_its_share_of_all_objects
    batch_is_followed_by_one_process_and_ends_once
    expired_objects_are_removed_unless_they_are_batches_in_progress
}

const LONG: Duration = Duration::from_hours(1);

fn file(owner: &str, id: &str) -> ProviderObject {
    let purpose = if id.ends_with('o') { "batch_output" } else { "batch" };
    ProviderObject {
        owner: owner.into(),
        id: id.to_owned(),
        kind: ObjectKind::File,
        purpose: purpose.to_owned(),
        content: vec![0, 255, 7],
    }
}

fn batch(owner: &str, id: &str) -> ProviderObject {
    ProviderObject { kind: ObjectKind::Batch, purpose: String::new(), ..file(owner, id) }
}

async fn add(store: &Shared, object: &ProviderObject) {
    assert!(store.one.add_object(object, None, None, 100).await.expect("a store"));
}

async fn object_belongs_to_one_key(store: Shared) {
    for owner in ["k", "l"] {
        add(&store, &file(owner, "a")).await;
    }
    let find = async |owner, kind, id| store.other.object(owner, kind, id).await.expect("a store");
    assert_eq!(find("k", ObjectKind::File, "a").await, Some(file("k", "a")));
    assert_eq!(find("k", ObjectKind::Batch, "a").await, None);
    assert_eq!(find("m", ObjectKind::File, "a").await, None);
    // A known object stays as it is.
    add(&store, &ProviderObject { content: vec![1], ..file("k", "a") }).await;
    assert_eq!(find("k", ObjectKind::File, "a").await, Some(file("k", "a")));
    let remove = async |kind| store.one.remove_object("k", kind, "a").await.expect("a store");
    assert!(!remove(ObjectKind::Batch).await);
    assert!(remove(ObjectKind::File).await && !remove(ObjectKind::File).await);
    assert!(find("k", ObjectKind::File, "a").await.is_none());
    assert!(find("l", ObjectKind::File, "a").await.is_some());
}

async fn pages_list_a_keys_objects_of_one_kind_in_both_directions(store: Shared) {
    for object in [file("k", "3"), batch("k", "b"), file("l", "9"), file("k", "1o"), file("k", "2")] {
        add(&store, &object).await;
    }
    let page = ObjectPage { kind: ObjectKind::File, purpose: None, after: None, ascending: false, limit: 2 };
    let list = async |page| {
        let objects = store.other.objects("k", page).await.expect("a store");
        objects.map(|objects| objects.into_iter().map(|one| one.id).collect::<Vec<_>>())
    };
    let of = |ids: &[&str]| Some(ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>());
    assert_eq!(list(page).await, of(&["2", "1o"]));
    assert_eq!(list(ObjectPage { after: Some("1o"), ..page }).await, of(&["3"]));
    assert_eq!(list(ObjectPage { ascending: true, ..page }).await, of(&["3", "1o"]));
    assert_eq!(list(ObjectPage { ascending: true, after: Some("1o"), ..page }).await, of(&["2"]));
    assert_eq!(list(ObjectPage { purpose: Some("batch_output"), ..page }).await, of(&["1o"]));
    assert_eq!(list(ObjectPage { kind: ObjectKind::Batch, ..page }).await, of(&["b"]));
    assert_eq!(list(ObjectPage { after: Some("9"), ..page }).await, None, "it is another key's");
}

async fn key_has_at_most_its_share_of_all_objects(store: Shared) {
    let added = async |id: &str| {
        // A share of nothing is one.
        store.one.add_object(&file("k", id), None, None, 0).await.expect("a store")
    };
    assert!(added("a").await && !added("b").await);
    assert!(added("a").await, "it is known");
    assert!(store.one.add_object(&file("l", "b"), None, None, 0).await.expect("a store"));
}

async fn batch_is_followed_by_one_process_and_ends_once(store: Shared) {
    add(&store, &batch("k", "ended")).await;
    let added = store.one.add_object(&batch("k", "b"), None, Some(Duration::ZERO), 100).await;
    assert!(added.expect("a store"));
    let resumed = store.one.resume_batches(LONG, 9).await.expect("a store");
    let [(object, lease)] = <[_; 1]>::try_from(resumed).expect("one batch");
    assert_eq!((&object, lease.number), (&batch("k", "b"), 2));
    assert!(store.other.resume_batches(LONG, 9).await.expect("a store").is_empty());

    let update = async |lease, follows| store.other.update_batch(lease, b"new", follows).await;
    assert!(update(&lease, Some(Duration::ZERO)).await.expect("a store"));
    let (object, later) = store.other.resume_batches(LONG, 9).await.expect("a store").remove(0);
    assert_eq!(object.content, b"new");
    assert!(!update(&lease, None).await.expect("a store"), "the lease is lost");
    assert!(update(&later, None).await.expect("a store"));
    assert!(!update(&later, None).await.expect("a store"), "it has ended");
}

async fn expired_objects_are_removed_unless_they_are_batches_in_progress(store: Shared) {
    let (now, one) = (Some(Duration::ZERO), &store.one);
    assert!(one.add_object(&file("k", "old"), now, None, 100).await.expect("a store"));
    assert!(one.add_object(&file("k", "new"), Some(LONG), None, 100).await.expect("a store"));
    assert!(one.add_object(&batch("k", "b"), now, Some(LONG), 100).await.expect("a store"));
    add(&store, &file("k", "kept")).await;
    store.other.forget_objects().await.expect("a store");
    let is_there = async |kind, id| one.object("k", kind, id).await.expect("a store").is_some();
    assert!(!is_there(ObjectKind::File, "old").await);
    assert!(is_there(ObjectKind::File, "new").await && is_there(ObjectKind::File, "kept").await);
    assert!(is_there(ObjectKind::Batch, "b").await);
}
