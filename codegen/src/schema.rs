//! Properties of a schema: its types, its variants, and the schemas in it.

use std::collections::HashSet;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::document::{Document, FORM, child, is_true, items_of, members_of, request_media, schema_name};

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
    let is_open = is_true(node, "x-open-union");
    let all = items_of(node, "oneOf");
    all.filter(move |variant| !is_open || variant.get("$ref").is_some())
}

/// Named variants of closed unions. Rust takes the first variant that fits, so a variant has to check the constant that
/// tells its kind.
pub(crate) fn closed_variants(document: &Document) -> HashSet<String> {
    fn collect(node: &Value, found: &mut HashSet<String>) {
        let is_open = is_true(node, "x-open-union");
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

/// The names that a schema requires.
pub(crate) fn required_names(node: &Value) -> impl Iterator<Item = &str> {
    items_of(node, "required").filter_map(Value::as_str)
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
    let mut properties = Map::new();
    let mut required: Vec<Value> = Vec::new();
    for part in items_of(node, "allOf") {
        let part = merge_all_of(document, document.follow(part)?)?;
        properties.extend(part["properties"].as_object().cloned().unwrap_or_default());
        required.extend(part["required"].as_array().cloned().unwrap_or_default());
    }
    properties.extend(node.get("properties").and_then(Value::as_object).cloned().unwrap_or_default());
    for name in items_of(node, "required") {
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

/// Keywords whose value is a schema.
const SCHEMA: &[&str] = &["items", "additionalProperties", "not", "if", "then", "else"];
/// Keywords whose value is a list of schemas.
const SCHEMAS: &[&str] = &["oneOf", "anyOf", "allOf"];

/// Calls `each` with the schemas directly inside a schema, and their pointers.
pub(crate) fn for_subschemas_mut(
    members: &mut Map<String, Value>,
    at: &str,
    mut each: impl FnMut(&mut Value, &str),
) {
    for (key, inner) in members {
        let at = child(at, key);
        match inner {
            inner if SCHEMA.contains(&key.as_str()) => each(inner, &at),
            Value::Array(all) if SCHEMAS.contains(&key.as_str()) => {
                for (index, inner) in all.iter_mut().enumerate() {
                    each(inner, &format!("{at}/{index}"));
                }
            }
            Value::Object(properties) if key == "properties" => {
                for (name, inner) in properties {
                    each(inner, &child(&at, name));
                }
            }
            _ => {}
        }
    }
}

/// Schemas directly inside a schema, with their pointers.
pub(crate) fn subschemas<'a>(node: &'a Value, at: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for key in SCHEMA {
        if let Some(inner) = node.get(key) {
            found.push((child(at, key), inner));
        }
    }
    for key in SCHEMAS {
        for (index, inner) in items_of(node, key).enumerate() {
            found.push((format!("{at}/{key}/{index}"), inner));
        }
    }
    for (name, inner) in members_of(node, "properties") {
        found.push((child(&child(at, "properties"), name), inner));
    }
    found
}
