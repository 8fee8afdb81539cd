//! Keys.

use std::sync::Arc;

use super::kinds::Shared;
use crate::keys::{Digest, Key, NewKey};
use crate::store::traits::{AddKeyError, KeyRecord};

in_every_store! {
    a_key_is_kept_as_it_was_made_and_is_found_by_id_and_name
    two_keys_in_use_do_not_share_a_name
    a_rotated_key_has_its_old_secret_until_it_ends
    every_change_of_a_key_changes_the_revision_for_all
    of_many_at_once_one_gets_the_name_and_all_get_others
}

mod databases {
    use super::{revoked_keys_are_kept_and_their_names_are_free, the_first_pepper_stays};

    in_every_database! {
        revoked_keys_are_kept_and_their_names_are_free
        the_first_pepper_stays
    }
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

async fn a_key_is_kept_as_it_was_made_and_is_found_by_id_and_name(store: Shared) {
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
    let mut kept = store.other.keys_in_use().await.expect("a store");
    kept.sort_by_key(|record| record.digest.0);
    assert_eq!((&kept[0].key, kept[0].digest, kept[0].old, kept.len()), (&key, digest(1), None, 2));
}

async fn two_keys_in_use_do_not_share_a_name(store: Shared) {
    store.one.add_key(named("ci", 1)).await.expect("a store").expect("added");
    assert_eq!(store.other.add_key(named("ci", 2)).await.expect("a store"), Err(AddKeyError::NameTaken));
    let id = store.other.find_key("ci").await.expect("a store").expect("a key").id;
    let revoked = store.other.revoke_key(&id, 1_800_000_000).await.expect("a store").expect("a key");
    assert_eq!((revoked.id.as_str(), revoked.revoked), (id.as_str(), Some(1_800_000_000)));
    assert_eq!(store.one.revoke_key(&id, 1_800_000_001).await.expect("a store"), None);
    assert!(store.one.keys_in_use().await.expect("a store").is_empty());
    store.one.add_key(named("ci", 3)).await.expect("a store").expect("added");
}

async fn a_rotated_key_has_its_old_secret_until_it_ends(store: Shared) {
    let record = named("ci", 1);
    let id = record.key.id.clone();
    store.one.add_key(record).await.expect("a store").expect("added");
    let rotated = store.other.rotate_key(&id, digest(2), 1_800_000_000, Some(1_800_003_600)).await;
    assert_eq!(rotated.expect("a store").expect("a key").rotated, Some(1_800_000_000));
    let kept = async || {
        let kept = store.one.keys_in_use().await.expect("a store").remove(0);
        (kept.digest, kept.old)
    };
    assert_eq!(kept().await, (digest(2), Some((digest(1), 1_800_003_600))));
    store.one.rotate_key(&id, digest(3), 1_800_000_001, None).await.expect("a store").expect("a key");
    assert_eq!(kept().await, (digest(3), None));
    assert_eq!(store.one.rotate_key("key_none", digest(4), 0, None).await.expect("a store"), None);
}

async fn every_change_of_a_key_changes_the_revision_for_all(store: Shared) {
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

async fn of_many_at_once_one_gets_the_name_and_all_get_others(store: Shared) {
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

async fn revoked_keys_are_kept_and_their_names_are_free(store: Shared) {
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

async fn the_first_pepper_stays(store: Shared) {
    assert_eq!(store.one.pepper_check(digest(1)).await.expect("a store"), digest(1));
    assert_eq!(store.other.pepper_check(digest(2)).await.expect("a store"), digest(1));
}
