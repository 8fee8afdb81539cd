//! A request may state only what `core/src/wire/limits` checks. That code reads the schemas when the first request arrives: a
//! keyword that it cannot read would fail every validated call.

use regex::Regex;
use serde_json::Value;

use super::{Problem, Problems};
use crate::document::{Document, METHODS, child};
use crate::model::Api;
use crate::schema::subschemas;

/// Keywords that nothing checks in requests, each with the fix.
const UNCHECKED: &[(&str, &str)] = &[
    ("multipleOf", "state it in the description"),
    ("uniqueItems", "state it in the description"),
    ("dependentRequired", "write if: {required: [one]}, then: {required: [other]}"),
];

/// Keywords whose value is a count.
const COUNTS: &[&str] = &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];

/// What requests state and cannot be checked.
pub(super) fn lint_requests(document: &Document, api: &Api) -> Vec<Problem> {
    let mut problems = Problems::of(&document.name);
    for name in api.schemas.values().filter(|schema| schema.in_request).map(|schema| &schema.name) {
        // Hoisted inline objects are checked in place.
        if let Some(node) = document.schema(name) {
            check(node, &child("/components/schemas", name), &mut problems);
        }
    }
    parameters(document.root.pointer("/components/parameters"), "/components/parameters", &mut problems);
    for (path, item) in document.members("/paths") {
        let at = child("/paths", path);
        parameters(item.get("parameters"), &child(&at, "parameters"), &mut problems);
        for method in METHODS {
            let own = item.get(*method).and_then(|operation| operation.get("parameters"));
            parameters(own, &format!("{at}/{method}/parameters"), &mut problems);
        }
    }
    problems.found
}

/// `all`: the parameters, by name or in order.
fn parameters(all: Option<&Value>, at: &str, problems: &mut Problems) {
    let named = all.and_then(Value::as_object).into_iter().flatten();
    let named = named.map(|(name, parameter)| (child(at, name), parameter));
    let listed = all.and_then(Value::as_array).into_iter().flatten().enumerate();
    let listed = listed.map(|(index, parameter)| (format!("{at}/{index}"), parameter));
    for (at, parameter) in named.chain(listed) {
        if let Some(schema) = parameter.get("schema") {
            check(schema, &child(&at, "schema"), problems);
        }
    }
}

fn check(node: &Value, at: &str, problems: &mut Problems) {
    let mut report = |key: &str, message: String| problems.report(&child(at, key), message);
    for (key, way_out) in UNCHECKED {
        if node.get(key).is_some() {
            report(key, format!("nothing checks {key} in requests; {way_out}"));
        }
    }
    for key in COUNTS {
        if node.get(key).is_some_and(|count| count.as_u64().is_none()) {
            report(key, format!("{key} is a whole number from 0; correct it"));
        }
    }
    if let Some(Err(error)) = node.get("pattern").and_then(Value::as_str).map(Regex::new) {
        // The last line of the error says what is wrong; the others show the pattern.
        let error = error.to_string();
        let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        report(
            "pattern",
            format!(
                "requests cannot be checked against it: {reason}; write it without look-around and backreferences"
            ),
        );
    }
    for (at, inner) in subschemas(node, at) {
        check(inner, &at, problems);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::build::build;
    use crate::fixture::edited;

    /// The problems reported for a request member with this schema.
    fn problems(member: Value) -> Vec<String> {
        let sources = edited("/components/schemas/LineRequest/properties/weight", member);
        let api = build(&sources).expect("the fixture builds");
        let problems = lint_requests(&sources.openapi, &api);
        problems.into_iter().map(|problem| format!("{}: {}", problem.place, problem.message)).collect()
    }

    const WEIGHT: &str = "spec/openapi.yaml#/components/schemas/LineRequest/properties/weight";

    #[test]
    fn unchecked_request_keyword_is_rejected() {
        assert_eq!(problems(json!({"type": ["number", "null"], "minimum": 0, "format": "double"})), [""; 0]);
        assert_eq!(
            problems(json!({"type": ["number", "null"], "multipleOf": 2})),
            [format!(
                "{WEIGHT}/multipleOf: nothing checks multipleOf in requests; state it in the description"
            )]
        );
        let list = json!({"type": ["array", "null"], "items": {"type": "string", "maxLength": -1}});
        assert_eq!(
            problems(list),
            [format!("{WEIGHT}/items/maxLength: maxLength is a whole number from 0; correct it")]
        );
    }

    #[test]
    fn uncompilable_pattern_is_rejected() {
        let pattern = |pattern: &str| problems(json!({"type": ["string", "null"], "pattern": pattern}));
        assert_eq!(pattern("^[a-z]+$"), [""; 0]);
        let found = pattern("^(?!x)y");
        assert!(found[0].starts_with(&format!("{WEIGHT}/pattern: requests cannot be checked")), "{found:?}");
        assert!(found[0].contains("look-around"), "{found:?}");
    }

    #[test]
    fn request_rules_apply_to_parameters() {
        let parameters =
            json!([{"name": "page", "in": "query", "schema": {"type": "integer", "multipleOf": 10}}]);
        let sources = edited("/paths/~1v1~1lines/post/parameters", parameters);
        let api = build(&sources).expect("the fixture builds");
        let found = lint_requests(&sources.openapi, &api);
        assert_eq!(
            found.iter().map(|problem| problem.place.as_str()).collect::<Vec<_>>(),
            ["spec/openapi.yaml#/paths/~1v1~1lines/post/parameters/0/schema/multipleOf"]
        );
    }
}
