//! The items of a response of this protocol, for a client of the same protocol: a part's place identifies its item, to
//! which the other fields return.

use serde_json::{Map, Value, json};

use crate::conversation::{Input, Part, PartKind, Thought, ToolCall};
use crate::members::object;

/// The output. `logprobs`: those of the text, attached to its first part.
pub(super) fn items(parts: Vec<Part>, mut logprobs: Option<Value>) -> Vec<Value> {
    let mut output = Vec::new();
    for part in parts {
        let (item, is_content) = match part.at.strip_prefix("/output/").map(|at| at.split_once("/content/")) {
            Some(Some((item, _))) => (item.parse().ok(), true),
            _ => (part.at.rsplit('/').next().and_then(|item| item.parse().ok()), false),
        };
        // Parts without a place were made by the gateway.
        let item: usize = item.unwrap_or(output.len());
        if item >= output.len() {
            // In between are items without any parts, such as messages without content.
            output.resize(item + 1, Value::Null);
        }
        let written = match part.kind {
            PartKind::Text(text) => {
                let mut part = object([("text", json!(text))]);
                part.extend(logprobs.take().map(|tokens| ("logprobs".to_owned(), tokens)));
                part.into()
            }
            PartKind::Refusal(text) => json!({ "refusal": text }),
            PartKind::Call(called) => call(&called).into(),
            PartKind::Thought(known) => thought(&known).into(),
            PartKind::Other(value) => value,
            PartKind::Image(_) | PartKind::Audio(_) | PartKind::File(_) | PartKind::Result(_) => continue,
        };
        if !is_content {
            output[item] = written;
        } else if let Value::Array(content) = &mut output[item]["content"] {
            content.push(written);
        } else {
            output[item]["content"] = json!([written]);
        }
    }
    output
}

fn call(call: &ToolCall) -> Map<String, Value> {
    let (name, input) = match &call.input {
        Input::Json(text) => ("arguments", text),
        Input::Text(text) => ("input", text),
    };
    object([("call_id", json!(call.id)), ("name", json!(call.name)), (name, json!(input))])
}

fn thought(thought: &Thought) -> Map<String, Value> {
    let (name, kind) =
        if thought.summary { ("summary", "summary_text") } else { ("content", "reasoning_text") };
    let texts: Vec<Value> = thought.text.iter().map(|text| json!({ "type": kind, "text": text })).collect();
    let mut item = Map::new();
    if !texts.is_empty() {
        item.insert(name.to_owned(), texts.into());
    }
    for (name, text) in [("id", &thought.id), ("encrypted_content", &thought.signature)] {
        item.extend(text.as_ref().map(|text| (name.to_owned(), json!(text))));
    }
    item
}
