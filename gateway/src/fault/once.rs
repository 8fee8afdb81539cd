//! Remembers which requests have failed once, so that they succeed when they are retried.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};

use gatewright_protocol::tree;
use serde_json::Value;

/// Maximum number of requests that are remembered. The oldest is evicted and would fail once more.
const MAX_ONCE_FAULTS: usize = 1000;
/// Maximum size in memory of a body that is compared as JSON, in bytes. Larger bodies are compared byte by byte.
const READ: usize = 8 << 20;

/// Digests of the requests that have failed and have not been retried yet.
#[derive(Debug, Default)]
pub(crate) struct FailedOnce {
    digests: RandomState,
    failed: Mutex<VecDeque<u64>>,
}

impl FailedOnce {
    /// Whether a request must fail: it is new, or it has already been retried since it failed. Bodies are compared as
    /// JSON, because some clients write members in another order when they retry.
    pub(crate) fn is_new(&self, request: impl Hash, body: &[u8]) -> bool {
        let text = std::str::from_utf8(body).ok().filter(|text| tree::bytes_of_text(text) <= READ);
        let digest = match text.and_then(|text| serde_json::from_str::<Value>(text).ok()) {
            Some(document) => self.digests.hash_one((request, document)),
            None => self.digests.hash_one((request, body)),
        };
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = failed.iter().position(|known| *known == digest) {
            failed.remove(place);
            return false;
        }
        if failed.len() == MAX_ONCE_FAULTS {
            failed.pop_front();
        }
        failed.push_back(digest);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fail_once_alternates_per_request_and_evicts_the_oldest() {
        let failed = FailedOnce::default();
        let verdicts = ["a", "b", "a", "a", "b"].map(|request| failed.is_new(request, b""));
        assert_eq!(verdicts, [true, true, false, true, false]);
        assert!((0..MAX_ONCE_FAULTS).all(|number| failed.is_new(number, b"")));
        assert!(failed.is_new("a", b""), "it was forgotten");
        assert_eq!(failed.failed.into_inner().expect("no panic").len(), MAX_ONCE_FAULTS);
    }

    #[test]
    fn request_identity_ignores_member_order_except_in_large_bodies() {
        let failed = FailedOnce::default();
        let is_new = |body: &str| failed.is_new("a", body.as_bytes());
        assert!(is_new(r#"{"a": {"b": 1, "c": [1, 2]}, "d": 2}"#));
        assert!(is_new(r#"{"a": {"b": 1, "c": [2, 1]}, "d": 2}"#), "elements in another order");
        assert!(!is_new(r#"{"d":2,"a":{"c":[1,2],"b":1}}"#));
        assert!(is_new("{"));
        assert!(is_new("{ "), "no JSON");
        assert!(!is_new("{"));
        let text = "x".repeat(READ);
        assert!(is_new(&format!(r#"{{"a": 1, "b": "{text}"}}"#)));
        assert!(is_new(&format!(r#"{{"b": "{text}", "a": 1}}"#)));
        assert!(!is_new(&format!(r#"{{"a": 1, "b": "{text}"}}"#)));
    }
}
