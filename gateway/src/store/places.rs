//! Where upstreams store responses, kept beyond the process: a client goes on with its conversation after a restart, and
//! no key gets at what is another's. Requests read memory; only one for a response that memory does not know asks the
//! store, where another gateway with the same store may have written it since.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, Semaphore};

use super::durable::{Store, StoreError};
use super::history::{Change, History, MOST_PLACES, is_id};
use crate::supervised::supervise;

/// How often changes are written: a crash loses those of half a second.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of requests that the store is asked for at once. Further ones wait for these.
const MOST_LOOK_UPS: usize = 4;
/// How long a request waits for the store.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps the history and the store in step.
pub(crate) struct PlaceKeeper {
    history: Arc<History>,
    store: Arc<dyn Store>,
    /// What the store does not have yet.
    waiting: Mutex<Vec<Change>>,
    look_ups: Semaphore,
}

/// The store does not say in time which responses there are.
#[derive(Debug)]
pub(crate) struct Untold;

impl PlaceKeeper {
    fn new(history: Arc<History>, store: Arc<dyn Store>) -> Self {
        let (waiting, look_ups) = (Mutex::default(), Semaphore::new(MOST_LOOK_UPS));
        Self { history, store, waiting, look_ups }
    }

    /// Starts a task that reads what lasted and writes what changes, until the keeper is gone. Needs a Tokio runtime.
    pub(crate) fn start(history: Arc<History>, store: Arc<dyn Store>) -> Arc<Self> {
        let keeper = Arc::new(Self::new(history, store));
        if keeper.history.lasts() {
            let weak = Arc::downgrade(&keeper);
            supervise("places", PAUSE, move || follow(Weak::clone(&weak)));
        }
        keeper
    }

    /// Learns from the store where a response of an API key is, unless memory knows it.
    pub(crate) async fn seek(&self, owner: &str, id: &str) -> Result<(), Untold> {
        if !self.history.lasts() || self.history.knows(id) || !is_id(id) {
            return Ok(());
        }
        let looking = async {
            let _turn = self.look_ups.acquire().await.map_err(|_| Untold)?;
            // Its own changes first: what was deleted here is not found again.
            self.settle().await.map_err(|_| Untold)?;
            let place = self.store.place(owner, id).await.map_err(|_| Untold)?;
            self.history.recall(place.into_iter().collect());
            Ok(())
        };
        tokio::time::timeout(PATIENCE, looking).await.unwrap_or(Err(Untold))
    }

    /// Reads what lasted, if that has not been done, and writes what waits. Errors: the store fails; it waits again.
    pub(crate) async fn settle(&self) -> Result<(), StoreError> {
        if !self.history.is_complete() {
            self.history.recall(self.store.places().await?);
        }
        let mut waiting = self.waiting.lock().await;
        waiting.extend(self.history.take_changes());
        // The newest matter most.
        let excess = waiting.len().saturating_sub(MOST_PLACES);
        waiting.drain(..excess);
        if !waiting.is_empty() {
            self.store.change_places(&waiting).await?;
            waiting.clear();
        }
        Ok(())
    }
}

async fn follow(keeper: Weak<PlaceKeeper>) {
    let mut failing = false;
    while let Some(keeper) = keeper.upgrade() {
        let settled = keeper.settle().await;
        drop(keeper);
        match &settled {
            Err(error) if !failing => tracing::warn!("{error}: places of stored responses are not kept"),
            Ok(()) if failing => tracing::info!("places of stored responses are kept again"),
            _ => {}
        }
        failing = settled.is_err();
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SqlStore;
    use crate::store::history::Holder;

    fn holder() -> Holder {
        Holder { upstream: "one".into(), key: Some(2), model: "mine".into() }
    }

    fn history(store: &Arc<dyn Store>) -> (Arc<History>, PlaceKeeper) {
        let history = Arc::new(History::new(true));
        let keeper = PlaceKeeper::new(Arc::clone(&history), Arc::clone(store));
        (history, keeper)
    }

    #[tokio::test]
    async fn places_outlive_the_process_each_for_its_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> =
            Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
        let (first, keeper) = history(&store);
        for id in ["a", "b", "c"] {
            first.keep(&"key".into(), id.to_owned(), None, Some(holder()));
        }
        assert!(first.remove("key", "b"));
        keeper.settle().await.expect("written");
        first.keep(&"other".into(), "d".to_owned(), None, Some(holder()));
        assert!(first.remove("key", "c"));
        keeper.settle().await.expect("written");

        let (second, keeper) = history(&store);
        assert!(!second.is_complete());
        // What came before the reading is newer.
        second.keep(&"third".into(), "a".to_owned(), None, Some(holder()));
        keeper.settle().await.expect("read");
        assert!(
            second.is_complete() && second.get("third", "a").is_some() && second.get("key", "a").is_none()
        );
        assert!(second.get("key", "b").is_none() && second.get("key", "c").is_none());
        let known = second.get("other", "d").and_then(|known| known.holder).expect("its place");
        assert_eq!((&*known.upstream, known.key, &*known.model), ("one", Some(2), "mine"));
        assert!(second.get("key", "d").is_none());
    }

    #[tokio::test]
    async fn what_another_gateway_stored_is_found_and_what_was_deleted_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let store: Arc<dyn Store> =
            Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
        let ((first, writing), (second, reading)) = (history(&store), history(&store));
        reading.settle().await.expect("read");
        for id in ["a", "b"] {
            first.keep(&"key".into(), id.to_owned(), None, Some(holder()));
        }
        writing.settle().await.expect("written");
        assert!(second.get("key", "a").is_none());
        reading.seek("other", "a").await.expect("an answer");
        assert!(second.get("other", "a").is_none() && second.get("key", "a").is_none());
        reading.seek("key", "a").await.expect("an answer");
        assert!(second.get("key", "a").is_some() && second.get("key", "b").is_none());
        assert!(second.remove("key", "a"));
        reading.seek("key", "a").await.expect("an answer");
        assert!(second.get("key", "a").is_none());
        // A store that is busy stops nobody for long.
        let turns = reading.look_ups.acquire_many(4).await.expect("all turns");
        assert!(reading.seek("key", "b").await.is_err());
        drop(turns);
        reading.seek("key", "b").await.expect("an answer");
        assert!(second.get("key", "b").is_some());
    }
}
