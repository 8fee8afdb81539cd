//! Adopts specifications of other people. They state less than the house style, so what clients need beyond OpenAPI is derived;
//! and they state more than the generator reads, so what changes neither a request nor an answer is left out. Each change that a
//! reader should know is a note. What is neither derived nor left out meets the same lint as our own specification.

mod kinds;
mod names;
mod operations;

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::document::child;
use crate::schema::for_subschemas_mut;
use crate::vocabulary::{SCHEMA_KEYWORDS, is_document_extension};

/// `x-source` of everything in a specification that is its own source.
const THEIRS: &str = "theirs";

/// Keywords of a schema that types do not depend on.
const ANNOTATIONS: &[&str] =
    &["$anchor", "$comment", "$id", "$schema", "contentEncoding", "contentMediaType", "contentSchema"];

/// Objects whose members have names that the author chose.
const NAMED: &[&str] = &[
    "content",
    "headers",
    "parameters",
    "properties",
    "requestBodies",
    "scopes",
    "securitySchemes",
    "variables",
];

/// What was left out or derived, each with the number of its places and the first of them.
#[derive(Debug, Default)]
pub(super) struct Notes(IndexMap<String, (usize, String)>);

impl Notes {
    fn add(&mut self, at: &str, message: impl Into<String>) {
        self.0.entry(message.into()).or_insert_with(|| (0, at.to_owned())).0 += 1;
    }

    /// One line each.
    fn lines(self) -> Vec<String> {
        let line = |(message, (count, at)): (String, (usize, String))| match count {
            1 => format!("#{at}: {message}"),
            _ => format!("#{at} and {} more: {message}", count - 1),
        };
        self.0.into_iter().map(line).collect()
    }
}

/// Rewrites a document in place; returns the notes.
pub(super) fn adopt(document: &mut Value) -> Vec<String> {
    let mut notes = Notes::default();
    if !document.is_object() {
        return notes.lines();
    }
    if let Some(members) = document.as_object_mut() {
        if members.shift_remove("webhooks").is_some() {
            notes.add("/webhooks", "webhooks are left out: clients do not receive them");
        }
        if let Some(components) = members.get_mut("components").and_then(Value::as_object_mut) {
            // Reachable only from what is left out.
            for key in ["callbacks", "examples", "links", "pathItems"] {
                components.shift_remove(key);
            }
        }
    }
    outside(document, "", &mut notes);
    kinds::adopt(document, &mut notes);
    operations::adopt(document, &mut notes);
    names::adopt(document);
    for (name, node) in schemas(document) {
        let Some(members) = node.as_object_mut() else { continue };
        members.entry("x-source").or_insert_with(|| json!(THEIRS));
        let title = members.get("title").and_then(Value::as_str).filter(|title| !title.is_empty());
        let description = title.map_or_else(|| format!("The schema `{name}`."), str::to_owned);
        let own = members.entry("description").or_insert_with(|| json!(""));
        if own.as_str().is_some_and(|own| own.trim().is_empty()) {
            *own = json!(description);
        }
    }
    notes.lines()
}

/// The named schemas.
fn schemas(document: &mut Value) -> impl Iterator<Item = (&String, &mut Value)> {
    let all = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut);
    all.into_iter().flatten()
}

/// Everything except schemas: leaves out extensions of vendors and what clients make no calls from.
fn outside(node: &mut Value, at: &str, notes: &mut Notes) {
    match node {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                outside(item, &format!("{at}/{index}"), notes);
            }
        }
        Value::Object(members) => {
            let is_named = at.rsplit('/').next().is_some_and(|last| NAMED.contains(&last));
            if !is_named {
                leave_out(members, at, notes);
            }
            for (key, inner) in members {
                let at = child(at, key);
                match key.as_str() {
                    "schemas" if !is_named => {
                        for (name, inner) in inner.as_object_mut().into_iter().flatten() {
                            schema(inner, &child(&at, name), notes);
                        }
                    }
                    "schema" | "x-item-schema" if !is_named => schema(inner, &at, notes),
                    "example" | "examples" if !is_named => {}
                    _ => outside(inner, &at, notes),
                }
            }
        }
        _ => {}
    }
}

/// Members of the document, of a path item, an operation, a parameter or an answer.
fn leave_out(members: &mut Map<String, Value>, at: &str, notes: &mut Notes) {
    members.retain(|key, value| {
        let why = match key.as_str() {
            "callbacks" | "links" => "clients make no calls from it",
            "servers" if !at.is_empty() => "clients send every request to their base_url",
            "head" | "options" | "trace" if at.starts_with("/paths/") && value.is_object() => {
                "clients have no method for it"
            }
            "encoding" => "fields of a form are text, and a file has the media type that the caller says",
            _ if key.starts_with("x-") && !is_document_extension(key) => {
                "an extension that says nothing to this generator"
            }
            _ => return true,
        };
        notes.add(&child(at, key), format!("`{key}` is left out: {why}"));
        false
    });
}

/// A schema and those in it.
fn schema(node: &mut Value, at: &str, notes: &mut Notes) {
    let Value::Object(members) = node else { return };
    file_of_3_1(members);
    let one_way = |key: &str| -> Vec<String> {
        let all = members.get("properties").and_then(Value::as_object).into_iter().flatten();
        all.filter(|(_, inner)| inner[key] == true).map(|(name, _)| name.clone()).collect()
    };
    let (only_received, only_sent) = (one_way("readOnly"), one_way("writeOnly"));
    if let Some(Value::Array(required)) = members.get_mut("required") {
        let is_one_way = |name: &Value| only_received.iter().chain(&only_sent).any(|other| name == other);
        required.retain(|name| !is_one_way(name));
    }
    members.retain(|key, value| {
        let message = match key.as_str() {
            "readOnly" | "writeOnly" if value.is_boolean() => {
                if *value != json!(true) {
                    return false;
                }
                format!("`{key}` makes the member optional in both directions")
            }
            _ if ANNOTATIONS.contains(&key.as_str()) => return false,
            _ if key.starts_with("x-") && !SCHEMA_KEYWORDS.contains(&key.as_str()) => {
                format!("`{key}` is left out: an extension that says nothing to this generator")
            }
            _ => return true,
        };
        notes.add(&child(at, key), message);
        false
    });
    let is_text = |value: &Value| value.is_string() || value.is_null();
    if let Some(Value::Array(values)) = members.get("enum")
        && !values.iter().all(is_text)
    {
        members.shift_remove("enum");
        notes.add(
            &child(at, "enum"),
            "`enum` of numbers or booleans is left out: any value of the type is taken",
        );
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        let mut seen = HashSet::new();
        let has_name = |value: &str| value.contains(|c: char| c.is_ascii_alphanumeric());
        let mut words = values.iter().filter_map(Value::as_str);
        if !words.all(|value| has_name(value) && seen.insert(crate::names::variant(value))) {
            members.shift_remove("enum");
            notes.add(
                &child(at, "enum"),
                "`enum` is left out, any text is taken: two of its values have one name in Rust",
            );
        }
    }
    if members.get("format").is_some_and(|format| format == "int64") {
        notes.add(at, "`format: int64`: numbers beyond 2^53 lose digits in Node, as all numbers there");
    }
    if let Some(pattern) = members.get("pattern").and_then(Value::as_str)
        && !members.contains_key("x-pattern-words")
    {
        let words = format!("text that matches {pattern}");
        members.insert("x-pattern-words".to_owned(), json!(words));
    }
    choice(members);
    several_types(members);
    for_subschemas_mut(members, at, |inner, at| schema(inner, at, notes));
}

/// Bytes as they are in a form, which 3.1 writes without `format`. What is encoded or text is a string.
fn file_of_3_1(members: &mut Map<String, Value>) {
    let is_encoded = members.contains_key("contentEncoding") || members.contains_key("format");
    let is_text = |kind: &str| kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
    let kind = members.get("contentMediaType").and_then(Value::as_str);
    let is_string = members.get("type").is_none_or(|name| name == "string");
    if !is_encoded && is_string && kind.is_some_and(|kind| !is_text(kind)) {
        members.insert("type".to_owned(), json!("string"));
        members.insert("format".to_owned(), json!("binary"));
    }
}

/// `type: [integer, string]` is a choice, too, unless further keywords belong to one of the types.
fn several_types(members: &mut Map<String, Value>) {
    let Some(Value::Array(names)) = members.get("type") else { return };
    let has_several = names.iter().filter(|name| **name != "null").count() > 1;
    let is_plain = |key: &String| {
        ["type", "title", "description", "default", "deprecated", "example", "examples"]
            .contains(&key.as_str())
    };
    if has_several && members.keys().all(is_plain) {
        let variants = names.iter().map(|name| json!({"type": name})).collect();
        members.shift_remove("type");
        members.insert("oneOf".to_owned(), Value::Array(variants));
    }
}

/// `anyOf` of several types is a choice of them: types are those of `oneOf`. Conditions on members stay.
fn choice(members: &mut Map<String, Value>) {
    let is_condition = |variant: &Value| variant.get("required").is_some() && variant.get("type").is_none();
    let is_choice = |variants: &Value| variants.as_array().is_some_and(|all| !all.iter().all(is_condition));
    if members.get("anyOf").is_some_and(is_choice)
        && !members.contains_key("oneOf")
        && let Some(variants) = members.shift_remove("anyOf")
    {
        members.insert("oneOf".to_owned(), variants);
    }
}

#[cfg(test)]
mod tests;
