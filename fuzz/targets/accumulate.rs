//! Accumulators: whatever JSON documents a stream of any protocol brings, in whatever order, they add up to a document
//! without a panic, and what is added once is not counted twice.
//!
//! An input is JSON documents, one a line, as the data of the events.

#![no_main]

use gatewright::operations::{CREATE_CHAT_COMPLETION, CREATE_RESPONSE, STREAM_GENERATE_CONTENT};
use gatewright::{Accumulator, Operation};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// What an accumulator has; none before the first document.
type Document = Option<Value>;

fuzz_target!(|lines: &str| {
    for operation in [&CREATE_CHAT_COMPLETION, &CREATE_RESPONSE, &STREAM_GENERATE_CONTENT] {
        let whole = accumulate(operation, lines, false);
        assert_eq!(whole, accumulate(operation, lines, true), "looking changes nothing");
    }
});

/// The document of all lines; `look` asks for it after each of them as well.
fn accumulate(operation: &'static Operation, lines: &str, look: bool) -> Document {
    let mut accumulator = Accumulator::new(operation);
    for line in lines.lines() {
        let before = look.then(|| accumulator.document());
        let refused = accumulator.push_json(line).is_err();
        if let (true, Some(before)) = (refused, before) {
            assert_eq!(before, accumulator.document(), "what is no JSON changes nothing");
        }
    }
    let document = accumulator.document();
    assert!(document.as_ref().is_none_or(Value::is_object), "{document:?}");
    document
}
