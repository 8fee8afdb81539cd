//! The explanations of rules.

use std::collections::BTreeSet;

use gatewright_report::{Outcome, RULES, Rule, RuleKind, Validator, validate};
use insta::assert_snapshot;
use serde_json::Value;

use crate::{bases, vectors};

/// The rules that a verdict names.
fn rules(outcome: &Outcome) -> BTreeSet<&'static str> {
    outcome.violations.iter().chain(&outcome.advisories).map(|finding| finding.rule).collect()
}

#[test]
fn exactly_the_rules_that_vectors_break_are_explained() {
    let broken: BTreeSet<&str> = vectors::cases()
        .iter()
        .flat_map(|case| rules(&vectors::validator(&case.options).check(&case.document)))
        .collect();
    let explained: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(explained, broken);
}

/// The smallest report with a different value at one place, which may be a new member.
fn with(pointer: &str, json: &str) -> Vec<u8> {
    let json = json.replace("… 2001 characters …", &"x".repeat(2001));
    let mut report: Value = serde_json::from_str(&bases::text("minimal")).expect("JSON");
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let value = serde_json::from_str(&json).expect("an example is JSON");
    match report.pointer_mut(parent).expect("the parent is there") {
        Value::Array(items) => items[name.parse::<usize>().expect("an index")] = value,
        parent => parent[name] = value,
    }
    serde_json::to_vec(&report).expect("JSON")
}

#[test]
fn examples_include_a_violation_and_a_valid_form() {
    for rule in RULES.iter().filter(|rule| rule.kind != RuleKind::Reading) {
        let Rule { name, pointer, wrong, right, .. } = rule;
        assert!(rules(&validate(&with(pointer, wrong))).contains(name), "{name}");
        let accepted = validate(&with(pointer, right));
        assert!(
            accepted.valid && accepted.advisories.is_empty(),
            "{name}: {:?} {:?}",
            accepted.violations,
            accepted.advisories
        );
    }
    for rule in RULES.iter().filter(|rule| rule.kind == RuleKind::Reading) {
        // Two examples are too long to be written out.
        let wrong = match rule.name {
            "depth" => "[".repeat(200),
            "size" => " ".repeat(101),
            _ => rule.wrong.to_owned(),
        };
        let validator = Validator::builder().max_bytes(100 + rule.wrong.len()).build();
        let validator =
            if rule.name == "size" { Validator::builder().max_bytes(100).build() } else { validator };
        let validator = if rule.name == "depth" { Validator::default() } else { validator };
        assert_eq!(rules(&validator.check(wrong.as_bytes())), BTreeSet::from([rule.name]));
    }
}

#[test]
fn explanation_reads_well() {
    assert_snapshot!(Rule::named("minimum").expect("a rule").to_text());
    assert_eq!(Rule::named("minimun"), None);
}
