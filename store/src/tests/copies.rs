//! Copies of stored responses.

use super::kinds::Shared;
use crate::traits::{Copy, CopyChange, MAX_COPY_BYTES, StoredCopy};

in_every_store! {
    copy_is_read_only_if_its_stamp_differs
    copy_belongs_to_one_key
    old_copies_and_those_beyond_their_share_are_evicted
    concurrently_changed_copies_are_all_kept
}

fn kept_copy(owner: &str, id: &str, stamp: i64, kept: u64, content: &[u8]) -> CopyChange {
    CopyChange::Kept(Copy { owner: owner.into(), id: id.into(), stamp, kept, content: content.to_vec() })
}

async fn find(store: &Shared, owner: &str, id: &str) -> Option<Vec<u8>> {
    match store.other.copy(owner, id, None).await.expect("a store") {
        StoredCopy::Other { content, .. } => Some(content),
        _ => None,
    }
}

async fn copy_is_read_only_if_its_stamp_differs(store: Shared) {
    let changes = [kept_copy("k", "a", -7, 1, b"one"), kept_copy("k", "a", 8, 2, b"two")];
    store.one.change_copies(&changes).await.expect("a store");
    let copy = async |known| store.other.copy("k", "a", known).await.expect("a store");
    let two = StoredCopy::Other { stamp: 8, content: b"two".to_vec() };
    assert_eq!(
        (copy(None).await, copy(Some(-7)).await),
        (StoredCopy::Other { stamp: 8, content: b"two".to_vec() }, two)
    );
    assert_eq!(copy(Some(8)).await, StoredCopy::Same);
    let removed = CopyChange::Removed { owner: "k".into(), id: "a".into() };
    store.one.change_copies(&[removed]).await.expect("a store");
    assert_eq!(copy(Some(8)).await, StoredCopy::None);
}

async fn copy_belongs_to_one_key(store: Shared) {
    let changes = [kept_copy("k", "a", 1, 1, b"one"), kept_copy("l", "a", 2, 2, b"two")];
    store.one.change_copies(&changes).await.expect("a store");
    assert_eq!(find(&store, "k", "a").await.as_deref(), Some(&b"one"[..]));
    assert_eq!(find(&store, "l", "a").await.as_deref(), Some(&b"two"[..]));
    assert_eq!(find(&store, "m", "a").await, None);
    let removed = CopyChange::Removed { owner: "l".into(), id: "a".into() };
    store.one.change_copies(&[removed]).await.expect("a store");
    assert!(find(&store, "k", "a").await.is_some() && find(&store, "l", "a").await.is_none());
}

async fn old_copies_and_those_beyond_their_share_are_evicted(store: Shared) {
    // As a share of the total, 1 % each.
    let large = vec![0; usize::try_from(MAX_COPY_BYTES / 100).expect("it fits")];
    let names = ["a", "b", "c", "d"];
    for (at, id) in names.iter().enumerate() {
        let changes = [kept_copy("k", id, 1, 10 + at as u64, &large)];
        store.one.change_copies(&changes).await.expect("a store");
    }
    store
        .one
        .change_copies(&[kept_copy("l", "e", 1, 1, b"x"), kept_copy("l", "f", 1, 5, b"x")])
        .await
        .expect("a store");
    let left = async || {
        let mut left = String::new();
        for (owner, id) in names.map(|id| ("k", id)).into_iter().chain([("l", "e"), ("l", "f")]) {
            left.push_str(if find(&store, owner, id).await.is_some() { id } else { "" });
        }
        left
    };
    store.one.forget_copies(1, 100).await.expect("a store");
    assert_eq!(left().await, "abcdef");
    store.one.forget_copies(2, 3).await.expect("a store");
    assert_eq!(left().await, "bcdf");
    store.other.forget_copies(0, 1).await.expect("a store");
    assert_eq!(left().await, "df");
}

async fn concurrently_changed_copies_are_all_kept(store: Shared) {
    let changes = |stamp| (0..50).map(move |id| kept_copy("k", &format!("resp_{id}"), stamp, 1, b"x"));
    let (one, other): (Vec<_>, Vec<_>) = (changes(1).collect(), changes(2).rev().collect());
    let (one, other) = tokio::join!(store.one.change_copies(&one), store.other.change_copies(&other));
    one.expect("a store");
    other.expect("a store");
    for id in 0..50 {
        assert!(find(&store, "k", &format!("resp_{id}")).await.is_some(), "{id}");
    }
}
