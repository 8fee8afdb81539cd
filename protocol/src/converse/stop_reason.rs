//! Stop reasons.

use serde_json::{Map, Value};

use crate::conversation::{FinishReason, Protocol};

/// The field with the data that a request asks the server to add to its answer, and the stop sequence in it.
pub(super) const ADDITIONAL: &str = "additionalModelResponseFields";
pub(super) const STOP_SEQUENCE: &str = "stop_sequence";

/// Reads the `stopReason` of a document, and the stop sequence that was reached.
pub(super) fn end(document: &Map<String, Value>) -> Option<FinishReason> {
    let source = Protocol::Converse;
    Some(match document.get("stopReason")?.as_str()? {
        "end_turn" => FinishReason::Stop,
        "stop_sequence" => {
            let sequence = document.get(ADDITIONAL).and_then(|additional| additional[STOP_SEQUENCE].as_str());
            FinishReason::StopSequence(sequence.map(str::to_owned))
        }
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "guardrail_intervened" | "content_filtered" => FinishReason::Filtered,
        "refusal" => FinishReason::Refusal,
        word @ ("malformed_model_output" | "malformed_tool_use") => {
            FinishReason::Failed { source, word: word.to_owned() }
        }
        word => FinishReason::Other { source, word: word.to_owned() },
    })
}
