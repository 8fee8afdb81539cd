//! The specification as OpenAPI 3.2.

use serde_json::{Map, Value, json};

use crate::document::{Document, operation_pointer};
use crate::model::Api;

pub(super) fn openapi_3_2(document: &Document, api: &Api) -> Value {
    let mut root = document.root.clone();
    root["openapi"] = json!("3.2.0");
    item_schemas(&mut root, None);
    error_statuses(&mut root, api);
    root
}

/// Lists the statuses that `default` stands for: `spec/errors.json` gives them, and readers of this document do not have it.
fn error_statuses(root: &mut Value, api: &Api) {
    for operation in &api.operations {
        let at = operation_pointer(&operation.path, operation.method);
        let answers = root.pointer_mut(&format!("{at}/responses")).and_then(Value::as_object_mut);
        let Some(answers) = answers else { continue };
        let Some(default) = answers.shift_remove("default") else { continue };
        let mut listed: Map<String, Value> = std::mem::take(answers);
        for status in &operation.error_statuses {
            listed.entry(status.to_string()).or_insert_with(|| default.clone());
        }
        listed.insert("default".to_owned(), default);
        *answers = listed;
    }
}

/// `x-item-schema` has its own keyword since 3.2. `last`: the data that ends the streams of an operation.
fn item_schemas(node: &mut Value, last: Option<&str>) {
    match node {
        Value::Object(members) => {
            let own =
                members.get("x-stream").and_then(|stream| stream["terminator"].as_str()).map(str::to_owned);
            let last = own.as_deref().or(last);
            if let Some(events) = members.get_mut("text/event-stream").and_then(Value::as_object_mut)
                && let Some(schema) = events.shift_remove("x-item-schema")
            {
                // The complete stream, which is text elsewhere, is the sequence of its items here.
                events.shift_remove("schema");
                events.insert("itemSchema".to_owned(), event(&schema, last));
            }
            if let Some(schema) = members.shift_remove("x-item-schema") {
                members.insert("itemSchema".to_owned(), schema);
            }
            members.values_mut().for_each(|member| item_schemas(member, last));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| item_schemas(item, last)),
        _ => {}
    }
}

/// An item of an event stream: an event whose data is text that contains what the schema describes, or the end marker.
fn event(schema: &Value, last: Option<&str>) -> Value {
    let (media_type, text) = ("application/json", "string");
    let data = match last {
        None => json!({ "type": text, "contentMediaType": media_type, "contentSchema": schema }),
        Some(last) => {
            let document = json!({ "contentMediaType": media_type, "contentSchema": schema });
            json!({ "type": text, "anyOf": [{ "const": last }, document] })
        }
    };
    json!({ "type": "object", "required": ["data"], "properties": { "event": { "type": "string" }, "data": data } })
}
