//! Stop reasons of the messages protocol.

use serde_json::Value;

use crate::conversation::{FinishReason, Protocol};

/// Reads a `stop_reason`. `sequence`: the stop sequence that was reached.
pub(super) fn end(reason: &Value, sequence: &Value) -> Option<FinishReason> {
    Some(match reason.as_str()? {
        "end_turn" => FinishReason::Stop,
        "stop_sequence" => FinishReason::StopSequence(sequence.as_str().map(str::to_owned)),
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::Refusal,
        "pause_turn" => FinishReason::Paused,
        other => FinishReason::Other { source: Protocol::Messages, word: other.to_owned() },
    })
}

/// Writes a `stop_reason` and the stop sequence that was reached. `calls`: whether the answer has tool calls. Some
/// providers report a plain stop for such an answer, and agents wouldn't execute the calls.
pub(super) fn words(end: &FinishReason, calls: bool) -> (&str, Option<&str>) {
    match end {
        FinishReason::Other { source: Protocol::Messages, word } => (word, None),
        FinishReason::Stop | FinishReason::Other { .. } if calls => ("tool_use", None),
        FinishReason::Stop | FinishReason::Other { .. } => ("end_turn", None),
        FinishReason::StopSequence(sequence) => ("stop_sequence", sequence.as_deref()),
        FinishReason::Length => ("max_tokens", None),
        FinishReason::ToolCalls => ("tool_use", None),
        FinishReason::Filtered | FinishReason::Refusal | FinishReason::Failed { .. } => ("refusal", None),
        FinishReason::Paused => ("pause_turn", None),
    }
}
