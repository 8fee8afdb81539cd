//! Discriminators: every kind of a union states the value that tells it. A schema that others inherit from, and that has a
//! discriminator, is the union of those others wherever it is used.

use serde_json::{Value, json};

use super::operations::object;
use super::{Notes, child, schemas};
use crate::document::schema_name;

const PREFIX: &str = "#/components/schemas/";

pub(super) fn adopt(document: &mut Value, notes: &mut Notes) {
    inherit(document, notes);
    let mut kinds = Vec::new();
    find(document, &mut kinds);
    for (name, property, values) in kinds {
        let Some(members) = schemas(document).find(|(known, _)| **known == name).map(|(_, node)| node) else {
            continue;
        };
        state(members, &property, &values);
    }
}

/// `Pet` with a discriminator, and `Cat` as `allOf: [Pet, …]`: `Pet` becomes the union, and what `Cat` inherits `PetBase`.
fn inherit(document: &mut Value, notes: &mut Notes) {
    let names: Vec<String> = schemas(document)
        .filter(|(_, node)| node.get("discriminator").is_some() && node.get("oneOf").is_none())
        .map(|(name, _)| name.clone())
        .collect();
    for name in names {
        let reference = format!("{PREFIX}{name}");
        let base = format!("{name}Base");
        let mut kinds = Vec::new();
        for (kind, node) in schemas(document) {
            for part in node.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
                if part["$ref"] == reference.as_str() {
                    part["$ref"] = json!(format!("{PREFIX}{base}"));
                    kinds.push(json!({"$ref": format!("{PREFIX}{kind}")}));
                }
            }
        }
        let Some(all) = document.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else {
            return;
        };
        let Some(inherited) = all.get_mut(&name).and_then(Value::as_object_mut) else { continue };
        let discriminator = inherited.shift_remove("discriminator").unwrap_or_default();
        if kinds.is_empty() {
            let at = child("/components/schemas", &name);
            notes.add(&at, "`discriminator` is left out: no schema inherits from this one");
            continue;
        }
        let description = inherited.get("description").cloned().unwrap_or_default();
        let union = json!({"description": description, "oneOf": kinds, "discriminator": discriminator});
        let inherited = std::mem::replace(&mut all[&name], union);
        all.insert(base, inherited);
    }
}

/// The variants of all unions with a discriminator: schema, member and the values that tell it.
fn find(node: &Value, kinds: &mut Vec<(String, String, Vec<String>)>) {
    match node {
        Value::Array(items) => items.iter().for_each(|item| find(item, kinds)),
        Value::Object(members) => {
            let union = members.get("discriminator").or_else(|| members.get("x-discriminator"));
            let property = union.and_then(|union| union.get("propertyName")).and_then(Value::as_str);
            let variants = members.get("oneOf").and_then(Value::as_array).filter(|_| property.is_some());
            for variant in variants.into_iter().flatten() {
                let Some(name) = variant.get("$ref").and_then(Value::as_str).and_then(schema_name) else {
                    continue;
                };
                let mapping = union.and_then(|union| union.get("mapping")).and_then(Value::as_object);
                let is_named =
                    |to: &Value| to.as_str().is_some_and(|to| to.strip_prefix(PREFIX).unwrap_or(to) == name);
                let mapped = mapping.into_iter().flatten().filter(|(_, to)| is_named(to));
                let mut values: Vec<String> = mapped.map(|(value, _)| value.clone()).collect();
                if values.is_empty() {
                    values.push(name.to_owned());
                }
                kinds.push((name.to_owned(), property.unwrap_or_default().to_owned(), values));
            }
            members.values().for_each(|inner| find(inner, kinds));
        }
        _ => {}
    }
}

/// States the value that tells an object's kind, unless the object does.
fn state(node: &mut Value, property: &str, values: &[String]) {
    // A variant that is a union itself has kinds that say theirs.
    let Some(members) = node.as_object_mut().filter(|members| !members.contains_key("oneOf")) else { return };
    let known = members.get("properties").and_then(|all| all.get(property));
    let is_stated = |known: &Value| {
        known.get("const").is_some()
            || known.get("enum").and_then(Value::as_array).is_some_and(|values| values.len() == 1)
    };
    if !known.is_some_and(is_stated) {
        let about = known.and_then(|known| known.get("description")).cloned();
        let mut stated =
            json!({"type": "string", "description": about.unwrap_or_else(|| json!("The kind."))});
        match values {
            [value] => stated["const"] = json!(value),
            values => stated["enum"] = json!(values),
        }
        object(members.entry("properties").or_insert(Value::Null)).insert(property.to_owned(), stated);
    }
    if let Value::Array(required) = members.entry("required").or_insert_with(|| json!([]))
        && !required.contains(&json!(property))
    {
        required.push(json!(property));
    }
}
