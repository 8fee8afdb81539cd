//! The supported types of values: one type, or a oneOf of several.

use serde_json::Value;

use super::Problems;
use crate::document::{Document, child, items_of};

const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Reports problems with the type of a schema.
pub(super) fn lint_types(document: &Document, node: &Value, at: &str, problems: &mut Problems) {
    let mut report = |key: &str, message: String| problems.report(&child(at, key), message);
    let names: Vec<&Value> = match node.get("type") {
        Some(Value::Array(several)) => several.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    for name in &names {
        match name.as_str() {
            Some(word) if TYPES.contains(&word) => {}
            Some(word) => report("type", format!("`{word}` is no type; correct it")),
            None if name.is_null() => report("type", "null is a word here; quote it: \"null\"".to_owned()),
            None => report("type", format!("{name} is no type; write a word")),
        }
    }
    let others: Vec<&str> =
        names.iter().filter_map(|name| name.as_str()).filter(|name| *name != "null").collect();
    if others.len() > 1 {
        report("type", format!("{} are several types; write a oneOf", others.join(" and ")));
    }
    // In a oneOf it is what makes the rest optional, in a condition what is ruled out; alone it says nothing.
    if others.is_empty() && !names.is_empty() && names.iter().all(|name| name.as_str() == Some("null")) {
        let is_alternative = at.rsplit('/').nth(1) == Some("oneOf") || at.ends_with("/not");
        if !is_alternative {
            report(
                "type",
                "a schema that allows only null is not supported; write a oneOf, or remove it".to_owned(),
            );
        }
    }
    match node.get("const") {
        None | Some(Value::String(_) | Value::Bool(_) | Value::Number(_)) => {}
        Some(_) => report("const", "a constant is a string, a number or a boolean; write it so".to_owned()),
    }
    for key in ["enum", "x-extensible-enum"] {
        for value in items_of(node, key).filter_map(Value::as_str) {
            if !value.contains(|c: char| c.is_ascii_alphanumeric()) {
                let message = format!(
                    "`{value}` has no letter or digit to name it by; use a plain string with a pattern"
                );
                report(key, message);
            }
        }
    }
    for key in ["oneOf", "x-extensible-enum"] {
        if node.get(key).is_some() && node.get("properties").is_some() {
            report(key, format!("{key} stands beside properties; move one into a schema of its own"));
        }
    }
    for (index, part) in items_of(node, "allOf").enumerate() {
        let Ok(part) = document.follow(part) else { continue };
        let has = |key: &str| part.get(key).is_some();
        let is_object = part.get("type").is_none_or(|name| *name == "object");
        let is_map = part.get("additionalProperties").is_some_and(Value::is_object);
        let reason = if has("oneOf") || has("anyOf") && has("properties") {
            "a choice of types would be lost; make the oneOf the schema, and add the members to each variant"
        } else if is_map {
            "the type of further members would be lost; move additionalProperties beside allOf"
        } else if !is_object || has("enum") || has("x-extensible-enum") {
            "only objects are joined; write the $ref alone, beside the description"
        } else {
            continue;
        };
        problems.report(&format!("{at}/allOf/{index}"), reason);
    }
}
