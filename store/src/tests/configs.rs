//! The configuration that gateways share.

use std::collections::HashSet;

use super::kinds::Shared;
use crate::traits::{MAX_REVISIONS, NewConfig, StoredRevision};

in_every_store! {
    revision_round_trips_for_every_reader
    revision_is_added_only_after_the_expected_one
    concurrently_added_revisions_get_distinct_numbers
    oldest_revisions_are_forgotten_and_numbers_not_reused
}

fn document(document: &str) -> NewConfig<'_> {
    NewConfig { made: 7, author: "ada \u{1f980}", repeats: None, document }
}

async fn revision_round_trips_for_every_reader(store: Shared) {
    assert_eq!(store.other.config_revisions(9).await.expect("a store"), []);
    assert_eq!(store.other.config_document(1).await.expect("a store"), None);
    assert_eq!(store.one.add_config(document("a = \"'\n\"\u{e9}"), None).await.expect("a store"), Some(1));
    let again = NewConfig { made: u64::MAX / 2, author: "", repeats: Some(1), document: "" };
    assert_eq!(store.other.add_config(again, None).await.expect("a store"), Some(2));
    let one = StoredRevision { number: 1, made: 7, author: "ada \u{1f980}".to_owned(), repeats: None };
    let two = StoredRevision { number: 2, made: u64::MAX / 2, author: String::new(), repeats: Some(1) };
    assert_eq!(store.one.config_revisions(9).await.expect("a store"), [two.clone(), one]);
    assert_eq!(store.one.config_revisions(1).await.expect("a store"), [two]);
    let found = store.other.config_document(1).await.expect("a store");
    assert_eq!(found.as_deref(), Some("a = \"'\n\"\u{e9}"));
}

async fn revision_is_added_only_after_the_expected_one(store: Shared) {
    for (after, added) in [(1, None), (0, Some(1)), (0, None), (2, None), (1, Some(2)), (1, None)] {
        assert_eq!(store.one.add_config(document("x"), Some(after)).await.expect("a store"), added);
    }
    assert_eq!(store.other.config_revisions(9).await.expect("a store").len(), 2);
}

async fn concurrently_added_revisions_get_distinct_numbers(store: Shared) {
    let adding = (0..10).map(|number| {
        let store = if number % 2 == 0 { &store.one } else { &store.other };
        async { store.add_config(document("x"), None).await.expect("a store").expect("it is added") }
    });
    let numbers: HashSet<u64> = futures_util::future::join_all(adding).await.into_iter().collect();
    assert_eq!(numbers, (1..=10).collect());
}

async fn oldest_revisions_are_forgotten_and_numbers_not_reused(store: Shared) {
    for _ in 0..MAX_REVISIONS + 2 {
        store.one.add_config(document("x"), None).await.expect("a store");
    }
    let revisions = store.other.config_revisions(usize::MAX).await.expect("a store");
    let numbers: Vec<u64> = revisions.iter().map(|revision| revision.number).collect();
    assert_eq!(numbers, (3..=102).rev().collect::<Vec<_>>());
    assert_eq!(store.one.config_document(2).await.expect("a store"), None);
    assert_eq!(store.one.config_document(3).await.expect("a store").as_deref(), Some("x"));
}
