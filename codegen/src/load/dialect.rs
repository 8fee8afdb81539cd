//! Idioms of other documents, mainly of OpenAPI 3.0: each is rewritten when a document is read, to its equivalent in 3.1 and in
//! this generator, so that no later phase has to know it.

use serde_json::{Map, Value, json};

use crate::schema::for_subschemas_mut;

/// Maximum depth of a document. Every later phase recurses along it.
pub(super) const MAX_DEPTH: usize = 128;

/// Members of a schema beside which a single reference in `allOf` is just that reference.
const ANNOTATIONS: &[&str] = &["allOf", "default", "deprecated", "description", "x-source"];

/// Whether a document is deeper than [`MAX_DEPTH`].
pub(super) fn is_too_deep(node: &Value) -> bool {
    let mut level: Vec<&Value> = vec![node];
    for _ in 0..MAX_DEPTH {
        level = level
            .into_iter()
            .flat_map(|node| -> Box<dyn Iterator<Item = &Value>> {
                match node {
                    Value::Array(items) => Box::new(items.iter()),
                    Value::Object(members) => Box::new(members.values()),
                    _ => Box::new(std::iter::empty()),
                }
            })
            .collect();
    }
    !level.is_empty()
}

/// Rewrites a document.
pub(super) fn rewrite(document: &mut Value) {
    if let Some(version) = document.get_mut("openapi")
        && version.as_str().is_some_and(|version| version.starts_with("3.0."))
    {
        *version = json!("3.1.0");
    }
    if let Some(schemas) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) {
        schemas.values_mut().for_each(schema);
    }
    outside(document);
}

/// Everything except schemas: finds the schemas in it.
fn outside(node: &mut Value) {
    match node {
        Value::Array(items) => items.iter_mut().for_each(outside),
        Value::Object(members) => {
            members.shift_remove("externalDocs");
            for (key, inner) in members {
                match key.as_str() {
                    "schema" | "x-item-schema" => schema(inner),
                    // Rewritten already, or any JSON.
                    "schemas" | "example" | "examples" => {}
                    _ => outside(inner),
                }
            }
        }
        _ => {}
    }
}

/// A schema and those in it.
fn schema(node: &mut Value) {
    let Value::Object(members) = node else { return };
    // They have no meaning in JSON.
    members.shift_remove("externalDocs");
    members.shift_remove("xml");
    exclusive_bounds(members);
    if let Some(example) = members.shift_remove("example") {
        members.entry("examples").or_insert_with(|| json!([example]));
    }
    if members.contains_key("oneOf")
        && !members.contains_key("x-discriminator")
        && let Some(discriminator) = members.shift_remove("discriminator")
    {
        members.insert("x-discriminator".to_owned(), discriminator);
    }
    let is_null = |variant: &Value| variant.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(variants)) = members.get("anyOf")
        && variants.len() == 2
        && variants.iter().filter(|variant| is_null(variant)).count() == 1
        && !members.contains_key("oneOf")
    {
        let variants = members.shift_remove("anyOf").unwrap_or_default();
        members.insert("oneOf".to_owned(), variants);
    }
    single_reference(members);
    nullable(members);
    for_subschemas_mut(members, "", |inner, _| schema(inner));
}

/// `exclusiveMinimum: true` beside `minimum: 0` is `exclusiveMinimum: 0`.
fn exclusive_bounds(members: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(is_exclusive)) = members.get(exclusive) else { continue };
        let is_exclusive = *is_exclusive;
        members.shift_remove(exclusive);
        if is_exclusive && let Some(value) = members.shift_remove(bound) {
            members.insert(exclusive.to_owned(), value);
        }
    }
}

/// `allOf` of one reference, the way to describe a reference in 3.0, is that reference.
fn single_reference(members: &mut Map<String, Value>) {
    let Some(Value::Array(parts)) = members.get("allOf") else { return };
    let [part] = parts.as_slice() else { return };
    let Some(reference) = part.get("$ref").cloned() else { return };
    let is_annotated = |key: &String| ANNOTATIONS.contains(&key.as_str()) || key == "nullable";
    if part.as_object().is_some_and(|part| part.len() == 1) && members.keys().all(is_annotated) {
        members.shift_remove("allOf");
        members.shift_insert(0, "$ref".to_owned(), reference);
    }
}

/// `nullable: true` is one more type, or one more variant.
fn nullable(members: &mut Map<String, Value>) {
    if !members.get("nullable").is_some_and(Value::is_boolean) {
        return;
    }
    if members.shift_remove("nullable") == Some(json!(false)) {
        return;
    }
    let nothing = json!({"type": "null"});
    if let Some(Value::Array(variants)) = members.get_mut("oneOf") {
        variants.push(nothing);
    } else if let Some(reference) = members.shift_remove("$ref") {
        members.insert("oneOf".to_owned(), json!([{"$ref": reference}, nothing]));
    } else if let Some(Value::String(name)) = members.get("type") {
        let types = json!([name, "null"]);
        members.insert("type".to_owned(), types);
        if let Some(Value::Array(values)) = members.get_mut("enum")
            && !values.contains(&Value::Null)
        {
            values.push(Value::Null);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(mut node: Value) -> Value {
        schema(&mut node);
        node
    }

    #[test]
    fn nullable_becomes_a_null_type_or_variant() {
        assert_eq!(
            rewritten(json!({"type": "string", "nullable": true, "enum": ["a"]})),
            json!({"type": ["string", "null"], "enum": ["a", null]})
        );
        assert_eq!(rewritten(json!({"type": "string", "nullable": false})), json!({"type": "string"}));
        let pen = json!({"$ref": "#/components/schemas/Pen"});
        assert_eq!(
            rewritten(json!({"allOf": [pen], "nullable": true, "description": "A pen."})),
            json!({"oneOf": [pen, {"type": "null"}], "description": "A pen."})
        );
        assert_eq!(
            rewritten(json!({"anyOf": [pen, {"type": "null"}]})),
            json!({"oneOf": [pen, {"type": "null"}]})
        );
    }

    #[test]
    fn described_reference_is_unwrapped() {
        let pen = json!({"$ref": "#/components/schemas/Pen"});
        assert_eq!(
            rewritten(json!({"description": "A pen.", "allOf": [pen]})),
            json!({"$ref": "#/components/schemas/Pen", "description": "A pen."})
        );
        let inherits = json!({"allOf": [pen], "properties": {"ink": {"type": "string"}}});
        assert_eq!(rewritten(inherits.clone()), inherits);
    }

    #[test]
    fn examples_discriminators_and_exclusive_bounds_are_upgraded() {
        assert_eq!(
            rewritten(json!({"type": "integer", "example": 3, "minimum": 0, "exclusiveMinimum": true})),
            json!({"type": "integer", "examples": [3], "exclusiveMinimum": 0})
        );
        assert_eq!(
            rewritten(json!({"oneOf": [], "discriminator": {"propertyName": "kind"}})),
            json!({"oneOf": [], "x-discriminator": {"propertyName": "kind"}})
        );
    }

    #[test]
    fn schema_lookalikes_are_left_unchanged() {
        let properties = json!({
            "type": "object",
            "properties": {"nullable": {"type": "boolean"}, "example": {"type": "string"}, "xml": {"type": "string"}},
        });
        assert_eq!(rewritten(properties.clone()), properties);
        let mut document = json!({
            "openapi": "3.0.3",
            "externalDocs": {"url": "https://example.com"},
            "paths": {"/pens": {"get": {
                "externalDocs": {},
                "responses": {"200": {"content": {"application/json": {
                    "schema": {"type": "string", "nullable": true},
                    "example": {"schema": {"nullable": true}},
                }}}},
            }}},
        });
        rewrite(&mut document);
        assert_eq!(
            document,
            json!({
                "openapi": "3.1.0",
                "paths": {"/pens": {"get": {"responses": {"200": {"content": {"application/json": {
                    "schema": {"type": ["string", "null"]},
                    "example": {"schema": {"nullable": true}},
                }}}}}}},
            })
        );
    }

    #[test]
    fn too_deep_document_is_detected() {
        let deep = (0..MAX_DEPTH).fold(json!({}), |inner, _| json!({"items": inner}));
        assert!(is_too_deep(&deep));
        assert!(!is_too_deep(&deep["items"]));
    }
}
