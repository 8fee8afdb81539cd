//! Responses that a later request may go on from by `previous_response_id`: kept in memory, within bounds.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Most responses kept.
const MOST_RESPONSES: usize = 1_000;
/// Most bytes of JSON kept, all responses together.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The kept conversations by response id.
#[derive(Default)]
pub(crate) struct History {
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Items of the conversation and their size as JSON.
    conversations: HashMap<String, (Vec<Value>, usize)>,
    /// Oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl History {
    /// Keeps the items of a conversation up to and with this response. The oldest give way.
    pub(super) fn keep(&self, id: String, items: Vec<Value>) {
        let size = items.iter().map(|item| item.to_string().len()).sum();
        if size > MOST_BYTES {
            return;
        }
        let mut guard = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *guard;
        kept.bytes += size;
        kept.conversations.insert(id.clone(), (items, size));
        kept.order.push_back(id);
        while kept.order.len() > MOST_RESPONSES || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some((_, size)) = kept.conversations.remove(&oldest) {
                kept.bytes -= size;
            }
        }
    }

    /// Forgets a response; whether it was kept.
    pub(super) fn remove(&self, id: &str) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, size)) = kept.conversations.remove(id) else { return false };
        kept.bytes -= size;
        kept.order.retain(|known| known != id);
        true
    }

    pub(super) fn get(&self, id: &str) -> Option<Vec<Value>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.conversations.get(id).map(|(items, _)| items.clone())
    }
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
}
