//! Requests: any JSON is checked against the limits of every operation without a panic, and every violation points to
//! a value that is there and is short.

#![no_main]

use gatewright::{limits, operations};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;

fuzz_target!(|body: &[u8]| -> Corpus {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return Corpus::Reject };
    for operation in operations::ALL {
        let violations = limits::check(operation, &body);
        assert!(violations.len() <= limits::MOST_VIOLATIONS);
        for violation in violations {
            assert!(violation.pointer.len() <= 256 && violation.message.len() <= 1_000, "{violation:?}");
            assert!(body.pointer(&violation.pointer).is_some(), "{violation:?}");
            assert!(!violation.to_string().is_empty());
        }
    }
    Corpus::Keep
});
