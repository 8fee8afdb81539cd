//! The text answer format, as requested in the chat and responses protocols.

use gatewright_protocol::json::text;
use serde_json::Value;

use crate::bounds::client_schema::{ClientSchema, OutOfBounds};
use crate::simulator::conversation::ReplyFormat;

/// `schema`: the protocol's JSON Schema field, and its `pointer`.
pub(crate) fn format(format: &Value, schema: &Value, pointer: &str) -> Result<ReplyFormat, OutOfBounds> {
    Ok(match text(&format["type"]) {
        "json_object" => ReplyFormat::JsonObject,
        "json_schema" => ReplyFormat::JsonSchema(ClientSchema::read(schema, pointer)?),
        _ => ReplyFormat::Text,
    })
}
