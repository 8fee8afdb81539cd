//! The findings, against another JSON Schema validator: the crate `jsonschema`, with the same schema.

use gatewright_report::{Rule, RuleKind, SCHEMA, Validator};
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

use super::mutation::{Choices, written};
use super::{seeds, valid};

fn oracle() -> jsonschema::Validator {
    let schema = serde_json::from_str(SCHEMA).expect("JSON");
    jsonschema::draft202012::options().should_validate_formats(true).build(&schema).expect("a schema")
}

/// Whether the rule is about parsing, which JSON Schema does not cover: another reader may ignore violations of it.
fn is_of_reading(rule: &str) -> bool {
    Rule::named(rule).is_some_and(|rule| rule.kind == RuleKind::Reading)
}

/// What the oracle finds, by pointer and keyword, in order.
fn theirs(oracle: &jsonschema::Validator, value: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for error in oracle.iter_errors(value) {
        let count = match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => unexpected.len(),
            _ => 1,
        };
        // One of several properties is required: we report that they are missing.
        let keyword = match error.kind().keyword() {
            "anyOf" => "required",
            keyword => keyword,
        };
        let one = (error.instance_path().as_str().to_owned(), keyword.to_owned());
        found.extend(std::iter::repeat_n(one, count));
    }
    found.sort_unstable();
    found
}

/// 2.12: the findings match those of another JSON Schema validator, by pointer and keyword.
#[test]
fn findings_match_another_validator() {
    let (bases, oracle) = (valid(), oracle());
    let validator = Validator::builder().max_findings(1000).build();
    let (mut valid, mut invalid) = (0, 0);
    for seed in seeds(4000) {
        let mut choices = Choices::new(seed);
        let document = written(&bases[choices.below(bases.len())], &mut choices);
        let shown = || String::from_utf8_lossy(&document).into_owned();
        let outcome = validator.check(&document);
        let Ok(value) = serde_json::from_slice(&document) else {
            assert!(!outcome.valid, "{}", shown());
            continue;
        };
        if outcome.violations.iter().any(|found| is_of_reading(found.rule)) {
            continue;
        }
        let mut ours: Vec<(String, String)> =
            outcome.violations.iter().map(|one| (one.pointer.clone(), one.rule.to_owned())).collect();
        ours.sort_unstable();
        assert_eq!(ours, theirs(&oracle, &value), "{}", shown());
        assert_eq!(outcome.valid, oracle.is_valid(&value), "{}", shown());
        *(if outcome.valid { &mut valid } else { &mut invalid }) += 1;
    }
    assert!(valid > 500 && invalid > 1000, "{valid} valid, {invalid} invalid documents");
}
