//! The validator's usual road, which makes a tree of little or nothing, against the tree of the whole document, and its
//! verdict against another validator of JSON Schema: the crate `jsonschema`, with the same schema.

#![no_main]

use std::sync::LazyLock;

use gatewright::report::{Outcome, Rule, RuleKind, SCHEMA, Validator};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

static OURS: LazyLock<Validator> = LazyLock::new(Validator::default);
static THEIRS: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema")
});

fuzz_target!(|document: &[u8]| {
    let (fast, slow) = (OURS.validate(document), OURS.validate_by_tree(document));
    assert_eq!(fast.to_json(), slow.to_json());
    assert_eq!(fast.report, slow.report);
    if OURS.is_surely_sound(document) {
        assert!(slow.valid && slow.advisories.is_empty(), "{}", slow.to_json());
    }
    let Ok(value) = serde_json::from_slice::<Value>(document) else {
        assert!(!slow.valid, "what is no JSON is no report");
        return;
    };
    if !is_beyond_json_schema(&slow) && !has_numbers_that_round(document) && !has_dates_without_digits(&slow)
    {
        assert_eq!(slow.valid, THEIRS.is_valid(&value), "{}", slow.to_json());
    }
});

/// Whether a rule of reading is broken, such as that of repeated names, over which other readers pass.
fn is_beyond_json_schema(outcome: &Outcome) -> bool {
    let of_reading = |rule: &str| Rule::named(rule).is_some_and(|rule| rule.kind == RuleKind::Reading);
    outcome.violations.iter().any(|found| of_reading(found.rule))
}

/// Whether all that is found are dates such as `2026-0,-31T12:00:00Z`: the other validator takes some characters for digits.
fn has_dates_without_digits(outcome: &Outcome) -> bool {
    let of_a_date = |byte: u8| byte.is_ascii_digit() || b"\"-+:.TtZz ".contains(&byte);
    let is_one = |text: &String| !text.bytes().all(of_a_date);
    !outcome.valid
        && outcome
            .violations
            .iter()
            .all(|found| found.rule == "format" && found.found.as_ref().is_some_and(is_one))
}

/// Whether the document may have a number that is another one in 64 bits of floating point, in which the other validator
/// judges it: with sixteen digits, or an exponent of three.
fn has_numbers_that_round(document: &[u8]) -> bool {
    let of_a_number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-');
    document.split(|byte| !of_a_number(byte)).any(|number| {
        let mut parts = number.splitn(2, |byte| matches!(byte, b'e' | b'E'));
        let digits = |part: Option<&[u8]>| {
            part.unwrap_or_default().iter().filter(|byte| byte.is_ascii_digit()).count()
        };
        digits(parts.next()) > 15 || digits(parts.next()) > 2
    })
}
