//! Finish reasons of the chat protocol.

use std::borrow::Cow;

use crate::conversation::{End, Protocol};

/// Reads a `finish_reason`.
pub(super) fn end(word: &str) -> End {
    // Servers that front others pass their values through, also in upper case.
    match word.to_ascii_lowercase().as_str() {
        "stop" => End::Stop,
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => End::Length,
        "tool_calls" | "function_call" => End::ToolCalls,
        "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content" | "spii" => {
            End::Filtered
        }
        "error" | "abort" | "aborted" | "network_error" | "malformed_function_call" => {
            End::Failed { source: Protocol::Chat, word: word.to_owned() }
        }
        _ => End::Other { source: Protocol::Chat, word: word.to_owned() },
    }
}

/// Writes a `finish_reason`. `calls`: whether the choice has tool calls, which clients execute only if it says so.
/// `functions`: whether the client uses functions instead of tools.
pub(super) fn word(end: &End, calls: bool, functions: bool) -> Cow<'static, str> {
    match end {
        End::Length => "length".into(),
        End::ToolCalls if functions => "function_call".into(),
        End::ToolCalls => "tool_calls".into(),
        End::Filtered | End::Refusal => "content_filter".into(),
        End::Other { source: Protocol::Chat, word } | End::Failed { source: Protocol::Chat, word } => {
            word.clone().into()
        }
        // For a client of another protocol, this is an error.
        End::Failed { .. } => "error".into(),
        End::Other { .. } | End::StopSequence(_) | End::Paused if calls => {
            word(&End::ToolCalls, calls, functions)
        }
        // This protocol can't resume a paused turn.
        End::Stop | End::StopSequence(_) | End::Paused | End::Other { .. } => "stop".into(),
    }
}
