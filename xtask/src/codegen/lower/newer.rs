//! The specification as OpenAPI 3.2.

use serde_json::{Value, json};

use crate::codegen::load::Document;

pub(super) fn newer(document: &Document) -> Value {
    let mut newer = document.0.clone();
    newer["openapi"] = json!("3.2.0");
    item_schemas(&mut newer);
    newer
}

/// `x-item-schema` has a keyword of its own since 3.2.
fn item_schemas(node: &mut Value) {
    match node {
        Value::Object(members) => {
            if let Some(schema) = members.shift_remove("x-item-schema") {
                members.insert("itemSchema".to_owned(), schema);
            }
            members.values_mut().for_each(item_schemas);
        }
        Value::Array(items) => items.iter_mut().for_each(item_schemas),
        _ => {}
    }
}
