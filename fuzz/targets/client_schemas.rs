//! Schemas that clients send: the simulator answers by them, or refuses, within its budget of steps and bytes.
//!
//! The first line is the question, the rest the schema.

#![no_main]

use gatewright_gateway::fuzzing::answer_by_schema;
use libfuzzer_sys::{Corpus, fuzz_target};
use serde_json::Value;

/// Steps and bytes allowed: a twentieth of what a request may cost, so that slow inputs show.
const BUDGET: (usize, usize) = (5_000_000, 1_600_000);
/// JSON escapes a character in six bytes at most.
const ESCAPED: usize = 6;

fuzz_target!(|input: &[u8]| -> Corpus {
    let Ok(input) = std::str::from_utf8(input) else { return Corpus::Reject };
    let Some((question, schema)) = input.split_once('\n') else { return Corpus::Reject };
    let Ok(schema) = serde_json::from_str::<Value>(schema) else { return Corpus::Reject };
    for spent in answer_by_schema(&schema, question, 2, BUDGET).into_iter().flatten() {
        assert!(spent.steps <= BUDGET.0 && spent.bytes <= BUDGET.1, "{spent:?}");
        // What was made was charged before.
        assert!(spent.answered.unwrap_or(0) <= ESCAPED * spent.bytes, "{spent:?}");
    }
    Corpus::Keep
});
