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
    use serde_json::json;

    use super::*;

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
