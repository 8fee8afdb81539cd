//! Requests: any JSON is checked against the limits of every operation without a panic, and every violation points to
//! a value that is there.

#![no_main]

use gatewright::{limits, operations};
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;

fuzz_target!(|body: &[u8]| -> Corpus {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return Corpus::Reject };
    for operation in operations::ALL {
        for violation in limits::check(operation, &body) {
            assert!(body.pointer(&violation.pointer).is_some(), "{violation:?}");
            assert!(!violation.to_string().is_empty());
        }
    }
    Corpus::Keep
});
