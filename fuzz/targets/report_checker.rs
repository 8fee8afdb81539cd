//! The checker that reads a report once, against the tree and the schema: what it is sure of, they find nothing in, and
//! they make the same report of it.

#![no_main]

use gatewright::report::Validator;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|document: &[u8]| {
    let validator = Validator::default();
    if !validator.is_surely_sound(document) {
        return;
    }
    let (fast, slow) = (validator.validate(document), validator.validate_by_tree(document));
    assert!(slow.valid && slow.advisories.is_empty(), "{}", slow.to_json());
    assert_eq!(fast.to_json(), slow.to_json());
    assert_eq!(fast.report, slow.report);
});
