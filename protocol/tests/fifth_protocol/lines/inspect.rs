//! Reads what the gateway must know of an event that passes through, without building a tree.

use gatewright_protocol::inspect::{EventAction, StreamInspector, StreamProgress};
use gatewright_protocol::lazy_json::members;

/// Errors: it isn't an object.
pub(super) fn event(inspector: &mut StreamInspector, data: &str) -> serde_json::Result<EventAction> {
    let (mut model, mut tokens, mut is_text, mut is_last, mut is_error) = (None, None, false, false, false);
    members(data, |name, value| match name {
        "model" => model = Some(value),
        "tokens" => tokens = Some(value),
        "more" => is_text = true,
        "why" => is_last = true,
        "wrong" => is_error = true,
        _ => {}
    })?;
    if is_error {
        return Ok(inspector.error(data));
    }
    inspector.take_usage(tokens);
    inspector.pieces += u64::from(is_text);
    if is_last {
        inspector.progress = StreamProgress::Ended;
    }
    Ok(inspector.renamed(data, model))
}
