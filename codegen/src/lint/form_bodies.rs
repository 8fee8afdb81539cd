//! Bodies that are sent as forms: each member is one field of text, a file, or a list of either.

use serde_json::Value;

use super::Problems;
use crate::document::{Document, FORM, child, members_of};
use crate::schema::{bare, file_member, form_bodies, is_null, merge_all_of, subschemas, types, variants};
use crate::vocabulary::FILE_PART;

/// What clients call a file in a request: in Rust, and in Python and TypeScript.
const NAMES: [&str; 2] = [FILE_PART, "FileArgument"];

/// Keywords that would be rules for the content of a file.
const TEXT_KEYWORDS: &[&str] =
    &["minLength", "maxLength", "pattern", "const", "enum", "default", "x-extensible-enum"];

/// Reports problems with the schemas that are sent as forms.
pub(super) fn lint_forms(document: &Document, problems: &mut Problems) {
    let bodies = form_bodies(document);
    let mut has_files = false;
    for (name, node) in document.members("/components/schemas") {
        let at = child("/components/schemas", name);
        if !bodies.contains(name) {
            lint_brackets(node, &at, problems);
            continue;
        }
        let Ok(merged) = merge_all_of(document, node) else { continue };
        let mut holds_file = false;
        for (property, inner) in members_of(&merged, "properties") {
            let at = child(&child(&at, "properties"), property);
            holds_file |= file_member(document, inner).is_some();
            lint_member(document, inner, &at, problems);
        }
        has_files |= holds_file;
        if holds_file && is_used_elsewhere(document, name) {
            let message = "a body with a file is sent as a form, and used nowhere else; give the other use a schema of its own";
            problems.report(&at, message);
        }
    }
    for name in NAMES.iter().filter(|name| has_files && document.schema(name).is_some()) {
        let message = format!("`{name}` is what clients call a file in a request; rename the schema");
        problems.report(&child("/components/schemas", name), message);
    }
}

fn lint_member(document: &Document, node: &Value, at: &str, problems: &mut Problems) {
    let is_list =
        |node: &Value| bare(document, node).is_some_and(|(schema, _)| schema.get("items").is_some());
    let mut report = |key: &str, message: &str| problems.report(&child(at, key), message);
    if let Some(brackets) = node.get("x-brackets")
        && (*brackets != true || !is_list(node))
    {
        report("x-brackets", "x-brackets is true, on a list; correct it, or remove it");
    }
    if file_member(document, node).is_some() {
        let item = bare(document, node).and_then(|(schema, _)| schema.get("items"));
        let rules = [Some(node), item].into_iter().flatten();
        for key in rules.flat_map(|schema| TEXT_KEYWORDS.iter().filter(|key| schema.get(**key).is_some())) {
            report(key, "nothing checks the content of a file; state it in the description");
        }
    } else if !is_field(document, node)
        && !bare_item(document, node).is_some_and(|item| is_field(document, item))
    {
        let message = "a member of a form is one plain value, a file ({type: string, format: binary}), or a list of \
                       such; send anything else as JSON in a string, or as the body of another operation";
        problems.report(at, message);
    }
}

fn bare_item<'doc>(document: &'doc Document, node: &'doc Value) -> Option<&'doc Value> {
    bare(document, node)?.0.get("items")
}

/// Whether all values of a schema are text, numbers or switches.
fn is_field(document: &Document, node: &Value) -> bool {
    let Some((schema, _)) = bare(document, node) else { return false };
    if schema.get("oneOf").is_some() {
        return variants(schema)
            .filter(|variant| !is_null(variant))
            .all(|variant| !is_union(document, variant) && is_field(document, variant));
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

/// Reports brackets outside forms.
fn lint_brackets(node: &Value, at: &str, problems: &mut Problems) {
    if node.get("x-brackets").is_some() {
        let message = "x-brackets belongs to a list in the body of a form; remove it";
        problems.report(&child(at, "x-brackets"), message);
    }
    for (at, inner) in subschemas(node, at) {
        lint_brackets(inner, &at, problems);
    }
}

/// Whether anything but bodies of forms refers to a schema.
fn is_used_elsewhere(document: &Document, name: &str) -> bool {
    let reference = format!("#/components/schemas/{name}");
    uses(&document.root, &reference, false)
}

/// in_form: whether the node is the content of a form.
fn uses(node: &Value, reference: &str, in_form: bool) -> bool {
    match node {
        Value::Object(members) => members.iter().any(|(key, inner)| match key.as_str() {
            "$ref" => !in_form && inner == reference,
            key => uses(inner, reference, key == FORM || (in_form && key == "schema")),
        }),
        Value::Array(items) => items.iter().any(|inner| uses(inner, reference, false)),
        _ => false,
    }
}
