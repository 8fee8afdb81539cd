//! The fault `messy`: the answer has the same content, but deviates from the specification in ways that real providers do.
//! Each deviation comes from public bug reports about gateways.

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use gatewright::operations::{Operation, Protocol};
use serde_json::{Map, Value, json};

use super::FaultStream;

/// The comment that servers send while a request waits for its first event.
const COMMENT: &[u8] = b": waiting\r\n\r\n";

/// Rewrites the documents of an answer: a whole one, or those of a stream's events.
pub(super) fn mess_up(pieces: FaultStream, streams: bool, operation: &Operation) -> FaultStream {
    let protocol = operation.protocol;
    let rewrite = move |piece: Result<Bytes, std::io::Error>| {
        let piece = match piece {
            Ok(piece) => piece,
            Err(error) => return vec![Err(error)],
        };
        if streams {
            return event(protocol, &piece).map(Ok).into_iter().collect();
        }
        let Ok(mut document) = serde_json::from_slice(&piece) else { return vec![Ok(piece)] };
        of_whole(protocol, &mut document);
        vec![Ok(document.to_string().into())]
    };
    let messy = pieces.flat_map(move |piece| stream::iter(rewrite(piece)));
    if streams { stream::iter([Ok(Bytes::from_static(COMMENT))]).chain(messy).boxed() } else { messy.boxed() }
}

/// Rewrites an event of a stream; `None` if it is omitted.
fn event(protocol: Protocol, piece: &[u8]) -> Option<Bytes> {
    let text = str::from_utf8(piece).ok()?;
    let lines: Option<Vec<String>> = text
        .lines()
        .map(|line| match line.strip_prefix("data: ").map(serde_json::from_str) {
            Some(Ok(mut document)) => of_event(protocol, &mut document).then(|| format!("data:{document}")),
            _ => Some(line.to_owned()),
        })
        .collect();
    // Some servers end lines with CRLF.
    lines.map(|lines| lines.iter().flat_map(|line| [line, "\r\n"]).collect::<String>().into())
}

/// Rewrites the document of an event. Returns whether the event is sent.
fn of_event(protocol: Protocol, document: &mut Value) -> bool {
    match protocol {
        Protocol::Chat => chunk(document),
        Protocol::Responses => return event_of_responses(document),
        Protocol::Messages => event_of_messages(document),
        Protocol::Native => candidates(document),
        _ => {}
    }
    true
}

fn of_whole(protocol: Protocol, document: &mut Value) {
    match protocol {
        Protocol::Chat => {
            for choice in items(document, "choices") {
                let message = &mut choice["message"];
                for call in items(message, "tool_calls") {
                    remove(call, &["type"]);
                    unpack(&mut call["function"]["arguments"]);
                }
                // Some servers report a plain stop although the message contains calls.
                if choice["finish_reason"] == "tool_calls" {
                    choice["finish_reason"] = "stop".into();
                }
            }
            remove(document, &["object", "created", "system_fingerprint", "service_tier"]);
        }
        Protocol::Responses => {
            for item in items(document, "output") {
                remove(item, &["status"]);
            }
        }
        Protocol::Messages => remove(document, &["type", "role", "stop_sequence"]),
        Protocol::Native => candidates(document),
        _ => {}
    }
}

/// Servers of the chat protocol omit members that a single choice does not need, and write missing members of a chunk as
/// null or empty.
fn chunk(document: &mut Value) {
    remove(document, &["object", "created", "system_fingerprint", "service_tier"]);
    let choices = &mut document["choices"];
    if choices.as_array().is_some_and(Vec::is_empty) {
        *choices = Value::Null;
    }
    let is_one = choices.as_array().is_some_and(|choices| choices.len() == 1);
    for choice in items(document, "choices") {
        if is_one && choice["index"] == 0 {
            remove(choice, &["index", "logprobs"]);
        }
        if choice["finish_reason"].is_null() {
            choice["finish_reason"] = "".into();
        }
        let delta = &mut choice["delta"];
        for name in ["content", "reasoning_content", "refusal"] {
            fill(delta, name, Value::Null);
        }
        for call in items(delta, "tool_calls") {
            remove(call, &["type"]);
            fill(call, "id", "".into());
            fill(&mut call["function"], "name", "".into());
        }
    }
}

/// Servers of the responses protocol do not number events, omit those that only frame a text, and do not repeat the output
/// in the last event.
fn event_of_responses(document: &mut Value) -> bool {
    remove(document, &["sequence_number", "logprobs", "obfuscation", "content_index"]);
    if let Some(item) = document.get_mut("item") {
        remove(item, &["status"]);
    }
    match document["type"].as_str() {
        Some("response.completed") => document["response"]["output"] = json!([]),
        Some("response.in_progress" | "response.content_part.added" | "response.content_part.done") => {
            return false;
        }
        _ => {}
    }
    true
}

/// Servers of the messages protocol omit the usage in the first event, and end calls with the stop reason of texts.
fn event_of_messages(document: &mut Value) {
    match document["type"].as_str() {
        Some("message_start") => {
            remove(&mut document["message"], &["type", "role", "stop_sequence", "usage"]);
        }
        Some("content_block_start") => {
            remove(&mut document["content_block"], &["citations", "signature"]);
        }
        Some("message_delta") => {
            remove(&mut document["delta"], &["stop_sequence"]);
            if document["delta"]["stop_reason"] == "tool_use" {
                document["delta"]["stop_reason"] = "end_turn".into();
            }
        }
        _ => {}
    }
}

/// Servers of the native protocol add an empty part, and omit indices, roles and empty arguments.
fn candidates(document: &mut Value) {
    for candidate in items(document, "candidates") {
        remove(candidate, &["index", "safetyRatings"]);
        let content = &mut candidate["content"];
        remove(content, &["role"]);
        for part in items(content, "parts") {
            if let Some(call) = part.get_mut("functionCall") {
                let is_empty = call["args"].as_object().is_some_and(Map::is_empty);
                remove(call, if is_empty { &["args", "id"] } else { &["id"] });
            }
        }
        if let Some(parts) = content["parts"].as_array_mut() {
            parts.push(json!({ "text": "" }));
        }
    }
}

/// The items of a member that is an array.
fn items<'a>(value: &'a mut Value, name: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten()
}

fn remove(value: &mut Value, names: &[&str]) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// Adds a member to an object unless it already has one of that name.
fn fill(value: &mut Value, name: &str, with: Value) {
    if let Some(members) = value.as_object_mut() {
        members.entry(name).or_insert(with);
    }
}

/// Replaces a text that contains JSON with its value.
fn unpack(text: &mut Value) {
    if let Some(Ok(document)) = text.as_str().map(serde_json::from_str) {
        *text = document;
    }
}
