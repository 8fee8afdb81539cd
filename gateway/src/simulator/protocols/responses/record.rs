//! The response object and its items.

use gatewright_protocol::tree;
use serde_json::{Value, json};

use crate::bounds::budget::{Budget, BudgetExceeded};
use crate::simulator::conversation::{Finish, ReplyUsage};
use crate::simulator::protocols::logprobs::Logprobs;
use crate::simulator::protocols::service_tier::served_tier;
use crate::simulator::protocols::tools::ToolInvocation;

/// Number of copies of the echoed request fields in memory at once: in the three events of a stream that contain the
/// response, and in the one being built.
const ECHOES_AT_ONCE: usize = 4;

/// The result of a turn.
pub(super) struct TurnResult {
    pub(super) items: Vec<SimulatedItem>,
    pub(super) finish: Finish,
    pub(super) usage: ReplyUsage,
}

impl TurnResult {
    /// Status of the items and of the response.
    pub(super) fn item_status(&self) -> &'static str {
        if self.finish == Finish::Length { "incomplete" } else { "completed" }
    }
}

/// An output item.
pub(super) enum SimulatedItem {
    Message { id: String, text: String, logprobs: Option<Logprobs> },
    Call { id: String, call_id: String, called: ToolInvocation },
    Compaction { id: String, content: String },
}

impl SimulatedItem {
    pub(super) fn json(&self, status: &str) -> Value {
        match self {
            Self::Message { id, text, logprobs } => message(id, status, &[text_part(text, *logprobs)]),
            Self::Call { id, call_id, called: ToolInvocation::Function { name, arguments } } => json!({
                "type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments,
                "status": status,
            }),
            Self::Call { id, call_id, called: ToolInvocation::Custom { name, input } } => json!({
                "type": "custom_tool_call", "id": id, "call_id": call_id, "name": name, "input": input,
                "status": status,
            }),
            Self::Compaction { id, content } => {
                json!({ "type": "compaction", "id": id, "encrypted_content": content })
            }
        }
    }
}

pub(super) fn message(id: &str, status: &str, parts: &[Value]) -> Value {
    json!({ "type": "message", "id": id, "role": "assistant", "status": status, "content": parts })
}

pub(super) fn text_part(text: &str, logprobs: Option<Logprobs>) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": told(logprobs, text) })
}

/// The log probabilities of a text; empty unless requested.
pub(super) fn told(logprobs: Option<Logprobs>, text: &str) -> Value {
    logprobs.map_or_else(|| json!([]), |logprobs| logprobs.of(text))
}

/// The constant fields of a response.
pub(super) struct SimulatedResponse {
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) model: &'static str,
    pub(super) request: Value,
}

/// The progress of a response.
pub(super) enum ResponseProgress<'a> {
    Begun,
    Ended(&'a TurnResult),
}

impl SimulatedResponse {
    /// Charges the request fields that the response echoes: nearly everything except the input.
    pub(super) fn charge(&self, budget: &Budget) -> Result<(), BudgetExceeded> {
        let members = self.request.as_object().into_iter().flatten();
        let echo = members.filter(|(name, _)| *name != "input").map(|(_, member)| tree::bytes(member));
        budget.make(echo.sum::<usize>().saturating_mul(ECHOES_AT_ONCE))
    }

    /// The response object, with all required fields.
    pub(super) fn json(&self, progress: &ResponseProgress<'_>) -> Value {
        let (status, output, details, usage) = match progress {
            ResponseProgress::Begun => ("in_progress", Vec::new(), Value::Null, Value::Null),
            ResponseProgress::Ended(made) => {
                let cut = made.finish == Finish::Length;
                let details = if cut { json!({ "reason": "max_output_tokens" }) } else { Value::Null };
                let output = made.items.iter().map(|item| item.json(made.item_status())).collect();
                (made.item_status(), output, details, usage(made.usage))
            }
        };
        let request = &self.request;
        let or = |field: &str, default: Value| {
            if request[field].is_null() { default } else { request[field].clone() }
        };
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "background": false,
            "error": null,
            "incomplete_details": details,
            "instructions": request["instructions"],
            "max_output_tokens": request["max_output_tokens"],
            "max_tool_calls": request["max_tool_calls"],
            "model": self.model,
            "output": output,
            "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
            "previous_response_id": request["previous_response_id"],
            "prompt_cache_key": request["prompt_cache_key"],
            "reasoning": or("reasoning", json!({ "effort": null, "summary": null })),
            "safety_identifier": request["safety_identifier"],
            "service_tier": served_tier(request["service_tier"].as_str().unwrap_or("auto")),
            "store": or("store", json!(true)),
            "temperature": or("temperature", json!(1.0)),
            "text": or("text", json!({ "format": { "type": "text" } })),
            "tool_choice": or("tool_choice", json!("auto")),
            "tools": or("tools", json!([])),
            "top_logprobs": or("top_logprobs", json!(0)),
            "top_p": or("top_p", json!(1.0)),
            "truncation": or("truncation", json!("disabled")),
            "usage": usage,
            "user": request["user"],
            "metadata": or("metadata", json!({})),
        })
    }
}

pub(super) fn usage(usage: ReplyUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": 0, "cache_write_tokens": 0 },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": usage.input + usage.output,
    })
}
