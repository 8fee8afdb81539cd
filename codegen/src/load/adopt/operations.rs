//! Operations: their places on the client, their bodies by name, and one form of each body.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};

use super::{Notes, THEIRS};
use crate::document::{FORM, METHODS, child, items_of, members_of, placeholders, request_schema, text};
use crate::names;
use crate::vocabulary::{TRANSPORT_HEADERS, is_taken_operation, is_taken_resource};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Maximum number of schemas that one inherits from, directly or indirectly.
const MAX_PARTS: usize = 1024;

pub(super) fn adopt(document: &mut Value, notes: &mut Notes) {
    let components = document.get("components").cloned().unwrap_or_default();
    security(document, &components, notes);
    let mut hoisted = Map::new();
    let mut paths = Map::new();
    for (path, mut item) in std::mem::take(object(&mut document["paths"])) {
        let at = child("/paths", &path);
        parameters(&mut item, &at, &components, notes);
        for method in METHODS {
            let Some(operation) = item.get_mut(*method) else { continue };
            let at = child(&at, method);
            parameters(operation, &at, &components, notes);
            about(operation, method, &path);
            body(operation, &at, &components, &mut hoisted, notes);
            answers(operation, &at, &components, notes);
        }
        let path = path_names(path, &mut item, &components, &hoisted);
        paths.insert(path, item);
    }
    methods(&mut paths);
    document["paths"] = Value::Object(paths);
    if !hoisted.is_empty() {
        let components = object(&mut document["components"]);
        object(components.entry("schemas").or_insert(Value::Null)).extend(hoisted);
    }
}

/// A member as an object, which replaces any other value.
pub(super) fn object(node: &mut Value) -> &mut Map<String, Value> {
    if !node.is_object() {
        *node = json!({});
    }
    node.as_object_mut().expect("it has just become one")
}

/// The target of a reference to a component, or the node itself.
fn followed(node: &Value, components: &Value) -> Value {
    let target = |node: &Value| {
        let reference = node.get("$ref")?.as_str()?.strip_prefix("#/components")?;
        components.pointer(reference).cloned()
    };
    target(node).unwrap_or_else(|| node.clone())
}

/// What a document says about keys, and clients do not do.
fn security(document: &Value, components: &Value, notes: &mut Notes) {
    let uses = |node: &Value| node.get("security").is_some();
    let operations = members_of(document, "paths").filter_map(|(_, item)| item.as_object());
    if !uses(document) && !operations.flatten().any(|(_, operation)| uses(operation)) {
        return;
    }
    for (name, scheme) in members_of(components, "securitySchemes") {
        let is_bearer = scheme["type"] == "http" && text(scheme, "scheme").eq_ignore_ascii_case("bearer");
        if !is_bearer {
            let at = child("/components/securitySchemes", name);
            notes.add(
                &at,
                "clients send their key as `Authorization: Bearer`; for another place, set default_headers",
            );
        }
    }
}

/// Writes referred parameters in their places, and leaves out those that the transport sets.
fn parameters(node: &mut Value, at: &str, components: &Value, notes: &mut Notes) {
    let Some(Value::Array(all)) = node.get_mut("parameters") else { return };
    for parameter in all.iter_mut() {
        *parameter = followed(parameter, components);
        let place = match text(parameter, "in") {
            "path" => "A part of the path.",
            "header" => "A header.",
            _ => "A parameter of the query.",
        };
        let Some(members) = parameter.as_object_mut() else { continue };
        if members.get("description").and_then(Value::as_str).is_none_or(|own| own.trim().is_empty()) {
            members.insert("description".to_owned(), json!(place));
        }
        let examples = members.shift_remove("examples");
        let first = examples.as_ref().and_then(Value::as_object).and_then(|all| all.values().next());
        if let Some(value) = first.and_then(|example| example.get("value")) {
            members.entry("example").or_insert_with(|| value.clone());
        }
    }
    all.retain(|parameter| {
        let name = text(parameter, "name");
        let is_set = text(parameter, "in") == "header"
            && TRANSPORT_HEADERS.contains(&name.to_ascii_lowercase().as_str());
        if is_set {
            notes.add(
                &child(at, "parameters"),
                format!("the header {name} is left out: the transport sets it"),
            );
        }
        !is_set
    });
}

/// The id of an operation, its texts and its attributes; `x-method` follows when all are known.
fn about(operation: &mut Value, method: &str, path: &str) {
    let id = match text(operation, "operationId") {
        "" => names::snake(&format!("{method} {path}")),
        id => names::snake(id),
    };
    let id = if is_taken_operation(&id) { format!("{id}_operation") } else { id };
    let resource = resource(operation, path);
    let members = object(operation);
    members.insert("operationId".to_owned(), json!(id));
    let called = format!("`{} {path}`.", method.to_uppercase());
    let mut summary = id.replace('_', " ");
    if let Some(first) = summary.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    for (key, value) in [("summary", summary), ("description", called)] {
        let known = members.entry(key).or_insert_with(|| json!(""));
        if known.as_str().is_none_or(|known| known.trim().is_empty()) {
            *known = json!(value);
        }
    }
    for (key, value) in [
        ("x-source", THEIRS),
        ("x-resource", &resource),
        ("x-protocol", "models"),
        ("x-error-style", "standard"),
    ] {
        members.entry(key).or_insert_with(|| json!(value));
    }
}

/// The first tag, else the first word of the path that is no version.
fn resource(operation: &Value, path: &str) -> String {
    let tag = operation.pointer("/tags/0").and_then(Value::as_str).unwrap_or_default();
    let is_version = |part: &str| {
        part.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let words = path.split('/').filter(|part| !part.is_empty() && !part.contains('{') && !is_version(part));
    let name = [tag].into_iter().chain(words).map(names::snake).find(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| "root".to_owned());
    if is_taken_resource(&name) { format!("{name}_api") } else { name }
}

/// `x-method` of every operation: its id without the words of its resource, if no other there is called so.
fn methods(paths: &mut Map<String, Value>) {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let each = |paths: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Value)| {
        for item in paths.values_mut() {
            for method in METHODS {
                if let Some(operation) = item.get_mut(*method) {
                    visit(operation);
                }
            }
        }
    };
    each(paths, &mut |operation| {
        let name = match text(operation, "x-method") {
            "" => short(operation),
            name => name.to_owned(),
        };
        *counts.entry((text(operation, "x-resource").to_owned(), name)).or_default() += 1;
    });
    each(paths, &mut |operation| {
        if operation.get("x-method").is_some() {
            return;
        }
        let name = short(operation);
        let is_only = counts.get(&(text(operation, "x-resource").to_owned(), name.clone())) == Some(&1);
        let name = if is_only { name } else { text(operation, "operationId").to_owned() };
        operation["x-method"] = json!(name);
    });
}

/// `list_pets` of `pets` → `list`.
fn short(operation: &Value) -> String {
    let (id, resource) = (text(operation, "operationId"), text(operation, "x-resource"));
    let singular = |word: &str| match word.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => word.strip_suffix('s').unwrap_or(word).to_owned(),
    };
    let own: Vec<String> = resource.split(['.', '_']).map(singular).collect();
    let words: Vec<&str> = id.split('_').filter(|word| !own.contains(&singular(word))).collect();
    match words.as_slice() {
        // `stream` is what Rust calls the streamed form of a method.
        [] | ["stream"] => id.to_owned(),
        words => words.join("_"),
    }
}

/// Keeps this one of several media types. Returns whether it is there.
fn only(media_type: &str, content: &mut Map<String, Value>, at: &str, notes: &mut Notes) -> bool {
    let is_it = |kind: &str| kind.split(';').next().is_some_and(|kind| kind.trim() == media_type);
    let Some(name) = content.keys().find(|kind| is_it(kind)).cloned() else { return false };
    let body = content.shift_remove(&name).unwrap_or_default();
    let label = if media_type == JSON { "JSON" } else { media_type };
    for kind in content.keys() {
        notes.add(&child(at, kind), format!("{kind} is left out: {label} stands beside it"));
    }
    *content = Map::from_iter([(media_type.to_owned(), body)]);
    true
}

/// A body in its place, with a schema that has a name.
fn body(
    operation: &mut Value,
    at: &str,
    components: &Value,
    hoisted: &mut Map<String, Value>,
    notes: &mut Notes,
) {
    let name = format!("{}Request", names::pascal(text(operation, "operationId")));
    let Some(body) = operation.get_mut("requestBody") else { return };
    *body = followed(body, components);
    let at = child(at, "requestBody");
    let body = object(body);
    if body.insert("required".to_owned(), json!(true)) != Some(json!(true)) {
        notes.add(&at, "the optional body is always sent");
    }
    let content = object(body.entry("content").or_insert(Value::Null));
    let at_content = child(&at, "content");
    let Some(kind) = [JSON, FORM].into_iter().find(|kind| only(kind, content, &at_content, notes)) else {
        return;
    };
    let media = object(content.entry(kind).or_insert(Value::Null));
    let examples = media.shift_remove("examples");
    let first = examples.as_ref().and_then(Value::as_object).and_then(|all| all.values().next());
    if let Some(value) = first.and_then(|example| example.get("value")) {
        media.entry("example").or_insert_with(|| value.clone());
    }
    let Some(schema) = media.get_mut("schema").filter(|schema| schema.get("$ref").is_none()) else { return };
    let is_object = schema.get("properties").is_some() || schema.get("allOf").is_some();
    if is_object && components.pointer(&child("/schemas", &name)).is_none() {
        let reference = json!({"$ref": format!("#/components/schemas/{name}")});
        hoisted.insert(name, std::mem::replace(schema, reference));
    }
}

/// The media type of a text in UTF-8, without that it is: text is.
fn without_charset(kind: String) -> String {
    match kind.split_once(';') {
        Some((plain, rest))
            if plain.starts_with("text/")
                && ["charset=utf-8", "charset=\"utf-8\""]
                    .contains(&rest.trim().to_ascii_lowercase().as_str()) =>
        {
            plain.trim().to_owned()
        }
        _ => kind,
    }
}

/// Answers in their places, each with one form, and those that a member of the request asks for.
fn answers(operation: &mut Value, at: &str, components: &Value, notes: &mut Notes) {
    let mut streams = false;
    let has_switch = operation.get("x-stream").is_some();
    for (status, answer) in object(&mut operation["responses"]) {
        *answer = followed(answer, components);
        let at = child(&child(at, "responses"), status);
        if answer.get("headers").is_some() {
            notes.add(&at, "headers of answers have no types: read them from the raw response");
        }
        let Some(content) = answer.get_mut("content").and_then(Value::as_object_mut) else { continue };
        *content =
            std::mem::take(content).into_iter().map(|(kind, media)| (without_charset(kind), media)).collect();
        let asked_for =
            |(kind, media): &(String, Value)| media.get("x-when").is_some() || kind == EVENTS && has_switch;
        let (asked_for, others): (Map<_, _>, Map<_, _>) =
            std::mem::take(content).into_iter().partition(asked_for);
        *content = others;
        let is_json = only(JSON, content, &child(&at, "content"), notes);
        content.extend(asked_for);
        if is_json && !has_switch {
            continue;
        }
        let Some(events) = content.get_mut(EVENTS).and_then(Value::as_object_mut) else { continue };
        // Since 3.2 it has a keyword; before, many documents gave the schema of an event.
        if let Some(item) = events.shift_remove("itemSchema").or_else(|| events.get("schema").cloned()) {
            events.entry("x-item-schema").or_insert(item);
            events.insert("schema".to_owned(), json!({"type": "string"}));
        }
        streams |= status.starts_with('2');
    }
    if streams {
        object(operation).entry("x-stream").or_insert_with(|| json!({"always": true, "terminator": null}));
    }
}

/// A path parameter's name is ours to choose: one that the body has too becomes `path_id`.
fn path_names(path: String, item: &mut Value, components: &Value, hoisted: &Map<String, Value>) -> String {
    let mut renamed = HashMap::new();
    for method in METHODS {
        let Some(schema) = item.get(*method).and_then(request_schema) else { continue };
        let name = text(schema, "$ref").rsplit('/').next().unwrap_or_default();
        let schema = hoisted.get(name).cloned().unwrap_or_else(|| followed(schema, components));
        let (mut members, mut parts) = (Vec::new(), 0);
        inherited_members(&schema, components, &mut parts, &mut members);
        for place in placeholders(&path) {
            if members.iter().any(|member| names::snake(member) == names::snake(place)) {
                renamed.insert(place.to_owned(), format!("path_{place}"));
            }
        }
    }
    if renamed.is_empty() {
        return path;
    }
    let mut lists: Vec<&mut Value> = Vec::new();
    for (key, node) in object(item) {
        if key == "parameters" {
            lists.push(node);
        } else if METHODS.contains(&key.as_str())
            && let Some(own) = node.get_mut("parameters")
        {
            lists.push(own);
        }
    }
    for parameter in lists.into_iter().filter_map(Value::as_array_mut).flatten() {
        if text(parameter, "in") == "path"
            && let Some(better) = renamed.get(text(parameter, "name"))
        {
            parameter["name"] = json!(better);
        }
    }
    renamed
        .iter()
        .fold(path, |path, (name, better)| path.replace(&format!("{{{name}}}"), &format!("{{{better}}}")))
}

/// Names of the members of an object and of what it inherits. `parts`: counts what was read; a schema may inherit from itself,
/// twice.
fn inherited_members(schema: &Value, components: &Value, parts: &mut usize, found: &mut Vec<String>) {
    found.extend(members_of(schema, "properties").map(|(name, _)| name.clone()));
    for part in items_of(schema, "allOf") {
        if *parts == MAX_PARTS {
            return;
        }
        *parts += 1;
        inherited_members(&followed(part, components), components, parts, found);
    }
}
