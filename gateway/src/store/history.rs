//! Stored responses, which later requests continue by `previous_response_id`: kept in memory, within limits.
//!
//! Stored as JSON text, not as trees: a tree takes up to forty times the memory of its text, and the limit would not
//! match the memory held. Response and items are separate documents, so that neither is nested deeper here than in the
//! request: whatever could be parsed once can be parsed again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

/// Maximum number of stored responses.
const MOST_RESPONSES: usize = 1_000;
/// Maximum memory of all stored responses, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Maximum size of a response and its items, in bytes.
pub(crate) const LONGEST: usize = 10 * 1024 * 1024;
/// Overhead of a response besides its documents, in bytes: its id and its table entries.
const OVERHEAD: usize = 256;

/// The stored responses by id.
#[derive(Default)]
pub(crate) struct History {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    responses: HashMap<Arc<str>, Stored>,
    /// Oldest first.
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

/// A response, and the id of the API key that it belongs to.
struct Stored {
    owner: Arc<str>,
    documents: Documents,
}

/// A response and its input items, as JSON.
#[derive(Clone)]
pub(crate) struct Documents {
    /// An object.
    pub(crate) response: Bytes,
    /// An array.
    pub(crate) items: Bytes,
    /// Memory of items and output once parsed, in bytes.
    pub(crate) tree: usize,
}

impl Documents {
    fn size(&self) -> usize {
        OVERHEAD + self.response.len() + self.items.len()
    }
}

impl History {
    /// Stores a response of an API key, unless it is too large. Evicts the oldest ones. Providers give ids, too: one that
    /// stands for a response already is stored anew, but never for another API key.
    pub(crate) fn keep(&self, owner: &Arc<str>, id: String, documents: Documents) {
        if documents.size() > LONGEST {
            return;
        }
        let id: Arc<str> = id.into();
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        match kept.responses.get(&id) {
            Some(stored) if stored.owner != *owner => return,
            Some(stored) => kept.bytes -= stored.documents.size(),
            None => kept.order.push_back(Arc::clone(&id)),
        }
        kept.bytes += documents.size();
        kept.responses.insert(id, Stored { owner: Arc::clone(owner), documents });
        while kept.order.len() > MOST_RESPONSES || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(stored) = kept.responses.remove(&oldest) {
                kept.bytes -= stored.documents.size();
            }
        }
    }

    /// Deletes a response. Returns whether the API key had it.
    pub(crate) fn remove(&self, owner: &str, id: &str) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.responses.get(id).is_none_or(|stored| *stored.owner != *owner) {
            return false;
        }
        let Some(stored) = kept.responses.remove(id) else { return false };
        kept.bytes -= stored.documents.size();
        kept.order.retain(|known| **known != *id);
        true
    }

    /// The documents of a response of an API key, shared and not copied.
    pub(crate) fn get(&self, owner: &str, id: &str) -> Option<Documents> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = kept.responses.get(id).filter(|stored| *stored.owner == *owner)?;
        Some(stored.documents.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(bytes: usize) -> Documents {
        Documents { response: vec![b' '; bytes].into(), items: Bytes::from_static(b"[]"), tree: 0 }
    }

    fn owner() -> Arc<str> {
        "key".into()
    }

    #[test]
    fn a_response_that_was_removed_takes_no_room() {
        let history = History::default();
        for number in 0..3 * MOST_RESPONSES {
            history.keep(&owner(), "a".to_owned(), documents(number));
            history.keep(&owner(), "b".to_owned(), documents(0));
            assert!(history.remove("key", "a") && !history.remove("key", "a"));
            assert!(history.get("key", "a").is_none() && history.get("key", "b").is_some());
            assert!(history.remove("key", "b"));
        }
        let kept = history.kept.lock().expect("no test holds it");
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }

    #[test]
    fn the_oldest_responses_give_way() {
        let history = History::default();
        for number in 0..=MOST_RESPONSES {
            history.keep(&owner(), number.to_string(), documents(number));
        }
        assert!(history.get("key", "0").is_none());
        assert_eq!(history.get("key", "1").map(|documents| documents.response.len()), Some(1));
    }

    #[test]
    fn one_response_takes_no_more_than_its_share() {
        let history = History::default();
        let beside = documents(0).size();
        history.keep(&owner(), "longest".to_owned(), documents(LONGEST - beside));
        history.keep(&owner(), "longer".to_owned(), documents(LONGEST - beside + 1));
        assert!(history.get("key", "longest").is_some() && history.get("key", "longer").is_none());
    }

    #[test]
    fn a_response_belongs_to_one_api_key() {
        let history = History::default();
        history.keep(&owner(), "a".to_owned(), documents(1));
        assert!(history.get("other", "a").is_none() && !history.remove("other", "a"));
        history.keep(&"other".into(), "a".to_owned(), documents(7));
        assert!(history.get("other", "a").is_none());
        assert_eq!(history.get("key", "a").map(|documents| documents.response.len()), Some(1));
        assert!(history.remove("key", "a"));
    }

    #[test]
    fn a_response_that_is_stored_anew_takes_its_room_once() {
        let history = History::default();
        history.keep(&owner(), "a".to_owned(), documents(9));
        history.keep(&owner(), "a".to_owned(), documents(2));
        assert_eq!(history.get("key", "a").map(|documents| documents.response.len()), Some(2));
        assert!(history.remove("key", "a"));
        let kept = history.kept.lock().expect("no test holds it");
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }
}
