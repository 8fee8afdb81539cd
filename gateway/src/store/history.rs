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
    responses: HashMap<Arc<str>, Documents>,
    /// Oldest first.
    order: VecDeque<Arc<str>>,
    bytes: usize,
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
    /// Stores a response, unless it is too large. Evicts the oldest ones.
    pub(crate) fn keep(&self, id: String, documents: Documents) {
        if documents.size() > LONGEST {
            return;
        }
        let id: Arc<str> = id.into();
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        kept.bytes += documents.size();
        kept.responses.insert(Arc::clone(&id), documents);
        kept.order.push_back(id);
        while kept.order.len() > MOST_RESPONSES || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(documents) = kept.responses.remove(&oldest) {
                kept.bytes -= documents.size();
            }
        }
    }

    /// Deletes a response. Returns whether it existed.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(documents) = kept.responses.remove(id) else { return false };
        kept.bytes -= documents.size();
        kept.order.retain(|known| **known != *id);
        true
    }

    /// The documents of a response, shared and not copied.
    pub(crate) fn get(&self, id: &str) -> Option<Documents> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).responses.get(id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(bytes: usize) -> Documents {
        Documents { response: vec![b' '; bytes].into(), items: Bytes::from_static(b"[]"), tree: 0 }
    }

    #[test]
    fn a_response_that_was_removed_takes_no_room() {
        let history = History::default();
        for number in 0..3 * MOST_RESPONSES {
            history.keep("a".to_owned(), documents(number));
            history.keep("b".to_owned(), documents(0));
            assert!(history.remove("a") && !history.remove("a"));
            assert!(history.get("a").is_none() && history.get("b").is_some());
            assert!(history.remove("b"));
        }
        let kept = history.kept.lock().expect("no test holds it");
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }

    #[test]
    fn the_oldest_responses_give_way() {
        let history = History::default();
        for number in 0..=MOST_RESPONSES {
            history.keep(number.to_string(), documents(number));
        }
        assert!(history.get("0").is_none());
        assert_eq!(history.get("1").map(|documents| documents.response.len()), Some(1));
    }

    #[test]
    fn one_response_takes_no_more_than_its_share() {
        let history = History::default();
        let beside = documents(0).size();
        history.keep("longest".to_owned(), documents(LONGEST - beside));
        history.keep("longer".to_owned(), documents(LONGEST - beside + 1));
        assert!(history.get("longest").is_some() && history.get("longer").is_none());
    }
}
