//! Finish reasons of the chat protocol.

use std::borrow::Cow;

use crate::conversation::{FinishReason, Protocol};

/// Reads a `finish_reason`.
pub(super) fn end(word: &str) -> FinishReason {
    // Servers that front others pass their values through, also in upper case.
    match word.to_ascii_lowercase().as_str() {
        "stop" => FinishReason::Stop,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content" | "spii" => {
            FinishReason::Filtered
        }
        "error" | "abort" | "aborted" | "network_error" | "malformed_function_call" => {
            FinishReason::Failed { source: Protocol::Chat, word: word.to_owned() }
        }
        _ => FinishReason::Other { source: Protocol::Chat, word: word.to_owned() },
    }
}

/// Writes a `finish_reason`. `calls`: whether the choice has tool calls, which clients execute only if it says so.
/// `functions`: whether the client uses functions instead of tools.
pub(super) fn word(end: &FinishReason, calls: bool, functions: bool) -> Cow<'static, str> {
    match end {
        FinishReason::Length => "length".into(),
        FinishReason::ToolCalls if functions => "function_call".into(),
        FinishReason::ToolCalls => "tool_calls".into(),
        FinishReason::Filtered | FinishReason::Refusal => "content_filter".into(),
        FinishReason::Other { source: Protocol::Chat, word }
        | FinishReason::Failed { source: Protocol::Chat, word } => word.clone().into(),
        // For a client of another protocol, this is an error.
        FinishReason::Failed { .. } => "error".into(),
        FinishReason::Other { .. } | FinishReason::StopSequence(_) | FinishReason::Paused if calls => {
            word(&FinishReason::ToolCalls, calls, functions)
        }
        // This protocol can't resume a paused turn.
        FinishReason::Stop
        | FinishReason::StopSequence(_)
        | FinishReason::Paused
        | FinishReason::Other { .. } => "stop".into(),
    }
}
