//! Parameters, each with its schema in its place: a schema by reference is read as if it were written there, and what OpenAPI
//! assumes without a word is left out.

use serde_json::{Map, Value};

use crate::document::{MAX_REFERENCES, METHODS, schema_name};

/// How each place is encoded if a document says nothing, which is also how clients encode it.
const USUAL_STYLES: &[(&str, &str)] = &[("path", "simple"), ("header", "simple"), ("query", "form")];

/// Rewrites all parameters of a document.
pub(super) fn rewrite(document: &mut Value) {
    let schemas = document.pointer("/components/schemas").cloned().unwrap_or_default();
    if let Some(shared) = document.pointer_mut("/components/parameters").and_then(Value::as_object_mut) {
        shared.values_mut().for_each(|parameter| one(parameter, &schemas));
    }
    for item in
        document.get_mut("paths").and_then(Value::as_object_mut).into_iter().flatten().map(|(_, item)| item)
    {
        list(item, &schemas);
        for method in METHODS {
            if let Some(operation) = item.get_mut(*method) {
                list(operation, &schemas);
            }
        }
    }
}

fn list(node: &mut Value, schemas: &Value) {
    let all = node.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten();
    all.for_each(|parameter| one(parameter, schemas));
}

fn one(parameter: &mut Value, schemas: &Value) {
    let Some(members) = parameter.as_object_mut() else { return };
    if let Some(schema) = members.get_mut("schema") {
        in_place(schema, schemas);
        if let Some(items) = schema.get_mut("items") {
            in_place(items, schemas);
        }
    }
    let is_list = members.get("schema").is_some_and(|schema| schema["type"] == "array");
    let place = members.get("in").and_then(Value::as_str).unwrap_or_default();
    let usual = USUAL_STYLES.iter().find(|(known, _)| *known == place).map(|(_, style)| *style);
    if members.get("style").is_some_and(|style| style.as_str() == usual) {
        members.shift_remove("style");
    }
    // One value looks the same either way.
    if members.get("explode").is_some_and(|explode| explode.is_boolean() && (!is_list || *explode == true)) {
        members.shift_remove("explode");
    }
    for key in ["allowReserved", "allowEmptyValue"] {
        if members.get(key) == Some(&Value::Bool(false)) {
            members.shift_remove(key);
        }
    }
}

/// Writes the target of a reference in its place, and leaves null out: what is null is not sent.
fn in_place(schema: &mut Value, schemas: &Value) {
    for _ in 0..MAX_REFERENCES {
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(schema_name);
        let Some(target) = reference.and_then(|name| schemas.get(name)).and_then(Value::as_object) else {
            break;
        };
        let mut written: Map<String, Value> = target.clone();
        // The parameter has its own description; what is beside the reference is nearer.
        for key in ["description", "title", "x-source", "examples"] {
            written.shift_remove(key);
        }
        let beside = schema.as_object().cloned().unwrap_or_default();
        written.extend(beside.into_iter().filter(|(key, _)| key != "$ref"));
        *schema = Value::Object(written);
    }
    if let Some(Value::Array(names)) = schema.get_mut("type") {
        names.retain(|name| name != "null");
        if let [only] = names.as_slice() {
            schema["type"] = only.clone();
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rewritten(parameter: Value) -> Value {
        let mut document = json!({
            "paths": {"/pens": {"get": {"parameters": []}}},
            "components": {"schemas": {
                "Ink": {"$ref": "#/components/schemas/Color"},
                "Color": {"type": "string", "enum": ["red", "blue"], "description": "A color.", "x-source": "ours"},
                "Pen": {"type": "object"},
            }},
        });
        document["paths"]["/pens"]["get"]["parameters"] = Value::Array(vec![parameter]);
        rewrite(&mut document);
        document["paths"]["/pens"]["get"]["parameters"][0].clone()
    }

    #[test]
    fn referred_schema_is_written_in_its_place() {
        let color = json!({"type": "string", "enum": ["red", "blue"]});
        let ink = json!({"$ref": "#/components/schemas/Ink"});
        assert_eq!(rewritten(json!({"name": "ink", "in": "query", "schema": ink}))["schema"], color);
        let inks = json!({"type": "array", "items": ink});
        assert_eq!(
            rewritten(json!({"name": "ink", "in": "query", "schema": inks}))["schema"]["items"],
            color
        );
        let default = json!({"$ref": "#/components/schemas/Ink", "default": "red"});
        let ink = rewritten(json!({"name": "ink", "in": "query", "schema": default}));
        assert_eq!(ink["schema"], json!({"type": "string", "enum": ["red", "blue"], "default": "red"}));
    }

    #[test]
    fn usual_encoding_is_left_out_and_another_kept() {
        let text = json!({"type": "string"});
        let list = json!({"type": "array", "items": text});
        let usual = json!({"name": "ids", "in": "query", "schema": list});
        let mut explicit = usual.clone();
        explicit["style"] = json!("form");
        explicit["explode"] = json!(true);
        explicit["allowReserved"] = json!(false);
        assert_eq!(rewritten(explicit), usual);
        for (key, value) in [("style", json!("pipeDelimited")), ("explode", json!(false))] {
            let mut other = usual.clone();
            other[key] = value;
            assert_eq!(rewritten(other.clone()), other);
        }
        let one = json!({"name": "id", "in": "query", "explode": false, "schema": text});
        assert_eq!(rewritten(one), json!({"name": "id", "in": "query", "schema": text}));
    }

    #[test]
    fn null_is_no_value_of_a_parameter() {
        let nothing = json!({"type": ["string", "null"], "enum": ["a", null]});
        let parameter = rewritten(json!({"name": "id", "in": "query", "schema": nothing}));
        assert_eq!(parameter["schema"], json!({"type": "string", "enum": ["a"]}));
    }
}
