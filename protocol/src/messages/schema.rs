//! The subset of JSON Schema that providers of the messages protocol enforce. They reject a schema with any other
//! keyword, and objects that aren't closed. What they don't enforce goes into the description for the model.

use serde_json::{Map, Value, json};

use crate::members::RequestWriter;

/// Keywords that stay unchanged.
const KEPT: [&str; 9] =
    ["$ref", "type", "title", "description", "enum", "const", "default", "required", "pattern"];
/// String formats that providers know.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"];
/// One more.
const UUID: &str = "uuid";

/// A schema within the subset.
pub(super) struct Subset {
    pub(super) schema: Value,
    /// Whether something isn't even mentioned in a description.
    pub(super) is_narrower: bool,
}

/// Reduces a schema to the keywords that providers enforce.
pub(super) fn subset(schema: &Value) -> Subset {
    let mut is_narrower = false;
    let schema = written(schema, &mut is_narrower);
    Subset { schema, is_narrower }
}

/// A schema, as far as providers enforce it.
pub(crate) fn enforced(schema: &Value, at: &str, writer: &mut RequestWriter<'_>) -> Value {
    let Subset { schema, is_narrower } = subset(schema);
    if is_narrower {
        writer.lose(at.to_owned());
    }
    schema
}

fn written(schema: &Value, is_narrower: &mut bool) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut supported = Map::with_capacity(members.len());
    let mut moved = Map::new();
    for (name, value) in members {
        match (name.as_str(), value) {
            (name, _) if KEPT.contains(&name) => {
                supported.insert(name.to_owned(), value.clone());
            }
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                let schemas: Map<String, Value> = schemas
                    .iter()
                    .map(|(name, schema)| (name.clone(), written(schema, is_narrower)))
                    .collect();
                supported.insert(name.clone(), schemas.into());
            }
            ("items", Value::Object(_)) => {
                supported.insert(name.clone(), written(value, is_narrower));
            }
            ("anyOf" | "allOf", Value::Array(schemas)) => {
                let schemas = schemas.iter().map(|schema| written(schema, is_narrower));
                supported.insert(name.clone(), schemas.collect());
            }
            // `oneOf` becomes `anyOf`, as far as it can be enforced.
            ("oneOf", Value::Array(schemas)) if !members.contains_key("anyOf") => {
                let schemas = schemas.iter().map(|schema| written(schema, is_narrower));
                supported.insert("anyOf".to_owned(), schemas.collect());
            }
            ("minItems", count) if matches!(count.as_u64(), Some(0 | 1)) => {
                supported.insert(name.clone(), value.clone());
            }
            ("format", Value::String(format)) if FORMATS.contains(&format.as_str()) || format == UUID => {
                supported.insert(name.clone(), value.clone());
            }
            ("additionalProperties", Value::Bool(is_open)) => {
                if *is_open {
                    moved.insert(name.clone(), value.clone());
                }
            }
            // A map: its fields have no fixed names, and a closed one would be empty.
            ("additionalProperties" | "patternProperties", _) => {
                *is_narrower = true;
                moved.insert(name.clone(), value.clone());
            }
            // Annotations for human readers.
            ("$schema" | "$id" | "$comment" | "readOnly" | "writeOnly" | "deprecated", _) => {}
            _ => {
                moved.insert(name.clone(), value.clone());
            }
        }
    }
    let is_object = match supported.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
        None => supported.contains_key("properties"),
    };
    if is_object {
        supported.insert("additionalProperties".to_owned(), json!(false));
    }
    if !moved.is_empty() {
        let moved = Value::Object(moved).to_string();
        let description = match supported.get("description").and_then(Value::as_str) {
            Some(description) => format!("{description}\n\n{moved}"),
            None => moved,
        };
        supported.insert("description".to_owned(), description.into());
    }
    supported.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unenforced_keywords_move_to_descriptions_and_objects_are_closed() {
        let schema = json!({ "type": "object", "$schema": "x", "properties": {
            "score": { "type": "integer", "minimum": 1, "description": "How good." },
            "list": { "type": "array", "minItems": 2, "items": { "type": "object" } },
            "day": { "type": "string", "format": "date" },
            "other": { "oneOf": [{ "type": "string", "format": "phone" }, { "type": "null" }] },
        }, "required": ["score"] });
        let written = subset(&schema);
        assert!(!written.is_narrower);
        assert_eq!(
            written.schema,
            json!({ "type": "object", "properties": {
                "score": { "type": "integer", "description": "How good.\n\n{\"minimum\":1}" },
                "list": { "type": "array", "items": { "type": "object", "additionalProperties": false },
                    "description": "{\"minItems\":2}" },
                "day": { "type": "string", "format": "date" },
                "other": { "anyOf": [
                    { "type": "string", "description": "{\"format\":\"phone\"}" }, { "type": "null" }] },
            }, "required": ["score"], "additionalProperties": false })
        );
    }

    #[test]
    fn closing_a_map_narrows_it_and_properties_may_be_named_like_keywords() {
        let written = subset(&json!({ "type": "object", "additionalProperties": { "type": "string" } }));
        assert!(written.is_narrower);
        assert_eq!(written.schema["additionalProperties"], false);
        let named = subset(&json!({ "type": "object", "properties": { "minimum": { "type": "number" } } }));
        assert_eq!(named.schema["properties"]["minimum"], json!({ "type": "number" }));
    }
}
