//! Names that are reserved in some language: keywords get a trailing `_`, all others are rejected here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Problems;
use crate::document::{Document, child, responses, schema_name, text};
use crate::names;
use crate::vocabulary::{CLASSES, MEMBERS, ROOT, is_taken_operation};

/// Schema names that are reserved in Python and Rust.
const SCHEMAS: &[&str] = &["False", "None", "Self", "True"];

/// Reports problems with the names in a document.
pub(super) fn lint_names(document: &Document, problems: &mut Problems) {
    // Names of types, in all languages at once, and where they come from.
    let mut taken: BTreeMap<String, String> = BTreeMap::new();
    for (name, _) in document.members("/components/schemas") {
        let at = child("/components/schemas", name);
        if SCHEMAS.contains(&name.as_str()) {
            problems.report(&at, format!("`{name}` is a word of Python or Rust; rename it"));
        }
        taken.insert(name.clone(), at);
    }
    for (name, _) in document.members("/components/schemas") {
        if let Some(at) = taken.get(&format!("{name}Param")) {
            problems
                .report(at, format!("`{name}Param` is what Python calls {name} in a request; rename one"));
        }
    }
    let mut resources: BTreeMap<String, &str> = BTreeMap::new();
    let mut ids: Vec<&str> = Vec::new();
    let operations: Vec<(String, &Value)> =
        document.operations().map(|operation| (operation.pointer(), operation.node)).collect();
    for (at, operation) in &operations {
        let id = text(operation, "operationId");
        ids.push(id);
        let at_id = child(at, "operationId");
        if names::snake(id) == *id && is_taken_operation(id) {
            problems.report(
                &at_id,
                format!("`{id}` is taken in generated Rust; choose another, callers see x-method alone"),
            );
        }
        let mut claim = |name: String, what: &str| {
            if let Some(schema) = taken.get(&name) {
                problems.report(schema, format!("`{name}` is {what}; rename the schema"));
            }
        };
        claim(format!("{}Params", names::pascal(id)), "what TypeScript calls the parameters of an operation");
        if let Some(name) = document_of_stream(operation) {
            claim(format!("{name}Stream"), "what Python and TypeScript call a stream");
            claim(format!("Async{name}Stream"), "what Python calls a stream");
        }
        let resource = text(operation, "x-resource");
        let class = names::pascal(&resource.replace('.', "_"));
        claim(format!("{class}Resource"), "what TypeScript calls a place on the client");
        let at_resource = child(at, "x-resource");
        match resources.insert(class.clone(), resource) {
            Some(first) if first != resource => problems.report(
                &at_resource,
                format!("`{first}` and `{resource}` become one class, {class}; rename one"),
            ),
            _ => {}
        }
        if CLASSES.contains(&class.as_str()) {
            problems.report(
                &at_resource,
                format!("a place called {class} hides what generated code needs; rename x-resource"),
            );
        }
        let parts: Vec<&str> = resource.split('.').collect();
        if parts.first().is_some_and(|first| ROOT.contains(first)) {
            problems
                .report(&at_resource, format!("a client has a `{}` already; rename x-resource", parts[0]));
        }
        for (key, name) in
            parts.iter().map(|part| ("x-resource", *part)).chain([("x-method", text(operation, "x-method"))])
        {
            if MEMBERS.contains(&name) {
                problems.report(
                    &child(at, key),
                    format!("in TypeScript every place has a `{name}` already; rename {key}"),
                );
            }
        }
    }
    lint_streaming_twins(&operations, &ids, problems);
}

/// Reports names that the generated Rust adds for an operation that can stream: a function of the client, and a method.
fn lint_streaming_twins(operations: &[(String, &Value)], ids: &[&str], problems: &mut Problems) {
    let switched =
        operations.iter().filter(|(_, operation)| operation.pointer("/x-stream/parameter").is_some());
    for (_, streaming) in switched {
        let twin = format!("{}_stream", text(streaming, "operationId"));
        let resource = text(streaming, "x-resource");
        for (at, operation) in operations {
            if text(operation, "operationId") == twin && ids.contains(&twin.as_str()) {
                let message =
                    format!("`{twin}` is the streamed form of another operation in Rust; choose another");
                problems.report(&child(at, "operationId"), message);
            }
            if text(operation, "x-resource") == resource && text(operation, "x-method") == "stream" {
                let message = "`stream` is the streamed form of another method here in Rust; rename x-method";
                problems.report(&child(at, "x-method"), message);
            }
        }
    }
}

/// The schema of a stream's complete document, if `final` names a method for it.
fn document_of_stream(operation: &Value) -> Option<&str> {
    operation.pointer("/x-stream/final")?;
    let content = responses(operation).find(|(status, _)| status.starts_with('2'))?.1.get("content")?;
    let document = content.pointer("/application~1json/schema/$ref");
    let event = content.pointer("/text~1event-stream/x-item-schema/$ref");
    schema_name(document.or(event)?.as_str()?)
}
