//! Bodies that are sent as forms: each member is one field of text, a file, or a list of either.

use serde_json::Value;

use crate::load::{Document, child};
use crate::lower::FILE_PART;
use crate::schema::{bare, file_member, form_bodies, is_null, merge_all_of, subschemas, types, variants};

/// What clients call a file in a request: in Rust, and in Python and TypeScript.
const NAMES: [&str; 2] = [FILE_PART, "FileArgument"];

/// Keywords that would be rules for the content of a file.
const OF_TEXT: &[&str] =
    &["minLength", "maxLength", "pattern", "const", "enum", "default", "x-extensible-enum"];

/// Problems with the schemas that are sent as forms.
pub(super) fn of_document(document: &Document) -> Vec<(String, String)> {
    let bodies = form_bodies(document);
    let mut problems = Vec::new();
    let mut has_files = false;
    for (name, node) in document.members("/components/schemas") {
        let at = child("/components/schemas", name);
        if !bodies.contains(name) {
            misplaced_brackets(node, &at, &mut problems);
            continue;
        }
        let Ok(merged) = merge_all_of(document, node) else { continue };
        let mut holds_file = false;
        for (property, inner) in merged["properties"].as_object().into_iter().flatten() {
            let at = child(&child(&at, "properties"), property);
            holds_file |= file_member(document, inner).is_some();
            problems.extend(of_member(document, inner, &at));
        }
        has_files |= holds_file;
        if holds_file && is_used_elsewhere(document, name) {
            let message = "a body with a file is sent as a form, and used nowhere else; give the other use a schema of its own";
            problems.push((at, message.to_owned()));
        }
    }
    for name in NAMES.iter().filter(|name| has_files && document.schema(name).is_some()) {
        let message = format!("`{name}` is what clients call a file in a request; rename the schema");
        problems.push((child("/components/schemas", name), message));
    }
    problems
}

fn of_member(document: &Document, node: &Value, at: &str) -> Vec<(String, String)> {
    let is_list =
        |node: &Value| bare(document, node).is_some_and(|(schema, _)| schema.get("items").is_some());
    let mut problems = Vec::new();
    let mut report = |key: &str, message: &str| problems.push((child(at, key), message.to_owned()));
    if let Some(brackets) = node.get("x-brackets")
        && (*brackets != true || !is_list(node))
    {
        report("x-brackets", "x-brackets is true, on a list; correct it, or remove it");
    }
    if file_member(document, node).is_some() {
        let item = bare(document, node).and_then(|(schema, _)| schema.get("items"));
        let rules = [Some(node), item].into_iter().flatten();
        for key in rules.flat_map(|schema| OF_TEXT.iter().filter(|key| schema.get(**key).is_some())) {
            report(key, "nothing checks the content of a file; state it in the description");
        }
    } else if !is_field(document, node)
        && !bare_item(document, node).is_some_and(|item| is_field(document, item))
    {
        let message = "a member of a form is one plain value, a file ({type: string, format: binary}), or a list of \
                       such; send anything else as JSON in a string, or as the body of another operation";
        problems.push((at.to_owned(), message.to_owned()));
    }
    problems
}

fn bare_item<'doc>(document: &'doc Document, node: &'doc Value) -> Option<&'doc Value> {
    bare(document, node)?.0.get("items")
}

/// Whether all values of a schema are text, numbers or switches.
fn is_field(document: &Document, node: &Value) -> bool {
    let Some((schema, _)) = bare(document, node) else { return false };
    if schema.get("oneOf").is_some() {
        return variants(schema)
            .filter(|form| !is_null(form))
            .all(|form| !is_union(document, form) && is_field(document, form));
    }
    if schema.get("const").is_some_and(|value| !value.is_null()) || schema.get("enum").is_some() {
        return true;
    }
    let is_plain = |name: &&str| ["boolean", "integer", "number", "string"].contains(name);
    types(schema).is_ok_and(|(names, _)| !names.is_empty() && names.iter().all(is_plain))
}

/// A union within a union could contain itself.
fn is_union(document: &Document, node: &Value) -> bool {
    bare(document, node).is_some_and(|(schema, _)| schema.get("oneOf").is_some())
}

fn misplaced_brackets(node: &Value, at: &str, problems: &mut Vec<(String, String)>) {
    if node.get("x-brackets").is_some() {
        let message = "x-brackets belongs to a list in the body of a form; remove it";
        problems.push((child(at, "x-brackets"), message.to_owned()));
    }
    for (at, inner) in subschemas(node, at) {
        misplaced_brackets(inner, &at, problems);
    }
}

/// Whether anything but bodies of forms refers to a schema.
fn is_used_elsewhere(document: &Document, name: &str) -> bool {
    let reference = format!("#/components/schemas/{name}");
    uses(&document.0, &reference, false)
}

/// in_form: whether the node is the content of a form.
fn uses(node: &Value, reference: &str, in_form: bool) -> bool {
    match node {
        Value::Object(members) => members.iter().any(|(key, inner)| match key.as_str() {
            "$ref" => !in_form && inner == reference,
            key => uses(inner, reference, key == crate::load::FORM || (in_form && key == "schema")),
        }),
        Value::Array(items) => items.iter().any(|inner| uses(inner, reference, false)),
        _ => false,
    }
}
