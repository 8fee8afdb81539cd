//! Emits the derived views of the specification: 3.0.3 (what progenitor takes), 3.2 (for tools that check each
//! event of a stream), the schemas of requests and the report of dropped keywords.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Input, header};
use crate::model::File;

/// The files below `spec/generated`, and what the core and the gateway hold requests to.
pub(super) fn emit(input: &Input<'_>) -> Result<Vec<File>> {
    let lowered = input.lowered;
    let file = |path: &str, document: &Value| json_file(path, &input.api.source, document);
    Ok(vec![
        file("spec/generated/openapi-3.0.3.json", &lowered.openapi_3_0)?,
        file("spec/generated/openapi-3.2.json", &lowered.openapi_3_2)?,
        file("core/src/api/generated/requests.schema.json", &lowered.requests)?,
        file("spec/generated/dropped-keywords.json", &json!({"dropped": lowered.dropped}))?,
    ])
}

/// A JSON file that names its source in its first member.
fn json_file(path: &str, source: &str, document: &Value) -> Result<File> {
    let mut members = serde_json::Map::new();
    members.insert("x-generated".to_owned(), json!(header(source)));
    members.extend(document.as_object().cloned().unwrap_or_default());
    let contents = serde_json::to_string_pretty(&members)? + "\n";
    Ok(File { path: path.to_owned(), part: None, contents })
}
