//! What the history keeps, evicts and returns.

use super::*;

fn documents(bytes: usize) -> ResponseDocuments {
    ResponseDocuments { response: vec![b' '; bytes].into(), items: Bytes::from_static(b"[]"), tree: 0 }
}

fn holder() -> StoringUpstream {
    StoringUpstream { upstream: "one".into(), key: None, model: "mine".into() }
}

fn owner() -> Arc<str> {
    "key".into()
}

fn keep(history: &History, id: &str, bytes: usize) {
    history.keep(&owner(), id.to_owned(), Some(documents(bytes)), None);
}

/// The length of the owner's response, if there is a copy.
fn copy(history: &History, id: &str) -> Option<usize> {
    history.get("key", id)?.documents.map(|documents| documents.response.len())
}

fn assert_empty(history: &History) {
    let locked = history.lock();
    assert_eq!(
        (locked.bytes, locked.responses.len(), locked.copies.len(), locked.places.len()),
        (0, 0, 0, 0)
    );
}

#[test]
fn removed_response_frees_its_memory() {
    let history = History::new(false);
    for number in 0..3 * MAX_COPIES {
        keep(&history, "a", number);
        keep(&history, "b", 0);
        history.keep(&owner(), "c".to_owned(), None, Some(holder()));
        assert!(history.remove("key", "a") && !history.remove("key", "a"));
        assert!(history.get("key", "a").is_none() && history.get("key", "b").is_some());
        assert!(history.remove("key", "b") && history.remove("key", "c"));
    }
    assert_empty(&history);
}

#[test]
fn oldest_responses_are_evicted() {
    let history = History::new(false);
    for number in 0..=MAX_COPIES {
        keep(&history, &number.to_string(), number);
    }
    assert!(history.get("key", "0").is_none());
    assert_eq!(copy(&history, "1"), Some(1));
}

#[test]
fn location_survives_the_eviction_of_its_copy() {
    let history = History::new(false);
    history.keep(&owner(), "held".to_owned(), Some(documents(1)), Some(holder()));
    for number in 0..MAX_COPIES {
        assert_eq!(copy(&history, "held"), Some(1), "{number}");
        keep(&history, &number.to_string(), number);
    }
    let known = history.get("key", "held").expect("its place");
    assert!(known.documents.is_none() && known.holder.is_some_and(|holder| &*holder.upstream == "one"));
    assert!(history.get("other", "held").is_none());
    assert!(history.remove("key", "held"));
    assert!(history.lock().places.is_empty());
}

#[test]
fn stale_store_lookup_is_ignored_after_eviction_or_deletion() {
    let history = History::new(true);
    history.keep(&owner(), "held".to_owned(), Some(documents(1)), Some(holder()));
    let before = history.glance("key", "held");
    assert!(before.stamp.is_some());
    assert!(history.learn("key", "held", before, Some(holder()), CopyLookup::Same));
    assert_eq!(copy(&history, "held"), Some(1));
    let before = history.glance("key", "held");
    for number in 0..MAX_COPIES {
        keep(&history, &number.to_string(), 1);
    }
    assert!(!history.learn("key", "held", before, Some(holder()), CopyLookup::Same));
    // Two requests look up the same response; one finds it, then it is deleted.
    let other = |stamp| CopyLookup::Other { stamp, documents: documents(2) };
    let before = history.glance("key", "new");
    assert!(history.learn("key", "new", before, None, other(1)) && history.remove("key", "new"));
    assert!(!history.learn("key", "new", before, None, other(1)));
    assert!(history.get("key", "new").is_none());
    let again = history.glance("key", "new");
    assert!(history.learn("key", "new", again, None, CopyLookup::None));
}

#[test]
fn locations_are_bounded_in_count_and_size() {
    let history = History::new(false);
    for number in 0..=MAX_PLACES {
        history.keep(&owner(), number.to_string(), None, Some(holder()));
    }
    assert!(history.get("key", "0").is_none() && history.get("key", "1").is_some());
    // Such ids get no location, because they would become part of a path.
    for id in ["a/b", "..", "a?b", "a b", &"a".repeat(MAX_ID_CHARS + 1)] {
        history.keep(&owner(), id.to_owned(), None, Some(holder()));
        assert!(history.get("key", id).is_none(), "{id}");
        history.keep(&owner(), id.to_owned(), Some(documents(1)), Some(holder()));
        assert!(history.get("key", id).is_some_and(|known| known.holder.is_none()), "{id}");
    }
}

#[test]
fn single_response_is_bounded_in_size() {
    let history = History::new(false);
    let beside = documents(0).size();
    keep(&history, "longest", MAX_RESPONSE_BYTES - beside);
    keep(&history, "longer", MAX_RESPONSE_BYTES - beside + 1);
    assert!(history.get("key", "longest").is_some() && history.get("key", "longer").is_none());
    history.keep(&owner(), "held".to_owned(), Some(documents(MAX_RESPONSE_BYTES)), Some(holder()));
    assert!(history.get("key", "held").is_some() && copy(&history, "held").is_none());
}

#[test]
fn response_belongs_to_one_api_key() {
    let history = History::new(false);
    keep(&history, "a", 1);
    assert!(history.get("other", "a").is_none() && !history.remove("other", "a"));
    history.keep(&"other".into(), "a".to_owned(), Some(documents(7)), Some(holder()));
    assert!(history.get("other", "a").is_none());
    assert_eq!(copy(&history, "a"), Some(1));
    assert!(history.remove("key", "a"));
}

#[test]
fn replaced_response_counts_once() {
    let history = History::new(false);
    keep(&history, "a", 9);
    keep(&history, "a", 2);
    assert_eq!(copy(&history, "a"), Some(2));
    history.keep(&owner(), "a".to_owned(), None, Some(holder()));
    assert!(history.get("key", "a").is_some() && copy(&history, "a").is_none());
    assert!(history.remove("key", "a"));
    assert_empty(&history);
}

#[test]
fn handbook_states_the_history_memory_bound() {
    let page = include_str!("../../../../docs/handbook/strangers.md");
    let row = format!("| copies of stored responses | fixed | {} MiB |", MAX_BYTES / 1024 / 1024);
    assert!(page.contains(&row), "{row}");
}
