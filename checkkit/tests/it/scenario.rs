//! The language of `tests/vectors/checkkit`: how a server responds, and the resulting cells. Described in
//! `tests/vectors/README.md`.

use std::fmt::Write as _;

use gatewright::report::Check;
use serde_json::{Map, Value, json};

use crate::server::{Canned, End, Request, Route};

/// The default response, unless a scenario overrides it.
pub(crate) fn good(request: &Request) -> Canned {
    reply(&Value::Null, request)
}

/// The response that a scenario describes, for one request.
pub(crate) fn reply(script: &Value, request: &Request) -> Canned {
    let end = match script["end"].as_str() {
        None | Some("close" | "short") => End::Close,
        Some("reset") => End::Reset,
        Some("hang") => End::Hang,
        Some("flood") => End::Flood,
        Some(other) => panic!("unknown end {other}"),
    };
    if let Some(raw) = script["raw"].as_str() {
        return Canned { packets: vec![fill(raw, request).into_bytes()], end };
    }
    let route = request.route();
    let body = body(script, request, route);
    let media_type = if route == Route::Stream { "text/event-stream" } else { "application/json" };
    let mut headers = json!({ "content-type": media_type, "x-request-id": "req_1" });
    merge(&mut headers, &script["headers"]);
    let status = script["status"].as_u64().unwrap_or(200);
    let chunked = script["chunked"] == true;
    match script["end"].as_str() {
        _ if chunked => headers["transfer-encoding"] = json!("chunked"),
        // The body ends when the connection does, or never.
        Some("close" | "hang" | "flood") => {}
        Some("short" | "reset") => headers["content-length"] = json!((body.len() + 1).to_string()),
        _ => headers["content-length"] = json!(body.len().to_string()),
    }
    let mut head = format!("HTTP/1.1 {status} X\r\n");
    for (name, value) in headers.as_object().expect("headers") {
        if let Some(value) = value.as_str() {
            write!(head, "{name}: {}\r\n", fill(value, request)).expect("writing to a string succeeds");
        }
    }
    head.push_str("\r\n");
    let size = script["packet"].as_u64().map_or(usize::MAX, |size| usize::try_from(size).expect("small"));
    let mut packets = vec![head.into_bytes()];
    for piece in body.chunks(size.min(body.len().max(1))) {
        packets.push(if chunked { chunk(piece) } else { piece.to_vec() });
    }
    if chunked && script["end"].is_null() {
        packets.push(chunk(b""));
    }
    Canned { packets, end }
}

fn chunk(piece: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()
}

fn body(script: &Value, request: &Request, route: Route) -> Vec<u8> {
    if let Some(hex) = script["hex"].as_str() {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex");
        return digits.chunks(2).map(byte).collect();
    }
    let text = if let Some(text) = script["text"].as_str() {
        text.repeat(script["times"].as_u64().map_or(1, |times| usize::try_from(times).expect("small")))
    } else if let Some(value) = script.get("json") {
        value.to_string()
    } else if route == Route::Stream {
        let mut events = good_events(request);
        edit(&mut events, script);
        written(&events)
    } else {
        let mut document = good_document(request, route);
        edit(&mut document, script);
        document.to_string()
    };
    fill(&text, request).into_bytes()
}

/// Placeholders: values known only from the request.
pub(crate) fn fill(text: &str, request: &Request) -> String {
    text.replace("{{token}}", &request.token())
        .replace("{{model}}", request.model())
        .replace("{{key}}", request.key())
}

pub(crate) fn good_document(request: &Request, route: Route) -> Value {
    match route {
        Route::Models => json!({ "object": "list", "data": [
            { "id": "model-sol", "object": "model" }, { "id": "model-terra", "object": "model" },
            { "id": "model-luna", "object": "model" },
        ]}),
        Route::Tool => response(
            request,
            &json!([{
                "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "compat_echo",
                "arguments": format!("{{\"value\":\"{}\"}}", request.token()), "status": "completed",
            }]),
        ),
        _ => response(request, &json!([message(&request.token())])),
    }
}

fn message(text: &str) -> Value {
    json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
}

fn response(request: &Request, output: &Value) -> Value {
    json!({
        "id": "resp_1", "object": "response", "created_at": 1_767_225_600, "status": "completed",
        "model": request.model(), "output": output, "error": null, "incomplete_details": null,
        "usage": {
            "input_tokens": 20, "output_tokens": 8, "total_tokens": 28,
            "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens_details": { "reasoning_tokens": 2 },
        },
    })
}

pub(crate) fn good_events(request: &Request) -> Value {
    let token = request.token();
    let (first, rest) = token.split_at(token.len() / 2);
    let mut in_progress = response(request, &json!([]));
    in_progress["status"] = json!("in_progress");
    let place = |event: &Value| {
        let mut event = event.clone();
        merge(&mut event, &json!({ "output_index": 0, "content_index": 0, "item_id": "msg_1" }));
        event
    };
    let mut events = vec![
        json!({ "type": "response.created", "response": in_progress }),
        json!({ "type": "response.in_progress", "response": in_progress }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": message("") }),
        place(&json!({ "type": "response.output_text.delta", "delta": first })),
        place(&json!({ "type": "response.output_text.delta", "delta": rest })),
        place(&json!({ "type": "response.output_text.done", "text": token })),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": message(&token) }),
        json!({ "type": "response.completed", "response": response(request, &json!([message(&token)])) }),
    ];
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    Value::Array(events)
}

/// An event: an object is its data; a string goes into the stream unchanged.
pub(crate) fn written(events: &Value) -> String {
    let mut text = String::new();
    for event in events.as_array().expect("events") {
        match event {
            Value::String(raw) => text.push_str(raw),
            event => {
                let mut data = event.clone();
                let name = data.as_object_mut().and_then(|data| data.shift_remove("(event)"));
                let name = name.unwrap_or_else(|| event["type"].clone());
                if let Some(name) = name.as_str() {
                    writeln!(text, "event: {name}").expect("writing to a string succeeds");
                }
                write!(text, "data: {data}\n\n").expect("writing to a string succeeds");
            }
        }
    }
    text
}

/// `remove`, `set`, `insert` and `append`, in this order.
fn edit(document: &mut Value, script: &Value) {
    for pointer in script["remove"].as_array().into_iter().flatten() {
        let (parent, last) = split(pointer.as_str().expect("a pointer"));
        match document.pointer_mut(parent).expect("there") {
            Value::Object(members) => drop(members.shift_remove(last)),
            Value::Array(items) => drop(items.remove(last.parse().expect("an index"))),
            _ => panic!("nothing to remove at {pointer}"),
        }
    }
    for (pointer, value) in script["set"].as_object().into_iter().flatten() {
        if pointer.is_empty() {
            *document = value.clone();
            continue;
        }
        let (parent, last) = split(pointer);
        match document.pointer_mut(parent).expect("there") {
            Value::Array(items) => items[last.parse::<usize>().expect("an index")] = value.clone(),
            parent => parent[last] = value.clone(),
        }
    }
    for (pointer, value) in script["insert"].as_object().into_iter().flatten() {
        let (parent, last) = split(pointer);
        let items = document.pointer_mut(parent).and_then(Value::as_array_mut).expect("an array");
        items.insert(last.parse().expect("an index"), value.clone());
    }
    for value in script["append"].as_array().into_iter().flatten() {
        document.as_array_mut().expect("an array").push(value.clone());
    }
}

fn split(pointer: &str) -> (&str, &str) {
    pointer.rsplit_once('/').expect("a pointer")
}

fn merge(target: &mut Value, more: &Value) {
    for (name, value) in more.as_object().unwrap_or(&Map::new()) {
        target[name] = value.clone();
    }
}

/// What is wrong with a cell: members of `expected` that are missing or different. Text that begins with `~` only has to be
/// contained in the cell's text.
pub(crate) fn differences(check: &Check, expected: &Value) -> Vec<String> {
    let found = serde_json::to_value(check).expect("a check serializes");
    let mut differences = Vec::new();
    compare("", &found, expected, &mut differences);
    if !differences.is_empty() && !found["error"].is_null() {
        differences.push(format!(" has the error {}", found["error"]));
    }
    differences
}

fn compare(place: &str, found: &Value, expected: &Value, differences: &mut Vec<String>) {
    if expected["(absent)"] == true {
        if !found.is_null() {
            differences.push(format!("{place}: should be absent, is {found}"));
        }
    } else if let Some(members) = expected.as_object() {
        for (name, expected) in members {
            compare(&format!("{place}/{name}"), &found[name], expected, differences);
        }
    } else if let Some(part) = expected.as_str().and_then(|text| text.strip_prefix('~')) {
        if !found.as_str().is_some_and(|found| found.contains(part)) {
            differences.push(format!("{place}: {part:?} is not in {found}"));
        }
    } else if expected != found {
        differences.push(format!("{place}: expected {expected}, found {found}"));
    }
}
