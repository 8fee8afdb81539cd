//! Names of the types that become of schemas, inline ones included: no two types have one name. The model
//! (`build.rs`) decides which inline schemas become types; this module must name at least those.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Problems;
use crate::document::{Document, OperationNode, child, members_of, responses, text};
use crate::names;
use crate::schema::{is_null, merge_all_of, variants};

/// Reports types with the name of another.
pub(super) fn lint_type_names(document: &Document, problems: &mut Problems) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for (name, at) in type_names(document) {
        if let Some(first) = first.get(&name) {
            problems.report(&at, format!("the type `{name}` is already generated from {first}; rename one"));
        } else {
            first.insert(name, at);
        }
    }
}

/// The names of all types, each with the pointer to the schema, the operation or the webhook that it comes from.
pub(super) fn type_names(document: &Document) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (name, schema) in document.members("/components/schemas") {
        let mut names = vec![name.clone()];
        hoisted_within(document, schema, name, &mut names);
        all.push((names, child("/components/schemas", name)));
    }
    for operation in document.operations() {
        all.push((of_operation(document, operation), operation.pointer()));
    }
    for (name, item) in document.members("/webhooks") {
        let mut names = Vec::new();
        if let Some(schema) = item.pointer("/post/requestBody/content/application~1json/schema") {
            hoisted(document, schema, &names::pascal(name), &mut names);
        }
        all.push((names, child("/webhooks", name)));
    }
    all.into_iter().flat_map(|(names, at)| names.into_iter().map(move |name| (name, at.clone()))).collect()
}

/// The names of the types that become of the inline schemas of an operation.
fn of_operation(document: &Document, operation: OperationNode<'_>) -> Vec<String> {
    let id = text(operation.node, "operationId");
    let mut names = Vec::new();
    for (status, response) in responses(operation.node) {
        // Shared responses are shared types only if their schemas have names; each operation has its own otherwise.
        let Ok(response) = document.follow(response) else { continue };
        let name = match status.as_str() {
            status if status.starts_with('2') => names::response(id),
            status => names::error(id, status),
        };
        if let Some(schema) = response.pointer("/content/application~1json/schema") {
            hoisted(document, schema, &name, &mut names);
        }
    }
    for (_, parameter) in document.parameters(operation) {
        hoisted(document, &parameter["schema"], &names::parameter(id, text(parameter, "name")), &mut names);
    }
    names
}

/// Adds the names of the types that become of an inline schema called `name`, and of those in it.
fn hoisted(document: &Document, node: &Value, name: &str, names: &mut Vec<String>) {
    if node.get("$ref").is_some() {
        return;
    }
    let keys = ["properties", "allOf", "enum", "const", "x-extensible-enum"];
    if keys.iter().any(|key| node.get(key).is_some()) || value_variants(node).count() > 1 {
        names.push(name.to_owned());
    }
    hoisted_within(document, node, name, names);
}

/// The variants of a union but null.
fn value_variants(node: &Value) -> impl Iterator<Item = &Value> {
    variants(node).filter(|variant| !is_null(variant))
}

/// The same for the schemas within a schema of this name.
fn hoisted_within(document: &Document, node: &Value, name: &str, names: &mut Vec<String>) {
    let merged;
    let node = match node.get("allOf").map(|_| merge_all_of(document, node)) {
        Some(Ok(joined)) => {
            merged = joined;
            &merged
        }
        _ => node,
    };
    for (property, inner) in members_of(node, "properties") {
        hoisted(document, inner, &names::nested(name, property), names);
    }
    if let Some(items) = node.get("items") {
        hoisted(document, items, &names::item(name), names);
    }
    if let Some(value) = node.get("additionalProperties") {
        hoisted(document, value, &names::value(name), names);
    }
    for (index, variant) in value_variants(node).enumerate() {
        hoisted(document, variant, &names::union_variant(name, index), names);
    }
}
