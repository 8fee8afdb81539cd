//! The limits against tests/vectors/limits.

use gatewright::{limits, operations};
use serde::Deserialize;
use serde_json::Value;

use crate::vectors;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    section: String,
    operation: String,
    body: Value,
    violations: Vec<Expected>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    pointer: String,
    rule: String,
}

#[test]
fn every_request_vector_is_accepted_or_refused_as_it_says() {
    let files = ["limits/requests.json", "limits/tools.json", "limits/native.json"];
    for case in files.into_iter().flat_map(vectors::read::<Case>) {
        let operation = operations::by_id(&case.operation).unwrap();
        let mut expected: Vec<_> =
            case.violations.iter().map(|v| (v.pointer.as_str(), v.rule.as_str())).collect();
        let violations = limits::check(operation, &case.body);
        let mut found: Vec<_> = violations.iter().map(|v| (v.pointer.as_str(), v.rule.as_str())).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{} ({})", case.name, case.section);
        assert!(violations.iter().all(|v| !v.message.is_empty() && !v.section.is_empty()), "{}", case.name);
    }
}
