//! What clients parse from a response, unary and streamed.

use serde_json::Value;

use super::answers::{ANSWER_TEXT, calls};
use crate::callers::Protocol;
use crate::support::Event;

/// The parsed content of a response.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ParsedResponse {
    text: String,
    /// Id, tool and arguments of each call.
    calls: Vec<(String, String, Value)>,
    /// Input and output tokens.
    usage: (u64, u64),
    /// Whether it ended in the way of responses with tool calls in the client's protocol.
    is_end: bool,
}

/// What every client should parse.
pub(super) fn expected() -> ParsedResponse {
    let calls = calls().map(|(id, arguments)| (id.to_owned(), "weather".to_owned(), arguments));
    ParsedResponse { text: ANSWER_TEXT.to_owned(), calls: calls.into(), usage: (3, 2), is_end: true }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Arguments encoded as a JSON string.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

fn usage(usage: &Value, read: &str, written: &str) -> (u64, u64) {
    (usage[read].as_u64().unwrap_or_default(), usage[written].as_u64().unwrap_or_default())
}

/// A unary response, as its client parses it.
pub(super) fn parse_response(client: Protocol, answer: &Value) -> ParsedResponse {
    let mut response = ParsedResponse::default();
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match client {
        Protocol::Chat => {
            let choice = &answer["choices"][0];
            response.text = text(&choice["message"]["content"]);
            for call in items(&choice["message"]["tool_calls"]) {
                let function = &call["function"];
                let arguments = parsed(&text(&function["arguments"]));
                response.calls.push((text(&call["id"]), text(&function["name"]), arguments));
            }
            response.usage = usage(&answer["usage"], "prompt_tokens", "completion_tokens");
            response.is_end = choice["finish_reason"] == "tool_calls";
        }
        Protocol::Responses => {
            for item in items(&answer["output"]) {
                if item["type"] == "message" {
                    response.text += &text(&item["content"][0]["text"]);
                } else {
                    let arguments = parsed(&text(&item["arguments"]));
                    response.calls.push((text(&item["call_id"]), text(&item["name"]), arguments));
                }
            }
            response.usage = usage(&answer["usage"], "input_tokens", "output_tokens");
            response.is_end = answer["status"] == "completed";
        }
        Protocol::Messages => {
            for block in items(&answer["content"]) {
                if block["type"] == "text" {
                    response.text += &text(&block["text"]);
                } else {
                    response.calls.push((text(&block["id"]), text(&block["name"]), block["input"].clone()));
                }
            }
            response.usage = usage(&answer["usage"], "input_tokens", "output_tokens");
            response.is_end = answer["stop_reason"] == "tool_use";
        }
        Protocol::Native => take_candidate(&mut response, answer),
    }
    response
}

/// A document of the native protocol: a response, or a part of one.
fn take_candidate(response: &mut ParsedResponse, document: &Value) {
    let candidate = &document["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        response.text += &text(&part["text"]);
        let call = &part["functionCall"];
        if call.is_object() {
            response.calls.push((text(&call["id"]), text(&call["name"]), call["args"].clone()));
        }
    }
    if document["usageMetadata"].is_object() {
        response.usage = usage(&document["usageMetadata"], "promptTokenCount", "candidatesTokenCount");
    }
    response.is_end |= candidate["finishReason"] == "STOP";
}

/// A stream, as its client assembles it.
pub(super) fn parse_stream(client: Protocol, events: &[Event]) -> ParsedResponse {
    let documents = events.iter().filter(|event| event.data != "[DONE]").map(Event::json);
    let mut response = ParsedResponse::default();
    // Arguments arrive as text fragments.
    let mut arguments: Vec<String> = Vec::new();
    for document in documents {
        match client {
            Protocol::Chat => {
                let choice = &document["choices"][0];
                response.text += &text(&choice["delta"]["content"]);
                for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    if call["id"].is_string() {
                        response.calls.push((
                            text(&call["id"]),
                            text(&call["function"]["name"]),
                            Value::Null,
                        ));
                        arguments.push(String::new());
                    }
                    let index = usize::try_from(call["index"].as_u64().expect("an index")).expect("small");
                    arguments[index] += &text(&call["function"]["arguments"]);
                }
                if document["usage"].is_object() {
                    response.usage = usage(&document["usage"], "prompt_tokens", "completion_tokens");
                }
                response.is_end |= choice["finish_reason"] == "tool_calls";
            }
            Protocol::Responses => match document["type"].as_str().expect("a type") {
                "response.output_text.delta" => response.text += &text(&document["delta"]),
                "response.output_item.done" if document["item"]["type"] == "function_call" => {
                    let item = &document["item"];
                    response.calls.push((text(&item["call_id"]), text(&item["name"]), Value::Null));
                    // The fragments arrived earlier.
                    assert_eq!(arguments.last(), Some(&text(&item["arguments"])));
                }
                "response.function_call_arguments.delta" => {
                    if arguments.len() == response.calls.len() {
                        arguments.push(String::new());
                    }
                    *arguments.last_mut().expect("one") += &text(&document["delta"]);
                }
                "response.completed" => {
                    let last = parse_response(client, &document["response"]);
                    assert_eq!(last, expected(), "the last event repeats all of it");
                    (response.usage, response.is_end) = (last.usage, true);
                }
                _ => {}
            },
            Protocol::Messages => {
                let (block, delta) = (&document["content_block"], &document["delta"]);
                if block["type"] == "tool_use" {
                    response.calls.push((text(&block["id"]), text(&block["name"]), Value::Null));
                    arguments.push(String::new());
                }
                response.text += &text(&delta["text"]);
                if let Some(arguments) = arguments.last_mut() {
                    *arguments += &text(&delta["partial_json"]);
                }
                // The first event may contain an estimate: the last value of each count applies.
                for counts in [&document["message"]["usage"], &document["usage"]] {
                    let (read, written) = usage(counts, "input_tokens", "output_tokens");
                    if counts["input_tokens"].is_u64() {
                        response.usage.0 = read;
                    }
                    if counts["output_tokens"].is_u64() {
                        response.usage.1 = written;
                    }
                }
                response.is_end |= delta["stop_reason"] == "tool_use";
            }
            Protocol::Native => take_candidate(&mut response, &document),
        }
    }
    for (call, arguments) in response.calls.iter_mut().zip(&arguments) {
        call.2 = parsed(arguments);
    }
    response
}
