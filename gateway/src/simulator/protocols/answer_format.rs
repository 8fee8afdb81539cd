//! The form of a text answer, as the chat and responses protocols ask for it.

use serde_json::Value;

use crate::bounds::client_schema::{ClientSchema, OutOfBounds};
use crate::simulator::conversation::Format;
use crate::wire::json::text;

/// `schema`: where the protocol has the JSON Schema, and its `pointer`.
pub(crate) fn format(format: &Value, schema: &Value, pointer: &str) -> Result<Format, OutOfBounds> {
    Ok(match text(&format["type"]) {
        "json_object" => Format::JsonObject,
        "json_schema" => Format::JsonSchema(ClientSchema::read(schema, pointer)?),
        _ => Format::Text,
    })
}
