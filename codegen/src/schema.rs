//! Properties of a schema: its types, its forms, and the schemas in it.

use std::collections::HashSet;

use anyhow::{Result, bail};
use serde_json::Value;

use super::load::{Document, child, schema_name};

/// The non-null types of a schema, and whether null is among them.
pub(crate) fn types(node: &Value) -> Result<(Vec<&str>, bool)> {
    let all: Vec<&str> = match node.get("type") {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(many)) => many.iter().filter_map(Value::as_str).collect(),
        Some(other) => bail!("type {other} is neither a string nor a list"),
    };
    let nullable = all.contains(&"null");
    Ok((all.into_iter().filter(|name| *name != "null").collect(), nullable))
}

/// Formats that are checked in requests, by `core/src/wire/limits`. Others are documentation.
pub(crate) const CHECKED_FORMATS: &[&str] = &["uri"];

/// `{type: null}`, as a variant of a oneOf.
pub(crate) fn is_null(node: &Value) -> bool {
    node.get("type").and_then(Value::as_str) == Some("null")
}

/// The described variants of a `oneOf`: of an open union, all but the form that stands for unknown kinds.
pub(crate) fn variants(node: &Value) -> impl Iterator<Item = &Value> {
    let is_open = node.get("x-open-union") == Some(&Value::Bool(true));
    let all = node.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    all.filter(move |variant| !is_open || variant.get("$ref").is_some())
}

/// Named forms of closed unions. Rust takes the first form that fits, so a form has to check the constant that tells its kind.
pub(crate) fn closed_forms(document: &Document) -> HashSet<String> {
    fn collect(node: &Value, found: &mut HashSet<String>) {
        let is_open = node.get("x-open-union") == Some(&Value::Bool(true));
        let forms = || variants(node).filter(|form| !is_null(form));
        if !is_open && forms().count() > 1 {
            let names = forms().filter_map(|form| form.get("$ref")?.as_str().and_then(schema_name));
            found.extend(names.map(str::to_owned));
        }
        for (_, inner) in subschemas(node, "") {
            collect(inner, found);
        }
    }
    let mut found = HashSet::new();
    for (_, node) in document.members("/components/schemas") {
        collect(node, &mut found);
    }
    found
}

/// The one form beside null that a `oneOf` has; anything else as it is.
pub(crate) fn only_form(node: &Value) -> &Value {
    let mut forms = variants(node).filter(|variant| !is_null(variant));
    match (forms.next(), forms.next()) {
        (Some(only), None) => only,
        _ => node,
    }
}

/// An object schema with the properties and requirements of its `allOf` (recursively) beside its own.
pub(crate) fn merge_all_of(document: &Document, node: &Value) -> Result<Value> {
    let mut properties = serde_json::Map::new();
    let mut required: Vec<Value> = Vec::new();
    for part in node.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        let part = merge_all_of(document, document.follow(part)?)?;
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    properties.extend(node.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
    for name in node.get("required").and_then(Value::as_array).into_iter().flatten() {
        if !required.contains(name) {
            required.push(name.clone());
        }
    }
    let mut merged = node.as_object().cloned().unwrap_or_default();
    merged.shift_remove("allOf");
    merged.insert("properties".to_owned(), Value::Object(properties));
    merged.insert("required".to_owned(), Value::Array(required));
    Ok(Value::Object(merged))
}

/// Schemas directly inside a schema, with their pointers.
pub(crate) fn subschemas<'a>(node: &'a Value, at: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for key in ["items", "additionalProperties", "not", "if", "then", "else"] {
        if let Some(inner) = node.get(key) {
            found.push((child(at, key), inner));
        }
    }
    for key in ["oneOf", "anyOf", "allOf"] {
        for (index, inner) in node.get(key).and_then(Value::as_array).into_iter().flatten().enumerate() {
            found.push((format!("{at}/{key}/{index}"), inner));
        }
    }
    for (name, inner) in node.get("properties").and_then(Value::as_object).into_iter().flatten() {
        found.push((child(&child(at, "properties"), name), inner));
    }
    found
}
