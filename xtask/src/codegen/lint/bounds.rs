//! Bounds and whose they are: one that the source does not state is marked by `x-ours` beside it.

use serde_json::Value;

use crate::codegen::load::child;

/// Keywords that bound a value.
pub(crate) const BOUNDS: &[&str] = &[
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

/// What is wrong with the `x-ours` of a schema: it names keywords that stand beside it.
pub(super) fn marks(node: &Value, at: &str) -> Vec<(String, String)> {
    let Some(marks) = node.get("x-ours") else { return Vec::new() };
    let at = child(at, "x-ours");
    let Some(marks) = marks.as_array() else {
        return vec![(at, "x-ours is a list of keywords; correct it".to_owned())];
    };
    let names = marks.iter().map(|mark| mark.as_str().unwrap_or_default());
    let astray = names.filter(|name| node.get(*name).is_none() || name.starts_with("x-"));
    astray
        .map(|name| (at.clone(), format!("x-ours names {name:?}, which is no keyword beside it; remove it")))
        .collect()
}
