//! Emits the derived views of the specification: 3.0.3 (what progenitor takes), 3.2 (for tools that check each
//! event of a stream), the schemas of requests and the report of dropped keywords.

use anyhow::Result;
use serde_json::{Value, json};

use super::header;
use crate::lower::Lowered;
use crate::model::File;

const SOURCE: &str = "spec/openapi.yaml";

/// The files below `spec/generated`, and what the core and the gateway hold requests to.
pub(crate) fn emit(lowered: &Lowered) -> Result<Vec<File>> {
    Ok(vec![
        file("spec/generated/openapi-3.0.3.json", &lowered.openapi_3_0)?,
        file("spec/generated/openapi-3.2.json", &lowered.openapi_3_2)?,
        file("core/src/api/generated/requests.schema.json", &lowered.requests)?,
        file("spec/generated/dropped-keywords.json", &json!({"dropped": lowered.dropped}))?,
    ])
}

/// A JSON file that names its source in its first member.
fn file(path: &str, document: &Value) -> Result<File> {
    let mut members = serde_json::Map::new();
    members.insert("x-generated".to_owned(), json!(header(SOURCE)));
    members.extend(document.as_object().cloned().unwrap_or_default());
    let contents = serde_json::to_string_pretty(&members)? + "\n";
    Ok(File { path: path.to_owned(), contents })
}
