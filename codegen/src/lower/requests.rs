//! The JSON Schemas of request bodies and parameters, constraints intact: what `limits::check` and the
//! gateway enforce, since the generated types do not.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::document::{Document, is_true, text};
use crate::model::{Api, Location, Operation, SpecEnum as _};
use crate::names;
use crate::schema::{CHECKED_FORMATS, variants};

/// One document for all operations: `operations` names the body of each in `$defs`, and holds the schemas of its
/// parameters.
pub(super) fn requests(document: &Document, api: &Api) -> Result<Value> {
    let mut definitions = Map::new();
    for (name, schema) in api.schemas.iter().filter(|(_, schema)| schema.in_request) {
        // Hoisted inline objects stay inline here.
        if let Some(node) = document.schema(name) {
            definitions.insert(schema.name.clone(), enforceable(node, document)?);
        }
    }
    let mut operations = Map::new();
    for operation in &api.operations {
        let mut parameters = Map::new();
        for parameter in &operation.parameters {
            let schema = parameter_schema(document, operation, &parameter.name);
            parameters.insert(parameter.name.clone(), enforceable(&schema, document)?);
        }
        let mut rules = json!({"body": operation.request, "parameters": parameters});
        let required = operation.parameters.iter().filter(|p| p.required && p.location == Location::Header);
        let required: Vec<&str> = required.map(|parameter| parameter.name.as_str()).collect();
        if !required.is_empty() {
            rules["required_headers"] = json!(required);
        }
        operations.insert(operation.id.clone(), rules);
    }
    Ok(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "operations": operations,
        "$defs": definitions,
    }))
}

/// The schema of a parameter, on the operation or on its path item.
fn parameter_schema(document: &Document, operation: &Operation, name: &str) -> Value {
    let item = &document.root["paths"][&operation.path];
    let own = item.get(operation.method.name()).and_then(|node| node.get("parameters"));
    let all = own.into_iter().chain(item.get("parameters")).filter_map(Value::as_array).flatten();
    all.filter_map(|parameter| document.follow(parameter).ok())
        .find(|parameter| text(parameter, "name") == name)
        .map(|parameter| parameter["schema"].clone())
        .unwrap_or_default()
}

/// A schema with its references turned to `$defs` and its open unions opened.
fn enforceable(node: &Value, document: &Document) -> Result<Value> {
    let Some(members) = node.as_object() else { return Ok(node.clone()) };
    let mut out = Map::new();
    for (key, value) in members {
        let value = match key.as_str() {
            "$ref" => json!(value.as_str().unwrap_or_default().replace("#/components/schemas/", "#/$defs/")),
            "oneOf" if is_true(node, "x-open-union") => {
                out.extend(open_union(node, document)?);
                continue;
            }
            // For generators only: the oneOf as conditions, the reading of responses, Rust code written by hand, documentation.
            "format" if !value.as_str().is_some_and(|format| CHECKED_FORMATS.contains(&format)) => continue,
            "x-accepts-type" | "x-brackets" | "x-discriminator" | "x-assumed-kind" | "x-new" | "x-built"
            | "x-added" | "examples" => continue,
            "properties" => {
                let mut inner = Map::new();
                for (name, schema) in value.as_object().into_iter().flatten() {
                    inner.insert(name.clone(), enforceable(schema, document)?);
                }
                Value::Object(inner)
            }
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" => {
                enforceable(value, document)?
            }
            "oneOf" | "anyOf" | "allOf" => {
                let all: Result<Vec<Value>> = value
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|schema| enforceable(schema, document))
                    .collect();
                Value::Array(all?)
            }
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if node.get("x-json-mapping").is_some() {
        add_spellings(&mut out);
    }
    Ok(Value::Object(out))
}

/// Adds the JSON mapping of protocol buffers to an object: `x-spellings`, the other name of each member, and a rule for
/// each member that excludes both names at once.
fn add_spellings(schema: &mut Map<String, Value>) {
    let names = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let spellings: Map<String, Value> = names
        .map(|(name, _)| (names::snake(name), json!(name)))
        .filter(|(snake, name)| name != snake.as_str())
        .collect();
    if spellings.is_empty() {
        return;
    }
    let rules =
        spellings.iter().map(|(snake, name)| json!({"x-source": "ours", "not": {"required": [snake, name]}}));
    let all = schema.entry("allOf").or_insert_with(|| json!([]));
    all.as_array_mut().into_iter().for_each(|all| all.extend(rules.clone()));
    schema.insert("x-spellings".to_owned(), Value::Object(spellings));
}

/// The described variants of an open union; a nested union is replaced by its variants.
fn described<'doc>(node: &'doc Value, document: &'doc Document) -> Result<Vec<&'doc Value>> {
    let mut found = Vec::new();
    for variant in variants(node) {
        let target = document.follow(variant)?;
        if is_true(target, "x-open-union") {
            found.extend(described(target, document)?);
        } else {
            found.push(variant);
        }
    }
    Ok(found)
}

/// An open union as conditions: a known discriminator selects the rules of its variant, an unknown one passes.
fn open_union(node: &Value, document: &Document) -> Result<Map<String, Value>> {
    let mut out = Map::new();
    out.insert("type".to_owned(), json!("object"));
    let Some(property) = node.pointer("/x-discriminator/propertyName").and_then(Value::as_str) else {
        // Keys distinguish the variants: any object may be an unknown variant.
        return Ok(out);
    };
    let mut conditions = Vec::new();
    let mut always_there = true;
    let mut constants = BTreeSet::new();
    for variant in described(node, document)? {
        let target = document.follow(variant)?;
        let discriminator = &target["properties"][property];
        let values: Vec<Value> = match (discriminator.get("const"), discriminator.get("enum")) {
            (Some(value), _) => vec![value.clone()],
            (_, Some(Value::Array(values))) => values.clone(),
            // Any string: nothing to enforce before its kind is known.
            _ => continue,
        };
        let required =
            target["required"].as_array().is_some_and(|names| names.iter().any(|name| name == property));
        always_there &= required;
        constants.extend(values.iter().map(Value::to_string));
        let mut condition = json!({"properties": {property: {"enum": values}}});
        if required {
            condition["required"] = json!([property]);
        }
        conditions.push(json!({"if": condition, "then": enforceable(variant, document)?}));
    }
    out.insert("properties".to_owned(), json!({property: {"type": "string"}}));
    if always_there && !constants.is_empty() {
        out.insert("required".to_owned(), json!([property]));
    }
    out.insert("allOf".to_owned(), Value::Array(conditions));
    Ok(out)
}
