//! Whole answers of each protocol: the assertions of their form, and the parts that checks need.

use gatewright::ErrorBody;
use serde_json::Value;

use super::ProbedProtocol;
use crate::cell::Cell;
use crate::failure::{Category, Failure};
use crate::response_object::{brief, count, kind};

/// The parts of an answer that checks need.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ProtocolAnswer {
    /// Its text, joined over all parts.
    pub(super) text: String,
    /// Its calls of functions.
    pub(super) calls: Vec<ToolCall>,
}

/// A call of a function.
#[derive(Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    /// The arguments; text if they are no JSON.
    pub(super) arguments: Value,
}

/// Asserts the form of an answer. Returns `None` if there is nothing to read.
pub(super) fn read(cell: &mut Cell, protocol: ProbedProtocol, value: &Value) -> Option<ProtocolAnswer> {
    if !cell.assert(Category::Schema, "answer", "a JSON object", kind(value), value.is_object()) {
        return None;
    }
    if !value["error"].is_null() {
        let error_body = ErrorBody::of_value(&value["error"]);
        let failure = Failure::reported(Category::Response, "the answer contains an error", error_body);
        cell.fail("error", "null or absent", brief(&value["error"]), failure);
    }
    let answer = match protocol {
        ProbedProtocol::Chat => chat(cell, value),
        ProbedProtocol::Messages => messages(cell, value),
        ProbedProtocol::Native => native(cell, value),
    };
    let counts = usage(protocol, value);
    let found = if counts.is_some() { "counts of tokens" } else { "none" };
    cell.assert(Category::Schema, "usage", "counts of tokens", found, counts.is_some());
    answer
}

/// Tokens in and out, if a document or an event has both counts.
pub(super) fn usage(protocol: ProbedProtocol, value: &Value) -> Option<(u64, u64)> {
    let (usage, names) = match protocol {
        ProbedProtocol::Chat => (&value["usage"], ["prompt_tokens", "completion_tokens"]),
        // In a stream, the first event has both.
        ProbedProtocol::Messages if value["message"].is_object() => {
            (&value["message"]["usage"], ["input_tokens", "output_tokens"])
        }
        ProbedProtocol::Messages => (&value["usage"], ["input_tokens", "output_tokens"]),
        ProbedProtocol::Native => (&value["usageMetadata"], ["promptTokenCount", "totalTokenCount"]),
    };
    Some((count(&usage[names[0]])?, count(&usage[names[1]])?))
}

fn is(cell: &mut Cell, what: &str, value: &Value, expected: &str) {
    cell.assert(Category::Schema, what, format!("{expected:?}"), brief(value), value == expected);
}

fn named(cell: &mut Cell, what: &str, value: &Value) {
    let held = value.as_str().is_some_and(|text| !text.is_empty());
    cell.assert(Category::Schema, what, "a string that is not empty", brief(value), held);
}

/// Asserts that a value is an array that is not empty.
fn items<'v>(cell: &mut Cell, what: &str, value: &'v Value) -> Option<&'v Vec<Value>> {
    let found =
        value.as_array().map_or_else(|| kind(value).to_owned(), |all| format!("an array of {}", all.len()));
    let all = value.as_array().filter(|all| !all.is_empty());
    cell.assert(Category::Schema, what, "an array that is not empty", found, all.is_some());
    all
}

/// Asserts that the reason for the end fits whether functions are called.
fn ends(cell: &mut Cell, what: &str, value: &Value, has_calls: bool, [with, without]: [&str; 2]) {
    // Some services end forced calls like any other answer.
    let held = value == with && has_calls || value == without;
    let expected = if has_calls { format!("{with:?} or {without:?}") } else { format!("{without:?}") };
    cell.assert(Category::Schema, what, expected, brief(value), held);
}

fn chat(cell: &mut Cell, value: &Value) -> Option<ProtocolAnswer> {
    is(cell, "object", &value["object"], "chat.completion");
    named(cell, "id", &value["id"]);
    named(cell, "model", &value["model"]);
    let choice = items(cell, "choices", &value["choices"])?.first()?;
    let message = &choice["message"];
    is(cell, "choices/0/message/role", &message["role"], "assistant");
    let content = &message["content"];
    let held = content.is_string() || content.is_null();
    cell.assert(Category::Schema, "choices/0/message/content", "a string or null", kind(content), held);
    let mut answer =
        ProtocolAnswer { text: content.as_str().unwrap_or_default().to_owned(), calls: Vec::new() };
    for (index, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let place = format!("choices/0/message/tool_calls/{index}");
        named(cell, &format!("{place}/id"), &call["id"]);
        is(cell, &format!("{place}/type"), &call["type"], "function");
        let arguments = &call["function"]["arguments"];
        let what = format!("{place}/function/arguments");
        cell.assert(Category::Schema, &what, "a string", kind(arguments), arguments.is_string());
        let text = arguments.as_str().unwrap_or_default();
        answer.calls.push(ToolCall {
            name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
            arguments: serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        });
    }
    let has_calls = !answer.calls.is_empty();
    ends(cell, "choices/0/finish_reason", &choice["finish_reason"], has_calls, ["tool_calls", "stop"]);
    Some(answer)
}

fn messages(cell: &mut Cell, value: &Value) -> Option<ProtocolAnswer> {
    is(cell, "type", &value["type"], "message");
    is(cell, "role", &value["role"], "assistant");
    named(cell, "id", &value["id"]);
    named(cell, "model", &value["model"]);
    let mut answer = ProtocolAnswer::default();
    for (index, block) in items(cell, "content", &value["content"])?.iter().enumerate() {
        let place = format!("content/{index}");
        match block["type"].as_str() {
            Some("text") => {
                let text = &block["text"];
                cell.assert(
                    Category::Schema,
                    &format!("{place}/text"),
                    "a string",
                    kind(text),
                    text.is_string(),
                );
                answer.text.push_str(text.as_str().unwrap_or_default());
            }
            Some("tool_use") => {
                named(cell, &format!("{place}/id"), &block["id"]);
                let input = &block["input"];
                let what = format!("{place}/input");
                cell.assert(Category::Schema, &what, "an object", kind(input), input.is_object());
                let name = block["name"].as_str().unwrap_or_default().to_owned();
                answer.calls.push(ToolCall { name, arguments: input.clone() });
            }
            Some(_) => {}
            None => named(cell, &format!("{place}/type"), &block["type"]),
        }
    }
    let has_calls = !answer.calls.is_empty();
    ends(cell, "stop_reason", &value["stop_reason"], has_calls, ["tool_use", "end_turn"]);
    Some(answer)
}

fn native(cell: &mut Cell, value: &Value) -> Option<ProtocolAnswer> {
    let candidate = items(cell, "candidates", &value["candidates"])?.first()?;
    let content = &candidate["content"];
    is(cell, "candidates/0/content/role", &content["role"], "model");
    let mut answer = ProtocolAnswer::default();
    for (index, part) in items(cell, "candidates/0/content/parts", &content["parts"])?.iter().enumerate() {
        let called = &part["functionCall"];
        if called.is_object() {
            let args = &called["args"];
            let what = format!("candidates/0/content/parts/{index}/functionCall/args");
            cell.assert(Category::Schema, &what, "an object", kind(args), args.is_object());
            let name = called["name"].as_str().unwrap_or_default().to_owned();
            answer.calls.push(ToolCall { name, arguments: args.clone() });
        } else if part["thought"] != true {
            answer.text.push_str(part["text"].as_str().unwrap_or_default());
        }
    }
    ends(cell, "candidates/0/finishReason", &candidate["finishReason"], false, ["STOP", "STOP"]);
    Some(answer)
}
