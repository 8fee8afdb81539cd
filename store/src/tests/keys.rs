//! Keys.

use std::sync::Arc;

use super::kinds::Shared;
use crate::keys::{Digest, Key, KeyLimits, KeyUpdate, NewKey};
use crate::traits::{AddKeyError, KeyRecord, NameTaken};

in_every_store! {
    key_round_trips_and_is_found_by_id_and_name
    name_of_a_key_in_use_is_unique
    update_replaces_only_the_members_it_has
    rotated_key_keeps_its_old_secret_for_the_overlap
    every_key_change_increments_the_revision
    one_of_many_concurrent_keys_gets_a_contested_name
    revoked_keys_are_kept_and_free_their_names
    first_pepper_digest_is_kept
}

fn digest(byte: u8) -> Digest {
    Digest([byte; 32])
}

fn named(name: &str, byte: u8) -> KeyRecord {
    KeyRecord {
        key: NewKey::new(name).issue(1_790_000_000 + u64::from(byte)),
        digest: digest(byte),
        old: None,
    }
}

fn names(keys: &[Key]) -> Vec<&str> {
    keys.iter().map(|key| key.name.as_str()).collect()
}

async fn update_replaces_only_the_members_it_has(store: Shared) {
    for (name, byte) in [("first", 1), ("second", 2)] {
        store.one.add_key(named(name, byte)).await.expect("a store").expect("added");
    }
    let first = store.one.find_key("first").await.expect("a store").expect("a key");
    let update = async |name: Option<&str>, expires: Option<u64>, most: Option<u64>| {
        let mut update = KeyUpdate::default();
        (update.name, update.expires) = (name.map(str::to_owned), expires);
        update.limits = most.map(|most| KeyLimits { tokens_per_day: Some(most), ..KeyLimits::default() });
        store.other.update_key(&first.id, update).await.expect("a store")
    };
    let before = store.one.revision().await.expect("a store");
    let limited = update(None, Some(1_990_000_000), Some(7)).await.expect("free").expect("a key");
    assert_ne!(store.one.revision().await.expect("a store"), before);
    assert_eq!((&limited.name, limited.expires), (&first.name, Some(1_990_000_000)));
    let renamed = update(Some("third"), None, None).await.expect("free").expect("a key");
    assert_eq!((renamed.expires, renamed.limits), (Some(1_990_000_000), limited.limits));
    // Its own name is not taken.
    assert!(
        update(Some("third"), Some(0), None)
            .await
            .is_ok_and(|key| key.is_some_and(|key| key.expires.is_none()))
    );
    assert_eq!(update(Some("second"), None, None).await, Err(NameTaken));
    let records = store.one.keys_in_use().await.expect("a store");
    assert!(records.iter().any(|record| record.key.name == "third" && record.digest == digest(1)));
    store.one.revoke_key(&first.id, 1_790_000_009).await.expect("a store").expect("a key");
    assert_eq!(update(Some("fourth"), None, None).await, Ok(None));
}

async fn key_round_trips_and_is_found_by_id_and_name(store: Shared) {
    let mut new = NewKey::new("Zoë's \"laptop\"");
    new.scopes.models = vec!["model-*".to_owned()];
    (new.limits.requests_per_minute, new.limits.cost_per_day) = (Some(60), Some(0.1));
    new.limits.file_bytes = Some(5_000_000_000);
    new.expires = Some(1_990_000_000);
    let key = new.issue(1_790_000_000);
    let record = KeyRecord { key: key.clone(), digest: digest(1), old: None };
    store.one.add_key(record).await.expect("a store").expect("added");
    store.one.add_key(named("second", 2)).await.expect("a store").expect("added");
    for name in [&*key.name, &*key.id] {
        assert_eq!(store.other.find_key(name).await.expect("a store").as_ref(), Some(&key), "{name}");
    }
    assert_eq!(store.other.find_key("third").await.expect("a store"), None);
    assert_eq!(names(&store.other.list_keys(false).await.expect("a store")), ["second", &key.name]);
    let mut records = store.other.keys_in_use().await.expect("a store");
    records.sort_by_key(|record| record.digest.0);
    assert_eq!(
        (&records[0].key, records[0].digest, records[0].old, records.len()),
        (&key, digest(1), None, 2)
    );
}

async fn name_of_a_key_in_use_is_unique(store: Shared) {
    store.one.add_key(named("ci", 1)).await.expect("a store").expect("added");
    assert_eq!(store.other.add_key(named("ci", 2)).await.expect("a store"), Err(AddKeyError::NameTaken));
    let id = store.other.find_key("ci").await.expect("a store").expect("a key").id;
    let revoked = store.other.revoke_key(&id, 1_800_000_000).await.expect("a store").expect("a key");
    assert_eq!((revoked.id.as_str(), revoked.revoked), (id.as_str(), Some(1_800_000_000)));
    assert_eq!(store.one.revoke_key(&id, 1_800_000_001).await.expect("a store"), None);
    assert!(store.one.keys_in_use().await.expect("a store").is_empty());
    store.one.add_key(named("ci", 3)).await.expect("a store").expect("added");
}

async fn rotated_key_keeps_its_old_secret_for_the_overlap(store: Shared) {
    let record = named("ci", 1);
    let id = record.key.id.clone();
    store.one.add_key(record).await.expect("a store").expect("added");
    let rotated = store.other.rotate_key(&id, digest(2), 1_800_000_000, Some(1_800_003_600)).await;
    assert_eq!(rotated.expect("a store").expect("a key").rotated, Some(1_800_000_000));
    let digests = async || {
        let record = store.one.keys_in_use().await.expect("a store").remove(0);
        (record.digest, record.old)
    };
    assert_eq!(digests().await, (digest(2), Some((digest(1), 1_800_003_600))));
    store.one.rotate_key(&id, digest(3), 1_800_000_001, None).await.expect("a store").expect("a key");
    assert_eq!(digests().await, (digest(3), None));
    assert_eq!(store.one.rotate_key("key_none", digest(4), 0, None).await.expect("a store"), None);
}

async fn every_key_change_increments_the_revision(store: Shared) {
    let record = named("ci", 1);
    let id = record.key.id.clone();
    let revision = async || store.other.revision().await.expect("a store");
    let mut seen = vec![revision().await];
    store.one.add_key(record).await.expect("a store").expect("added");
    seen.push(revision().await);
    store.one.rotate_key(&id, digest(2), 0, None).await.expect("a store").expect("a key");
    seen.push(revision().await);
    store.one.revoke_key(&id, 1).await.expect("a store").expect("a key");
    seen.push(revision().await);
    let mut different = seen.clone();
    different.dedup();
    assert_eq!((different.len(), seen.is_sorted()), (4, true), "{seen:?}");
    assert_eq!(revision().await, seen[3]);
}

async fn one_of_many_concurrent_keys_gets_a_contested_name(store: Shared) {
    let adding: Vec<_> = (0..16_u8)
        .map(|index| {
            let store = Arc::clone(if index % 2 == 0 { &store.one } else { &store.other });
            tokio::spawn(async move {
                let same = store.add_key(named("ci", 2 * index)).await.expect("a store");
                store
                    .add_key(named(&index.to_string(), 2 * index + 1))
                    .await
                    .expect("a store")
                    .expect("added");
                same
            })
        })
        .collect();
    let mut added = 0;
    for adding in adding {
        match adding.await.expect("no panic") {
            Ok(()) => added += 1,
            Err(why) => assert_eq!(why, AddKeyError::NameTaken),
        }
    }
    assert_eq!((added, store.one.keys_in_use().await.expect("a store").len()), (1, 17));
}

async fn revoked_keys_are_kept_and_free_their_names(store: Shared) {
    for byte in 1..=3 {
        let record = named("ci", byte);
        let id = record.key.id.clone();
        store.one.add_key(record).await.expect("a store").expect("added");
        store.one.revoke_key(&id, 1_800_000_000).await.expect("a store").expect("a key");
        // By its id, but not by its name.
        assert!(store.other.find_key(&id).await.expect("a store").is_some());
        assert_eq!(store.other.find_key("ci").await.expect("a store"), None);
    }
    assert!(store.other.list_keys(false).await.expect("a store").is_empty());
    assert_eq!(names(&store.other.list_keys(true).await.expect("a store")), ["ci"; 3]);
}

async fn first_pepper_digest_is_kept(store: Shared) {
    assert_eq!(store.one.pepper_check(digest(1)).await.expect("a store"), digest(1));
    assert_eq!(store.other.pepper_check(digest(2)).await.expect("a store"), digest(1));
}
