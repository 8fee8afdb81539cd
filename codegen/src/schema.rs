//! Properties of a schema: its types, its variants, and the schemas in it.

use std::collections::HashSet;

use anyhow::{Result, bail};
use serde_json::Value;

use super::document::{Document, FORM, child, request_media, schema_name};

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

/// A member of the body of a form that is a file, or a list of files.
pub(crate) struct FileMember {
    pub is_list: bool,
    pub is_nullable: bool,
}

/// The names of schemas that are sent as forms.
pub(crate) fn form_bodies(document: &Document) -> HashSet<String> {
    let media = document.operations().filter_map(|operation| request_media(operation.node));
    let forms = media.filter(|(kind, _)| *kind == FORM);
    let names = forms.filter_map(|(_, media)| schema_name(media.pointer("/schema/$ref")?.as_str()?));
    names.map(str::to_owned).collect()
}

/// What a member of the body of a form is, if it is a file: a string with `format: binary`.
pub(crate) fn file_member(document: &Document, node: &Value) -> Option<FileMember> {
    let is_one = |schema: &Value| {
        types(schema).is_ok_and(|(names, _)| names == ["string"])
            && schema.get("format").is_some_and(|format| format == "binary")
    };
    let (schema, is_nullable) = bare(document, node)?;
    if is_one(schema) {
        return Some(FileMember { is_list: false, is_nullable });
    }
    let (item, _) = bare(document, schema.get("items")?)?;
    is_one(item).then_some(FileMember { is_list: true, is_nullable })
}

/// A schema without references and without null, and whether it takes null.
pub(crate) fn bare<'doc>(document: &'doc Document, node: &'doc Value) -> Option<(&'doc Value, bool)> {
    let only = only_variant(node);
    let schema = document.follow(only).ok()?;
    let inner = only_variant(schema);
    let schema = document.follow(inner).ok()?;
    let has_null = |node: &Value| types(node).is_ok_and(|(_, null)| null) || variants(node).any(is_null);
    Some((schema, [node, only, inner, schema].into_iter().any(has_null)))
}

/// `{type: null}`, as a variant of a oneOf.
pub(crate) fn is_null(node: &Value) -> bool {
    node.get("type").and_then(Value::as_str) == Some("null")
}

/// The described variants of a `oneOf`: of an open union, all but the variant that stands for unknown kinds.
pub(crate) fn variants(node: &Value) -> impl Iterator<Item = &Value> {
    let is_open = node.get("x-open-union") == Some(&Value::Bool(true));
    let all = node.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    all.filter(move |variant| !is_open || variant.get("$ref").is_some())
}

/// Named variants of closed unions. Rust takes the first variant that fits, so a variant has to check the constant that
/// tells its kind.
pub(crate) fn closed_variants(document: &Document) -> HashSet<String> {
    fn collect(node: &Value, found: &mut HashSet<String>) {
        let is_open = node.get("x-open-union") == Some(&Value::Bool(true));
        let all = || variants(node).filter(|variant| !is_null(variant));
        if !is_open && all().count() > 1 {
            let names = all().filter_map(|variant| variant.get("$ref")?.as_str().and_then(schema_name));
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

/// The one variant beside null that a `oneOf` has; anything else as it is.
pub(crate) fn only_variant(node: &Value) -> &Value {
    let mut all = variants(node).filter(|variant| !is_null(variant));
    match (all.next(), all.next()) {
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
