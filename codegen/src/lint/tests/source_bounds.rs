//! The bounds that the source states, against the specification: a bound of ours is marked by `x-ours` and listed in gaps.md.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::gaps;
use crate::build::build;
use crate::fixture::own_sources;
use crate::schema::subschemas;

/// Keywords that bound a value.
const BOUNDS: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Every bound that the source states, with its section.
const STATED: &[(&str, &str, &str)] = &[
    ("ChatCompletionRequest.temperature", "`minimum` 0, `maximum` 2", "2.1"),
    ("ChatCompletionRequest.frequency_penalty", "`minimum` -2, `maximum` 2", "2.1"),
    ("ChatCompletionRequest.presence_penalty", "`minimum` -2, `maximum` 2", "2.1"),
    ("ChatCompletionRequest.stop", "`maxItems` 4", "2.1"),
    ("VideoGenerationRequest.webhook_url", "`format` `uri`", "2.6"),
    ("VideoOutput.resolution", "`pattern` `^[0-9]+x[0-9]+$`", "2.7"),
    ("ImageGenerationRequest.n", "`minimum` 1, `maximum` 10", "2.8"),
];

/// Member → its bounds in words: those that the source states, and ours.
#[derive(Default)]
struct BoundsByMember {
    stated: BTreeMap<String, (Vec<String>, String)>,
    ours: BTreeMap<String, Vec<String>>,
}

impl BoundsByMember {
    fn walk(&mut self, node: &Value, member: &str, source: &str) {
        let source = node.get("x-source").and_then(Value::as_str).unwrap_or(source);
        let is_marked = |keyword: &str| {
            node["x-ours"].as_array().is_some_and(|marks| marks.iter().any(|mark| mark == keyword))
        };
        for (keyword, value) in node.as_object().into_iter().flatten() {
            if !BOUNDS.contains(&keyword.as_str()) {
                continue;
            }
            let bound = match (value.as_f64(), value.as_str()) {
                (Some(number), _) => format!("`{keyword}` {number}"),
                (_, Some(text)) => format!("`{keyword}` `{text}`"),
                _ => format!("`{keyword}`"),
            };
            if source == "ours" || is_marked(keyword) {
                self.ours.entry(member.to_owned()).or_default().push(bound);
            } else {
                let entry = self.stated.entry(member.to_owned()).or_default();
                entry.0.push(bound);
                source.clone_into(&mut entry.1);
            }
        }
        for (pointer, inner) in subschemas(node, "") {
            let member = match pointer.strip_prefix("/properties/") {
                Some(name) => format!("{member}.{name}"),
                None => member.to_owned(),
            };
            self.walk(inner, &member, source);
        }
    }
}

fn found(only_requests: bool) -> BoundsByMember {
    let sources = own_sources();
    let api = build(&sources).expect("it builds");
    let mut found = BoundsByMember::default();
    for (name, node) in sources.openapi.members("/components/schemas") {
        if !only_requests || api.schemas[name].in_request {
            found.walk(node, name, "");
        }
    }
    found
}

#[test]
fn unmarked_bounds_are_stated_by_the_source() {
    // 2.1 to 2.11 and 8, line by line.
    let stated: BTreeSet<(String, String, String)> = found(false)
        .stated
        .into_iter()
        .map(|(member, (bounds, source))| (member, bounds.join(", "), source))
        .collect();
    let expected: BTreeSet<(String, String, String)> = STATED
        .iter()
        .map(|(member, bounds, source)| ((*member).to_owned(), (*bounds).to_owned(), (*source).to_owned()))
        .collect();
    assert_eq!(stated, expected, "mark a bound of ours by x-ours; one of the source belongs into STATED");
}

#[test]
fn our_request_bounds_are_listed_in_gaps() {
    let listed = gaps("Bounds of requests that are ours");
    let ours: BTreeSet<(String, String)> =
        found(true).ours.into_iter().map(|(member, bounds)| (member, bounds.join(", "))).collect();
    assert_eq!(listed, ours, "spec/gaps.md lists the bounds of ours, spec/openapi.yaml has them");
}
