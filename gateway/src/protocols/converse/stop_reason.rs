//! Stop reasons.

use serde_json::{Map, Value};

use crate::conversation::{End, Protocol};

/// Field with what the client asked the server to add to its answer, and the stop sequence in it.
pub(super) const ADDITIONAL: &str = "additionalModelResponseFields";
pub(super) const STOP_SEQUENCE: &str = "stop_sequence";

/// Reads the `stopReason` of a document, and the stop sequence that was reached.
pub(super) fn end(document: &Map<String, Value>) -> Option<End> {
    let source = Protocol::Converse;
    Some(match document.get("stopReason")?.as_str()? {
        "end_turn" => End::Stop,
        "stop_sequence" => {
            let sequence = document.get(ADDITIONAL).and_then(|additional| additional[STOP_SEQUENCE].as_str());
            End::StopSequence(sequence.map(str::to_owned))
        }
        "max_tokens" | "model_context_window_exceeded" => End::Length,
        "tool_use" => End::ToolCalls,
        "guardrail_intervened" | "content_filtered" => End::Filtered,
        "refusal" => End::Refusal,
        word @ ("malformed_model_output" | "malformed_tool_use") => {
            End::Failed { source, word: word.to_owned() }
        }
        word => End::Other { source, word: word.to_owned() },
    })
}
