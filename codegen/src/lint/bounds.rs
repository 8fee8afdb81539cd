//! Bounds and their origin: a bound that the source does not state is marked with `x-ours`.

use serde_json::Value;

use super::Problems;
use crate::document::child;

/// Reports what is wrong with `x-ours`, `x-pattern-words` and `x-added` of a schema.
pub(super) fn lint_origins(node: &Value, at: &str, problems: &mut Problems) {
    marks(node, at, problems);
    if let Some(wrong) = pattern_words(node) {
        problems.report(at, wrong);
    }
    if let Some(wrong) = addition(node) {
        problems.report(&child(at, "x-added"), wrong);
    }
}

/// `x-ours` must name keywords of the same schema.
fn marks(node: &Value, at: &str, problems: &mut Problems) {
    let Some(marks) = node.get("x-ours") else { return };
    let at = child(at, "x-ours");
    let Some(marks) = marks.as_array() else {
        return problems.report(&at, "x-ours is a list of keywords; correct it");
    };
    for name in marks.iter().map(|mark| mark.as_str().unwrap_or_default()) {
        if node.get(name).is_none() || name.starts_with("x-") {
            problems.report(&at, format!("x-ours names {name:?}, which is no keyword beside it; remove it"));
        }
    }
}

/// `x-pattern-words` must describe what the pattern accepts.
fn pattern_words(node: &Value) -> Option<&'static str> {
    let words = node.get("x-pattern-words").map(|words| words.as_str().filter(|words| !words.is_empty()));
    match (node.get("pattern").is_some(), words) {
        (true, Some(Some(_))) | (false, None) => None,
        (true, None) => {
            Some("the pattern has no x-pattern-words; say in words what it takes, as messages will")
        }
        (true, Some(None)) => Some("x-pattern-words is no text; correct it"),
        (false, Some(_)) => Some("x-pattern-words stands beside no pattern; remove it"),
    }
}

/// `x-added` must be text, and the source must not be ours.
fn addition(node: &Value) -> Option<&'static str> {
    let added = node.get("x-added")?;
    if added.as_str().is_none_or(str::is_empty) {
        return Some("x-added is no text; say in words what is ours");
    }
    let is_ours = node.get("x-source").is_some_and(|source| source == "ours");
    is_ours.then_some("all of it is ours by its x-source; remove x-added")
}

#[cfg(test)]
mod tests {
    //! The specification itself: what the source states, against what is marked as ours and listed in gaps.md.

    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::build::build;
    use crate::load::Sources;
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

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace")
    }

    fn found(only_requests: bool) -> BoundsByMember {
        let sources = Sources::read(root()).expect("the specification can be read");
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
            .map(|(member, bounds, source)| {
                ((*member).to_owned(), (*bounds).to_owned(), (*source).to_owned())
            })
            .collect();
        assert_eq!(stated, expected, "mark a bound of ours by x-ours; one of the source belongs into STATED");
    }

    #[test]
    fn our_request_bounds_are_listed_in_gaps() {
        let gaps = std::fs::read_to_string(root().join("spec/gaps.md")).expect("spec/gaps.md");
        let (_, table) = gaps.split_once("## Bounds of requests that are ours").expect("the section");
        let table = table.split("\n## ").next().unwrap_or_default();
        let mut listed = BTreeSet::new();
        for row in table.lines().filter(|line| line.starts_with("| ") && line.contains(" | `")) {
            let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
            let [_, member, bounds, why] = cells.as_slice() else { panic!("four cells: {row}") };
            assert!(!why.is_empty(), "{row}");
            assert!(
                listed.insert((member.trim_matches('`').to_owned(), bounds.replace("\\|", "|"))),
                "twice: {row}"
            );
        }
        let ours: BTreeSet<(String, String)> =
            found(true).ours.into_iter().map(|(member, bounds)| (member, bounds.join(", "))).collect();
        assert_eq!(listed, ours, "spec/gaps.md lists the bounds of ours, spec/openapi.yaml has them");
    }

    #[test]
    fn x_ours_naming_a_missing_keyword_is_reported() {
        let node = json!({"type": "integer", "minimum": 1, "x-ours": ["minimum", "maximum"]});
        let problems = |node: &Value| {
            let mut problems = Problems::of("spec/openapi.yaml");
            marks(node, "/a", &mut problems);
            problems.found
        };
        let [problem] = &problems(&node)[..] else { panic!("one problem") };
        assert_eq!(problem.message, "x-ours names \"maximum\", which is no keyword beside it; remove it");
        assert_eq!(problems(&json!({"x-ours": "minimum"})).len(), 1);
    }

    #[test]
    fn x_added_is_text_and_excludes_source_ours() {
        let wrong = |node: Value| addition(&node);
        assert_eq!(wrong(json!({"type": "string", "x-added": "null"})), None);
        assert_eq!(
            wrong(json!({"x-added": ["null"]})),
            Some("x-added is no text; say in words what is ours")
        );
        assert_eq!(
            wrong(json!({"x-source": "ours", "x-added": "null"})),
            Some("all of it is ours by its x-source; remove x-added")
        );
    }

    #[test]
    fn pattern_requires_a_description_in_words() {
        let wrong = |node: Value| pattern_words(&node);
        assert_eq!(wrong(json!({"pattern": "^[0-9]+$", "x-pattern-words": "digits"})), None);
        assert_eq!(wrong(json!({"type": "string"})), None);
        let expected = "the pattern has no x-pattern-words; say in words what it takes, as messages will";
        assert_eq!(wrong(json!({"pattern": "^[0-9]+$"})), Some(expected));
        assert_eq!(
            wrong(json!({"pattern": "^[0-9]+$", "x-pattern-words": ""})),
            Some("x-pattern-words is no text; correct it")
        );
        assert_eq!(
            wrong(json!({"x-pattern-words": "digits"})),
            Some("x-pattern-words stands beside no pattern; remove it")
        );
    }
}
