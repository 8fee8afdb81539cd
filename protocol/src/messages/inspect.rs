//! Reads what the gateway must know of an event, without building a tree.

use crate::inspect::{EventAction, StreamInspector, StreamProgress, is_given};
use crate::lazy_json::{self, members};

/// Reads an event. Errors: it isn't an object.
pub(super) fn event(
    inspector: &mut StreamInspector,
    name: Option<&str>,
    data: &str,
) -> serde_json::Result<EventAction> {
    let (mut kind, mut message, mut usage, mut error) = (None, None, None, None);
    members(data, |name, value| match name {
        "type" => kind = lazy_json::string(value),
        "error" => error = Some(value),
        "message" => message = Some(value),
        "usage" => usage = Some(value),
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
        "content_block_delta" => inspector.pieces += 1,
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
