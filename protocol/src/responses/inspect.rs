//! Reads what the gateway must know of an event, without building a tree.

use serde_json::value::RawValue;

use crate::inspect::{EventAction, MAX_KEPT_BYTES, StreamInspector, StreamProgress, is_given};
use crate::lazy_json::{self, members};
use crate::output_estimate;

/// Reads an event. Errors: it isn't an object.
pub(super) fn event(
    inspector: &mut StreamInspector,
    name: Option<&str>,
    data: &str,
) -> serde_json::Result<EventAction> {
    let (mut kind, mut response, mut number, mut error, mut item) = (None, None, None, None, None);
    let mut delta = None;
    members(data, |name, value| match name {
        "type" => kind = lazy_json::string(value),
        "error" => error = Some(value),
        "response" => response = Some(value),
        "item" => item = Some(value),
        "delta" => delta = Some(value),
        "sequence_number" => number = serde_json::from_str(value.get()).ok(),
        _ => {}
    })?;
    let typed = kind.as_deref().unwrap_or_default();
    // The event name is the fallback if the data has no type.
    let kind = kind.as_deref().or(name).unwrap_or_default();
    if kind.rsplit('.').next() == Some("delta") {
        inspector.pieces += 1;
        let text = delta.filter(|_| !matches!(kind, "response.audio.delta" | "response.output_audio.delta"));
        inspector.note_written(text.map_or(0, output_estimate::text));
    }
    if kind == "error" || typed.is_empty() && is_given(error) {
        return Ok(inspector.error(data));
    }
    // An error takes the number of the event that reports it to the client.
    if kind != "response.failed" {
        inspector.sequence_number = number.or(inspector.sequence_number);
    }
    if let Some(item) = item.filter(|_| kind == "response.output_item.done") {
        inspector.keep_item(item);
        inspector.note_written(hidden_thought(item));
    }
    let (mut model, mut usage) = (None, None);
    let read = response.map(|response| {
        members(response.get(), |name, value| match name {
            "model" => model = Some(value),
            "usage" => usage = Some(value),
            _ => {}
        })
    });
    // A final event ends the stream even if its response can't be parsed.
    let is_end = matches!(kind, "response.completed" | "response.incomplete");
    if is_end {
        inspector.progress = StreamProgress::Ended;
    } else if kind != "response.failed" {
        read.transpose()?;
    }
    inspector.take_usage(usage);
    if kind == "response.failed" {
        let document =
            response.map(RawValue::get).filter(|document| document.starts_with('{')).unwrap_or(data);
        let mut failure = inspector.failure(document);
        if let Some(beyond) = &mut failure.beyond {
            // These members are part of the response, not of the error.
            beyond.beside.clear();
        }
        if let Some(response) =
            response.filter(|_| document.len() <= MAX_KEPT_BYTES && document.as_ptr() != data.as_ptr())
        {
            inspector.started = Some(response.to_owned());
        }
        let seen = inspector.failed(failure);
        // The stream has sent its final event.
        inspector.progress = StreamProgress::Ended;
        return Ok(seen);
    }
    let Some(response) = response else { return Ok(EventAction::Pass) };
    if is_end {
        if response.get().starts_with('{') {
            inspector.ended_with = Some(lazy_json::place(data, response));
        }
    } else if inspector.started.is_none() && response.get().len() <= MAX_KEPT_BYTES {
        inspector.started = Some(response.to_owned());
    }
    Ok(inspector.renamed(data, model))
}

/// Bytes of a thought that is encrypted in a finished item.
fn hidden_thought(item: &RawValue) -> usize {
    let mut bytes = 0;
    // Another value than an object has none.
    _ = members(item.get(), |name, value| {
        if name == "encrypted_content" {
            bytes = output_estimate::hidden_in(value);
        }
    });
    bytes
}
