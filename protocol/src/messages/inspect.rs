//! Reads what the gateway must know of an event, without building a tree.

use serde_json::value::RawValue;

use crate::inspect::{EventAction, StreamInspector, StreamProgress, is_given};
use crate::lazy_json::{self, members};
use crate::output_estimate::{hidden_in, text};

/// Reads an event. Errors: it isn't an object.
pub(super) fn event(
    inspector: &mut StreamInspector,
    name: Option<&str>,
    data: &str,
) -> serde_json::Result<EventAction> {
    let (mut kind, mut message, mut usage, mut error, mut content) = (None, None, None, None, None);
    members(data, |name, value| match name {
        "type" => kind = lazy_json::string(value),
        "error" => error = Some(value),
        "message" => message = Some(value),
        "usage" => usage = Some(value),
        "delta" | "content_block" => content = Some(value),
        _ => {}
    })?;
    let typed = kind.as_deref().unwrap_or_default();
    let kind = if typed.is_empty() { name.unwrap_or_default() } else { typed };
    match if name == Some("ping") { "ping" } else { kind } {
        "ping" => return Ok(EventAction::Ping),
        "error" => return Ok(inspector.error(data)),
        // Proxies in front of other servers report errors in the chat format.
        _ if typed.is_empty() && is_given(error) => {
            return Ok(inspector.error(data));
        }
        "content_block_start" => inspector.note_written(content.map_or(0, hidden_thought)),
        "content_block_delta" => {
            inspector.pieces += 1;
            inspector.note_written(content.map_or(0, written_in));
        }
        "message_stop" => inspector.progress = inspector.progress.max(StreamProgress::Ended),
        _ => {}
    }
    inspector.take_usage(usage);
    let Some(message) = message else { return Ok(EventAction::Pass) };
    let (mut model, mut usage) = (None, None);
    members(message.get(), |name, value| match name {
        "model" => model = Some(value),
        "usage" => usage = Some(value),
        _ => {}
    })?;
    inspector.take_usage(usage);
    Ok(inspector.renamed(data, model))
}

/// Bytes of the text that a delta adds.
fn written_in(delta: &RawValue) -> usize {
    let mut bytes = 0;
    // Another value than an object adds nothing.
    _ = members(delta.get(), |name, value| match name {
        "text" | "thinking" | "partial_json" => bytes += text(value),
        "signature" => bytes += hidden_in(value),
        _ => {}
    });
    bytes
}

/// Bytes of a hidden thought, which comes at the start of its block.
fn hidden_thought(block: &RawValue) -> usize {
    let (mut is_thought, mut bytes) = (false, 0);
    _ = members(block.get(), |name, value| match name {
        "type" => is_thought = value.get() == r#""redacted_thinking""#,
        "data" => bytes = hidden_in(value),
        _ => {}
    });
    if is_thought { bytes } else { 0 }
}
