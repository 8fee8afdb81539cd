use gatewright_store::{SqlStore, StoringUpstream};

use super::*;
use crate::storage::history::ResponseDocuments;

fn holder() -> StoringUpstream {
    StoringUpstream { upstream: "one".into(), key: Some(2), model: "mine".into() }
}

fn documents(text: &str) -> ResponseDocuments {
    let response = format!("{{\"output\":[\"{text}\"]}}").into();
    ResponseDocuments { response, items: "[\"question\"]".into(), tree: 7 }
}

fn database(folder: &tempfile::TempDir) -> Arc<dyn DurableStore> {
    Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"))
}

/// A gateway's history with its keeper running.
fn history(store: &Arc<dyn DurableStore>) -> (Arc<History>, Arc<HistoryKeeper>) {
    let history = Arc::new(History::new(true));
    let keeper =
        HistoryKeeper::start(Arc::clone(&history), Arc::clone(store), Sealer::new([7; 32]), || 100, None);
    (history, keeper)
}

fn keep(history: &History, id: &str, text: &str, holder: Option<StoringUpstream>) {
    history.keep(&"key".into(), id.to_owned(), Some(documents(text)), holder);
}

/// What is known of the key's response, and whether an upstream has it.
async fn sought(history: &History, keeper: &Arc<HistoryKeeper>, id: &str) -> Option<(Option<String>, bool)> {
    keeper.seek("key", id).await.expect("an answer");
    let known = history.get("key", id)?;
    let text = known.documents.map(|copy| {
        assert_eq!((&copy.items[..], copy.tree), (&b"[\"question\"]"[..], 7));
        let text = String::from_utf8(copy.response.to_vec()).expect("text");
        text.trim_start_matches("{\"output\":[\"").trim_end_matches("\"]}").to_owned()
    });
    Some((text, known.holder.is_some()))
}

#[tokio::test]
async fn locations_survive_a_restart_per_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = database(&folder);
    let (first, keeper) = history(&store);
    for id in ["a", "b", "c"] {
        first.keep(&"key".into(), id.to_owned(), None, Some(holder()));
    }
    assert!(first.remove("key", "b"));
    assert!(keeper.written().await);
    first.keep(&"other".into(), "d".to_owned(), None, Some(holder()));
    assert!(first.remove("key", "c"));
    assert!(keeper.written().await);

    let second = Arc::new(History::new(true));
    let sealer = Sealer::new([7; 32]);
    let keeper = HistoryKeeper::new(Arc::clone(&second), Arc::clone(&store), sealer, || 100, None);
    assert!(!second.is_complete());
    // Changes from before the load are newer.
    second.keep(&"third".into(), "a".to_owned(), None, Some(holder()));
    keeper.settle().await.expect("read");
    assert!(second.is_complete() && second.get("third", "a").is_some() && second.get("key", "a").is_none());
    assert!(second.get("key", "b").is_none() && second.get("key", "c").is_none());
    let known = second.get("other", "d").and_then(|known| known.holder).expect("its place");
    assert_eq!((&*known.upstream, known.key, &*known.model), ("one", Some(2), "mine"));
    assert!(second.get("key", "d").is_none());
}

#[tokio::test]
async fn changes_of_another_gateway_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, other) = (database(&folder), database(&folder));
    let ((first, writing), (second, reading)) = (history(&one), history(&other));
    keep(&first, "a", "one", Some(holder()));
    keep(&first, "b", "two", None);
    assert!(writing.written().await);
    reading.seek("other", "a").await.expect("an answer");
    assert!(second.get("other", "a").is_none());
    for _ in 0..2 {
        assert_eq!(sought(&second, &reading, "a").await, Some((Some("one".to_owned()), true)));
        assert_eq!(sought(&second, &reading, "b").await, Some((Some("two".to_owned()), false)));
    }
    // Replaced there, deleted here: both gateways learn of both.
    keep(&first, "a", "newer", None);
    assert!(writing.written().await);
    assert_eq!(sought(&second, &reading, "a").await, Some((Some("newer".to_owned()), false)));
    assert!(second.remove("key", "b") && second.remove("key", "a"));
    assert!(reading.written().await);
    for id in ["a", "b"] {
        assert_eq!(sought(&first, &writing, id).await, None, "{id}");
        assert_eq!(sought(&second, &reading, id).await, None, "{id}");
    }
}

#[tokio::test]
async fn copy_evicted_from_memory_is_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let (history, keeper) = history(&database(&folder));
    keep(&history, "first", "one", None);
    for number in 0..1_000 {
        keep(&history, &number.to_string(), "x", None);
        // Not all at once, which would take longer than requests wait.
        if number % 100 == 99 {
            assert!(keeper.written().await);
        }
    }
    assert!(history.get("key", "first").is_none());
    assert_eq!(sought(&history, &keeper, "first").await, Some((Some("one".to_owned()), false)));
}

#[tokio::test]
async fn waiting_for_a_lookup_slot_does_not_mark_the_store_unavailable() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = database(&folder);
    let ((first, writing), (second, reading)) = (history(&store), history(&store));
    keep(&first, "a", "one", None);
    assert!(writing.written().await);
    let others =
        reading.look_ups.acquire_many(u32::try_from(MAX_LOOK_UPS).expect("a few")).await.expect("places");
    assert!(reading.seek("key", "a").await.is_err() && !reading.health.rests());
    drop(others);
    assert_eq!(sought(&second, &reading, "a").await, Some((Some("one".to_owned()), false)));
}

#[tokio::test]
async fn busy_or_unavailable_store_delays_briefly_and_loses_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = database(&folder);
    let (history, keeper) = history(&store);
    keep(&history, "a", "one", None);
    assert!(keeper.written().await);
    let turns =
        keeper.look_ups.acquire_many(u32::try_from(MAX_LOOK_UPS).expect("a few")).await.expect("all turns");
    let started = std::time::Instant::now();
    assert_eq!(sought(&history, &keeper, "a").await, Some((Some("one".to_owned()), false)));
    assert!(keeper.seek("key", "unknown").await.is_err());
    drop(turns);
    // Changes made while it is away are not waited for, and not lost.
    keeper.health.fails("it is away");
    keep(&history, "b", "two", None);
    assert!(!keeper.written().await);
    assert_eq!(sought(&history, &keeper, "b").await, Some((Some("two".to_owned()), false)));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    let (second, reading) = self::history(&database(&folder));
    while sought(&second, &reading, "b").await.is_none() {
        assert!(started.elapsed() < Duration::from_mins(1), "it is not written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn stored_conversations_are_unreadable_without_the_pepper() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = database(&folder);
    let (first, keeper) = history(&store);
    keep(&first, "a", "a canary sings", None);
    assert!(keeper.written().await);
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
    }
    let second = Arc::new(History::new(true));
    let other = Sealer::new([8; 32]);
    let keeper = HistoryKeeper::start(Arc::clone(&second), Arc::clone(&store), other, || 100, None);
    assert_eq!(sought(&second, &keeper, "a").await, None);
}

#[tokio::test]
async fn in_memory_store_is_not_queried() {
    let store: Arc<dyn DurableStore> = Arc::new(SqlStore::in_memory());
    let history = Arc::new(History::new(false));
    let keeper = HistoryKeeper::start(Arc::clone(&history), store, Sealer::new([7; 32]), || 100, None);
    keep(&history, "a", "one", None);
    assert!(keeper.written().await && history.changed() == 0);
    assert_eq!(sought(&history, &keeper, "a").await, Some((Some("one".to_owned()), false)));
}
