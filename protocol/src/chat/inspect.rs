//! Reads what the gateway must know of a chunk, without building a tree.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::inspect::{DONE, EventAction, StreamChoice, StreamInspector, StreamProgress, is_given};
use crate::lazy_json::{self, members};
use crate::output_estimate::{text, texts};

/// Reads a chunk, or the event that ends the stream. Errors: it is neither.
pub(super) fn event(
    inspector: &mut StreamInspector,
    name: Option<&str>,
    data: &str,
) -> serde_json::Result<EventAction> {
    if data.trim() == DONE {
        inspector.progress = inspector.progress.max(StreamProgress::Ended);
        return Ok(EventAction::Pass);
    }
    let (mut model, mut usage, mut error, mut choices) = (None, None, None, None);
    members(data, |name, value| match name {
        "model" => model = Some(value),
        "usage" => usage = Some(value),
        "error" => error = Some(value),
        "choices" => choices = Some(value),
        _ => {}
    })?;
    if is_given(error) || name == Some("error") {
        return Ok(inspector.error(data));
    }
    let null = choices.filter(|choices| choices.get() == "null");
    let choices: Vec<StreamChoice<'_>> =
        choices.and_then(|choices| serde_json::from_str(choices.get()).ok()).unwrap_or_default();
    inspector.pieces += u64::from(!choices.is_empty());
    for delta in choices.iter().filter_map(|choice| choice.delta) {
        inspector.note_written(written_in(delta));
    }
    inspector.note(&choices);
    if inspector.take_usage(usage) && inspector.hide_usage && choices.is_empty() {
        return Ok(EventAction::Hide);
    }
    if let Some(null) = null {
        // Clients iterate over the list without checking that it exists.
        let mut edits = vec![(lazy_json::place(data, null), &b"[]"[..])];
        edits.extend(inspector.rename(data, model).map(|at| (at, inspector.model())));
        edits.sort_by_key(|(at, _)| at.start);
        return Ok(EventAction::Rewrite(lazy_json::spliced(
            &Bytes::copy_from_slice(data.as_bytes()),
            &edits,
        )));
    }
    Ok(inspector.renamed(data, model))
}

/// Bytes of the text that a delta adds.
fn written_in(delta: &RawValue) -> usize {
    let (mut answer, mut thought) = (0, 0);
    // Another value than an object adds nothing.
    _ = members(delta.get(), |name, value| match name {
        "content" if value.get().starts_with('"') => answer += text(value),
        "content" | "tool_calls" | "function_call" => answer += texts(value),
        "refusal" => answer += text(value),
        // Some servers write a thought under several names.
        "reasoning" | "reasoning_content" => thought = thought.max(text(value)),
        "reasoning_details" => thought = thought.max(texts(value)),
        _ => {}
    });
    answer + thought
}
