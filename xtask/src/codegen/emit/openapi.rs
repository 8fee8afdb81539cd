//! Emits the derived views of the specification: 3.0.3 (what progenitor takes), 3.2 (for tools that check each
//! event of a stream) and the report of dropped keywords.

use anyhow::Result;
use serde_json::{Value, json};

use super::header;
use crate::codegen::lower::Lowered;
use crate::codegen::model::{Api, File};

const SOURCE: &str = "spec/openapi.yaml";

/// The files below `spec/generated`.
pub(crate) fn emit(api: &Api, lowered: &Lowered) -> Result<Vec<File>> {
    let mut newer = api.document.clone();
    newer["openapi"] = json!("3.2.0");
    item_schemas(&mut newer);
    Ok(vec![
        file("spec/generated/openapi-3.0.3.json", &lowered.document)?,
        file("spec/generated/openapi-3.2.json", &newer)?,
        file("spec/generated/dropped-keywords.json", &json!({"dropped": lowered.dropped}))?,
    ])
}

/// A JSON file that names its source in its first member.
pub(crate) fn file(path: &str, document: &Value) -> Result<File> {
    let mut members = serde_json::Map::new();
    members.insert("x-generated".to_owned(), json!(header(SOURCE)));
    members.extend(document.as_object().cloned().unwrap_or_default());
    let contents = serde_json::to_string_pretty(&members)? + "\n";
    Ok(File { path: path.to_owned(), contents })
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
