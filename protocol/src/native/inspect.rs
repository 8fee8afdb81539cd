//! Reads what the gateway must know of a document, without building a tree.

use serde_json::value::RawValue;

use crate::inspect::{EventAction, StreamChoice, StreamInspector, StreamProgress, is_given};
use crate::lazy_json::{each_item, members};
use crate::output_estimate::{hidden_in, text};

/// Reads a document of a stream. Errors: it isn't an object.
pub(super) fn event(inspector: &mut StreamInspector, data: &str) -> serde_json::Result<EventAction> {
    let (mut model, mut usage, mut error, mut candidates, mut blocked) = (None, None, None, None, false);
    members(first_of_list(data), |name, value| match name {
        "modelVersion" => model = Some(value),
        "usageMetadata" => usage = Some(value),
        "error" => error = Some(value),
        "candidates" => candidates = Some(value),
        "promptFeedback" => blocked = says_why(value),
        _ => {}
    })?;
    if is_given(error) {
        return Ok(inspector.error(data));
    }
    inspector.take_usage(usage);
    let candidates: Vec<StreamChoice<'_>> =
        candidates.and_then(|candidates| serde_json::from_str(candidates.get()).ok()).unwrap_or_default();
    inspector.pieces += u64::from(!candidates.is_empty());
    for content in candidates.iter().filter_map(|candidate| candidate.content) {
        inspector.note_written(written_in(content));
    }
    // This protocol has no final event after this.
    inspector.note(&candidates);
    if blocked {
        inspector.progress = inspector.progress.max(StreamProgress::Finished);
    }
    Ok(inspector.renamed(data, model))
}

/// Bytes of the text in the parts of a content.
fn written_in(content: &RawValue) -> usize {
    let mut bytes = 0;
    let mut part = |part: &RawValue| {
        _ = members(part.get(), |name, value| match name {
            "text" | "functionCall" | "executableCode" => bytes += text(value),
            "thoughtSignature" => bytes += hidden_in(value),
            _ => {}
        });
    };
    // Values of other types have no parts.
    _ = members(content.get(), |name, value| {
        if name == "parts" {
            _ = each_item(value.get(), &mut part);
        }
    });
    bytes
}

/// Whether the prompt feedback says why there is no answer (native).
fn says_why(feedback: &RawValue) -> bool {
    let mut has_text = false;
    let read = members(feedback.get(), |name, value| {
        if name == "blockReason" {
            has_text = value.get().starts_with('"');
        }
    });
    read.is_ok() && has_text
}

/// An error may come as a list with one entry.
fn first_of_list(data: &str) -> &str {
    let Some(items) = data.trim_ascii_start().strip_prefix('[') else { return data };
    let first = serde_json::Deserializer::from_str(items).into_iter::<&RawValue>().next();
    first.and_then(Result::ok).map_or(data, RawValue::get)
}
