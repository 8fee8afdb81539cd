//! Responses that a later request may go on from by `previous_response_id`: kept in memory, within bounds.
//!
//! Kept as the bytes of their JSON, not as trees: a tree takes up to forty times its text, and the bound would count
//! something else than what is held.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

/// Most responses kept.
const MOST_RESPONSES: usize = 1_000;
/// Most bytes of memory kept, all responses together.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// What a response takes beside its items: its id and its places in the tables.
const OVERHEAD: usize = 256;

/// The kept conversations by response id.
#[derive(Default)]
pub(crate) struct History {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Items of each conversation, as a JSON array.
    conversations: HashMap<Arc<str>, Arc<[u8]>>,
    /// Oldest first.
    order: VecDeque<Arc<str>>,
    bytes: usize,
}

impl History {
    /// Keeps the items of a conversation up to and with this response. The oldest give way.
    pub(super) fn keep(&self, id: String, items: Vec<Value>) {
        let json = serde_json::to_vec(&items).expect("items are plain values");
        drop(items);
        if size(&json) > MOST_BYTES {
            return;
        }
        let (id, json): (Arc<str>, Arc<[u8]>) = (id.into(), json.into());
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        kept.bytes += size(&json);
        kept.conversations.insert(Arc::clone(&id), json);
        kept.order.push_back(id);
        while kept.order.len() > MOST_RESPONSES || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(json) = kept.conversations.remove(&oldest) {
                kept.bytes -= size(&json);
            }
        }
    }

    /// Forgets a response; whether it was kept.
    pub(super) fn remove(&self, id: &str) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(json) = kept.conversations.remove(id) else { return false };
        kept.bytes -= size(&json);
        kept.order.retain(|known| **known != *id);
        true
    }

    pub(super) fn get(&self, id: &str) -> Option<Vec<Value>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let json = Arc::clone(kept.conversations.get(id)?);
        // Others need not wait while it is read.
        drop(kept);
        serde_json::from_slice(&json).ok()
    }
}

fn size(json: &[u8]) -> usize {
    OVERHEAD + json.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_response_that_was_removed_takes_no_room() {
        let history = History::default();
        for number in 0..3 * MOST_RESPONSES {
            history.keep("a".to_owned(), vec![json!({ "number": number })]);
            history.keep("b".to_owned(), Vec::new());
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
            history.keep(number.to_string(), vec![json!({ "number": number })]);
        }
        assert_eq!(history.get("0"), None);
        assert_eq!(history.get("1"), Some(vec![json!({ "number": 1 })]));
    }

    #[test]
    fn a_conversation_as_deep_as_a_request_may_be_comes_back() {
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        let history = History::default();
        history.keep("deep".to_owned(), vec![deep.clone()]);
        assert_eq!(history.get("deep"), Some(vec![deep]));
    }
}
