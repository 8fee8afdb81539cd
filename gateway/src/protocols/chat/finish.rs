//! Why a choice ended, in the words of the chat protocol.

use std::borrow::Cow;

use crate::conversation::{End, Protocol};

/// Reads a `finish_reason`.
pub(super) fn end(word: &str) -> End {
    // Servers in front of others pass the words of those on, in capital letters too.
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

/// Writes a `finish_reason`. `calls`: whether the choice has calls of tools, which clients make only if it says so.
/// `functions`: whether the client knows functions and no tools.
pub(super) fn word(end: &End, calls: bool, functions: bool) -> Cow<'static, str> {
    match end {
        End::Length => "length".into(),
        End::ToolCalls if functions => "function_call".into(),
        End::ToolCalls => "tool_calls".into(),
        End::Filtered | End::Refusal => "content_filter".into(),
        End::Other { source: Protocol::Chat, word } | End::Failed { source: Protocol::Chat, word } => {
            word.clone().into()
        }
        // To a client of another protocol it is an error.
        End::Failed { .. } => "error".into(),
        End::Other { .. } | End::StopSequence(_) | End::Paused if calls => {
            word(&End::ToolCalls, calls, functions)
        }
        // A paused turn has nothing that this protocol could go on with.
        End::Stop | End::StopSequence(_) | End::Paused | End::Other { .. } => "stop".into(),
    }
}
