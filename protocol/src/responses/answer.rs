//! A response as a client gets it.

use serde_json::{Map, Value, json};

use super::citations::{ANNOTATIONS, ResponsesCitations};
use super::own_kinds::{NAMESPACE, namespace_of};
use super::{REDACTED, as_they_were, usage};
use crate::conversation::{
    Answer, Choice, FinishReason, Input, Media, MediaSource, Part, PartKind, Protocol, Thought, ToolCall,
    Usage,
};
use crate::members::object;
use crate::{ResponseContext, citations};

/// Writes a client's response.
pub(crate) fn answer_out(answer: Answer, context: &ResponseContext) -> Value {
    let record = ResponseEnvelope::new(context, answer.id.as_deref(), answer.created)
        .served_by(answer.service_tier.as_deref());
    let mut choice = answer.choices.into_iter().next().unwrap_or_default();
    citations::clamp(&mut choice);
    let end = choice.end.take().unwrap_or(FinishReason::Stop);
    // A client of the same protocol gets them back unchanged.
    let output = match answer.source {
        Protocol::Responses => as_they_were::items(choice.parts, choice.logprobs),
        _ => items(choice, &end, &record),
    };
    Value::Object(record.response(&end, output, answer.usage))
}

/// The items of an answer of another protocol.
fn items(choice: Choice, end: &FinishReason, record: &ResponseEnvelope) -> Vec<Value> {
    let status = status(end);
    let mut logprobs = choice.logprobs;
    let mut output: Vec<Value> = Vec::new();
    let mut content: Vec<Value> = Vec::new();
    let (mut at, mut cited) = (0, ResponsesCitations::new(&choice.citations));
    let mut parts = choice.parts;
    let last = parts.iter().rposition(|part| matches!(part.kind, PartKind::Text(_)));
    // A refusal without text must still be visible.
    if *end == FinishReason::Refusal && !parts.iter().any(|part| matches!(part.kind, PartKind::Refusal(_))) {
        parts.push(Part { at: "".into(), kind: PartKind::Refusal(String::new()), cache: None });
    }
    for (index, part) in parts.into_iter().enumerate() {
        match part.kind {
            PartKind::Text(text) => {
                let begin = at;
                at += text.chars().count();
                let annotations = cited.of_part(&(begin..at), Some(index) == last);
                content.push(text_part(&text, &annotations, logprobs.take()));
            }
            PartKind::Refusal(text) => content.push(refusal_part(&text)),
            kind => {
                close(&mut content, &mut output, record, status);
                let index = output.len();
                match kind {
                    PartKind::Call(call) => {
                        let proof =
                            call.signature.as_deref().map(|signature| proof(signature, index, record));
                        output.extend(proof);
                        let id = record.call_id(&call.input, output.len());
                        output.push(call_item(&id, &call, status));
                    }
                    PartKind::Thought(thought) => output.push(thought_item(&thought, index, record)),
                    PartKind::Image(image) => output.extend(image_item(&image, index, record)),
                    _ => {}
                }
            }
        }
    }
    close(&mut content, &mut output, record, status);
    output
}

/// Ends a message.
fn close(content: &mut Vec<Value>, output: &mut Vec<Value>, record: &ResponseEnvelope, status: &str) {
    if !content.is_empty() {
        let id = record.item_id("msg", output.len());
        output.push(message_item(&id, std::mem::take(content), status));
    }
}

/// Status of an ended response and of its items.
pub(super) fn status(end: &FinishReason) -> &'static str {
    match end {
        FinishReason::Other { source: Protocol::Responses, .. }
        | FinishReason::Failed { .. }
        | FinishReason::Length
        | FinishReason::Filtered
        | FinishReason::Paused => "incomplete",
        FinishReason::Stop
        | FinishReason::StopSequence(_)
        | FinishReason::ToolCalls
        | FinishReason::Refusal
        | FinishReason::Other { .. } => "completed",
    }
}

pub(super) fn message_item(id: &str, content: Vec<Value>, status: &str) -> Value {
    Value::Object(object([
        ("type", json!("message")),
        ("id", json!(id)),
        ("role", json!("assistant")),
        ("status", json!(status)),
        ("content", content.into()),
    ]))
}

pub(super) fn text_part(text: &str, annotations: &[Value], logprobs: Option<Value>) -> Value {
    let logprobs = logprobs.unwrap_or_else(|| json!([]));
    json!({ "type": "output_text", "text": text, ANNOTATIONS: annotations, "logprobs": logprobs })
}

pub(super) fn refusal_part(text: &str) -> Value {
    json!({ "type": "refusal", "refusal": text })
}

pub(super) fn call_item(id: &str, call: &ToolCall, status: &str) -> Value {
    let (kind, member, input) = match &call.input {
        Input::Json(text) => ("function_call", "arguments", text),
        Input::Text(text) => ("custom_tool_call", "input", text),
    };
    let (namespace, name) = namespace_of(&call.name);
    let mut item =
        json!({ "type": kind, "id": id, "call_id": call.id, "name": name, member: input, "status": status });
    if let Some(namespace) = namespace {
        item[NAMESPACE] = namespace.into();
    }
    item
}

/// The item that holds the proof of the thoughts that led to a call.
pub(super) fn proof(signature: &str, index: usize, record: &ResponseEnvelope) -> Value {
    thought_item(&Thought { signature: Some(signature.to_owned()), ..Thought::default() }, index, record)
}

pub(super) fn thought_item(thought: &Thought, index: usize, record: &ResponseEnvelope) -> Value {
    let id = match &thought.id {
        Some(id) if id.starts_with("rs_") => id.clone(),
        _ => record.item_id("rs", index),
    };
    let mut item = object([("type", json!("reasoning")), ("id", json!(id)), ("summary", json!([]))]);
    let parts = |kind: &str| thought.text.iter().map(|text| json!({ "type": kind, "text": text })).collect();
    if thought.summary {
        item.insert("summary".to_owned(), parts("summary_text"));
    } else if !thought.text.is_empty() {
        item.insert("content".to_owned(), parts("reasoning_text"));
    }
    if let Some(signature) = &thought.signature {
        let mark = if thought.redacted { REDACTED } else { "" };
        item.insert("encrypted_content".to_owned(), json!(format!("{mark}{signature}")));
    }
    Value::Object(item)
}

/// An image generated by the model; only its data can be expressed here.
pub(super) fn image_item(image: &Media, index: usize, record: &ResponseEnvelope) -> Option<Value> {
    let MediaSource::Inline(data) = &image.source else { return None };
    let id = record.item_id("ig", index);
    let form = image.media_type.as_deref().and_then(|kind| kind.strip_prefix("image/")).unwrap_or("png");
    Some(json!({
        "type": "image_generation_call", "id": id, "status": "completed", "output_format": form, "result": data,
    }))
}

/// What stays the same throughout a response: its ids, and what it repeats from the request.
pub(super) struct ResponseEnvelope {
    id: String,
    repeated: Map<String, Value>,
}

impl ResponseEnvelope {
    /// `id`, `created`: the provider's.
    pub(super) fn new(context: &ResponseContext, id: Option<&str>, created: Option<u64>) -> Self {
        // Ids of other protocols can't be used to retrieve a response.
        let id = id.filter(|id| id.starts_with("resp_")).unwrap_or(&context.id).to_owned();
        let request = &context.request;
        let or = |name: &str, default: Value| match &request[name] {
            Value::Null => default,
            given => given.clone(),
        };
        let repeated = object([
            ("id", json!(id)),
            ("object", json!("response")),
            ("created_at", json!(created.unwrap_or(context.created))),
            ("status", json!("in_progress")),
            ("background", json!(false)),
            ("error", Value::Null),
            ("incomplete_details", Value::Null),
            ("instructions", or("instructions", Value::Null)),
            ("max_output_tokens", or("max_output_tokens", Value::Null)),
            ("max_tool_calls", or("max_tool_calls", Value::Null)),
            ("model", json!(context.model)),
            ("output", json!([])),
            ("parallel_tool_calls", or("parallel_tool_calls", json!(true))),
            ("previous_response_id", or("previous_response_id", Value::Null)),
            ("prompt_cache_key", or("prompt_cache_key", Value::Null)),
            ("reasoning", or("reasoning", json!({ "effort": null, "summary": null }))),
            ("safety_identifier", or("safety_identifier", Value::Null)),
            ("service_tier", json!("default")),
            ("store", or("store", json!(true))),
            ("temperature", or("temperature", json!(1.0))),
            ("text", or("text", json!({ "format": { "type": "text" } }))),
            ("tool_choice", or("tool_choice", json!("auto"))),
            ("tools", or("tools", json!([]))),
            ("top_logprobs", or("top_logprobs", json!(0))),
            ("top_p", or("top_p", json!(1.0))),
            ("truncation", or("truncation", json!("disabled"))),
            ("usage", Value::Null),
            ("user", or("user", Value::Null)),
            ("metadata", or("metadata", json!({}))),
        ]);
        Self { id, repeated }
    }

    /// `tier`: the one that serves the request, if known.
    pub(super) fn served_by(mut self, tier: Option<&str>) -> Self {
        if let Some(tier) = tier {
            self.repeated.insert("service_tier".to_owned(), json!(tier));
        }
        self
    }

    /// The id of an item by its position: the same in whole answers and streams.
    pub(super) fn item_id(&self, kind: &str, index: usize) -> String {
        format!("{kind}_{}_{index}", self.id.strip_prefix("resp_").unwrap_or(&self.id))
    }

    pub(super) fn call_id(&self, input: &Input, index: usize) -> String {
        self.item_id(if matches!(input, Input::Text(_)) { "ctc" } else { "fc" }, index)
    }

    /// The response while in progress.
    pub(super) fn started(&self) -> Map<String, Value> {
        self.repeated.clone()
    }

    /// The response when it has ended.
    pub(super) fn response(
        &self,
        end: &FinishReason,
        output: Vec<Value>,
        usage: Option<Usage>,
    ) -> Map<String, Value> {
        let mut response = self.repeated.clone();
        let mut set = |name: &str, value: Value| drop(response.insert(name.to_owned(), value));
        set("status", json!(status(end)));
        let reason = match end {
            FinishReason::Length => Some("max_output_tokens"),
            FinishReason::Filtered => Some("content_filter"),
            FinishReason::Paused => Some("paused"),
            FinishReason::Other { source: Protocol::Responses, word } => Some(word.as_str()),
            _ => None,
        };
        if let Some(reason) = reason {
            set("incomplete_details", json!({ "reason": reason }));
        }
        set("output", output.into());
        if let Some(usage) = usage {
            set("usage", usage::write(usage));
        }
        response
    }
}
