//! Stop reasons of the messages protocol.

use serde_json::Value;

use crate::conversation::{End, Protocol};

/// Reads a `stop_reason`. `sequence`: the stop sequence that was reached.
pub(super) fn end(reason: &Value, sequence: &Value) -> Option<End> {
    Some(match reason.as_str()? {
        "end_turn" => End::Stop,
        "stop_sequence" => End::StopSequence(sequence.as_str().map(str::to_owned)),
        "max_tokens" | "model_context_window_exceeded" => End::Length,
        "tool_use" => End::ToolCalls,
        "refusal" => End::Refusal,
        "pause_turn" => End::Paused,
        other => End::Other { source: Protocol::Messages, word: other.to_owned() },
    })
}

/// Writes a `stop_reason` and the stop sequence that was reached. `calls`: whether the answer has tool calls. Some
/// providers report a plain stop for such an answer, and agents wouldn't execute the calls.
pub(super) fn words(end: &End, calls: bool) -> (&str, Option<&str>) {
    match end {
        End::Other { source: Protocol::Messages, word } => (word, None),
        End::Stop | End::Other { .. } if calls => ("tool_use", None),
        End::Stop | End::Other { .. } => ("end_turn", None),
        End::StopSequence(sequence) => ("stop_sequence", sequence.as_deref()),
        End::Length => ("max_tokens", None),
        End::ToolCalls => ("tool_use", None),
        End::Filtered | End::Refusal | End::Failed { .. } => ("refusal", None),
        End::Paused => ("pause_turn", None),
    }
}
