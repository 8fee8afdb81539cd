//! Thoughts between texts and calls return to their maker in their original position, even via clients whose messages
//! keep them apart.

use serde_json::{Map, Value, json};

use super::{DEFAULTS, deltas, events, response_context};
use crate::conversation::Protocol;

/// Blocks of an answer of the messages protocol.
fn blocks() -> Value {
    json!([
        { "type": "thinking", "thinking": "a", "signature": "c2lnMQ==" },
        { "type": "tool_use", "id": "call_1", "name": "f", "input": {} },
        { "type": "thinking", "thinking": "b", "signature": "c2lnMg==" },
        { "type": "text", "text": "And now?" },
        { "type": "redacted_thinking", "data": "c2lnMw==" },
        { "type": "tool_use", "id": "call_2", "name": "f", "input": {} },
    ])
}

/// The kinds of blocks in the assistant's turn if a chat client sends this message back.
fn sent_back(message: &Value) -> Vec<String> {
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "1" });
    let messages = json!([{ "role": "user", "content": "Hi" }, message, result("call_1"), result("call_2")]);
    let request = json!({ "model": "m", "reasoning_effort": "low", "messages": messages,
        "tools": [{ "type": "function", "function": { "name": "f" } }] });
    let conversation = Protocol::Chat.request_in(request, "m", false).expect("a request");
    let body = Protocol::Messages.request_out(&conversation, DEFAULTS).body;
    let content = body["messages"][1]["content"].as_array().cloned().unwrap_or_default();
    let name = |block: &Value| {
        let mark = ["signature", "data", "text", "id"].into_iter().find_map(|name| block[name].as_str());
        format!("{} {}", block["type"].as_str().unwrap_or_default(), mark.unwrap_or_default())
    };
    content.iter().map(name).collect()
}

const ORDER: [&str; 6] = [
    "thinking c2lnMQ==",
    "tool_use call_1",
    "thinking c2lnMg==",
    "text And now?",
    "redacted_thinking c2lnMw==",
    "tool_use call_2",
];

#[test]
fn complete_answer_keeps_the_order_of_its_parts() {
    let answer = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": blocks(),
        "stop_reason": "tool_use", "stop_sequence": null, "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let answer = Protocol::Messages.answer_in(answer).expect("an answer");
    let message = Protocol::Chat.answer_out(answer, &response_context("m"))["choices"][0]["message"].take();
    // The protocol determines the order of calls and text: there is one text, and it comes first.
    assert_eq!(sent_back(&message), [ORDER[0], ORDER[3], ORDER[2], ORDER[1], ORDER[4], ORDER[5]]);
}

/// The message that a client assembles from a stream's pieces.
fn collected(events: &Value) -> Value {
    let (mut content, mut details, mut calls) = (String::new(), Vec::<Map<String, Value>>::new(), Vec::new());
    for event in events.as_array().into_iter().flatten() {
        let delta = &event["data"]["choices"][0]["delta"];
        content.push_str(delta["content"].as_str().unwrap_or_default());
        for detail in delta["reasoning_details"].as_array().into_iter().flatten() {
            let known = details.iter_mut().find(|known| known.get("index") == detail.get("index"));
            let detail = detail.as_object().expect("a detail");
            match known {
                None => details.push(detail.clone()),
                Some(known) => known.extend(detail.clone()),
            }
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            if call["id"].is_string() {
                let mut call = call.clone();
                call["function"]["arguments"] = "{}".into();
                calls.push(call);
            }
        }
    }
    json!({ "role": "assistant", "content": content, "reasoning_details": details, "tool_calls": calls })
}

#[test]
fn stream_keeps_the_order_of_its_parts() {
    let mut stream = vec![json!({ "type": "message_start", "message": { "id": "msg_1", "model": "m" } })];
    for (index, block) in blocks().as_array().into_iter().flatten().enumerate() {
        let mut started = block.clone();
        let mut pieces = Vec::new();
        match block["type"].as_str() {
            Some("thinking") => {
                started["thinking"] = "".into();
                started["signature"] = "".into();
                pieces.push(json!({ "type": "thinking_delta", "thinking": block["thinking"] }));
                pieces.push(json!({ "type": "signature_delta", "signature": block["signature"] }));
            }
            Some("text") => {
                started["text"] = "".into();
                pieces.push(json!({ "type": "text_delta", "text": block["text"] }));
            }
            _ => {}
        }
        stream.push(json!({ "type": "content_block_start", "index": index, "content_block": started }));
        let piece = |delta| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        stream.extend(pieces.into_iter().map(piece));
        stream.push(json!({ "type": "content_block_stop", "index": index }));
    }
    stream.push(json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }));
    stream.push(json!({ "type": "message_stop" }));
    let stream: Value =
        stream.into_iter().map(|event| json!({ "event": event["type"], "data": event })).collect();
    let deltas = deltas(Protocol::Messages, &stream).expect("a stream");
    let message = collected(&events(&super::written(Protocol::Chat, &deltas)));
    assert_eq!(sent_back(&message), [ORDER[0], ORDER[3], ORDER[2], ORDER[1], ORDER[4], ORDER[5]]);
}

#[test]
fn thoughts_without_a_usable_index_come_first() {
    let detail = |index: Option<u64>| {
        let mut detail = json!({ "type": "reasoning.text", "text": "a", "signature": "c2ln" });
        if let Some(index) = index {
            detail["index"] = index.into();
        }
        detail
    };
    let call = json!({ "id": "call_1", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let other = json!({ "id": "call_2", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    for details in [json!([detail(None), detail(Some(5))]), json!([detail(Some(0)), detail(Some(0))])] {
        let message = json!({ "role": "assistant", "content": "x", "reasoning_details": details,
            "tool_calls": [call, other] });
        let kinds = sent_back(&message);
        assert_eq!(&kinds[..3], ["thinking c2ln", "thinking c2ln", "text x"], "{details}");
    }
    let far = json!({ "role": "assistant", "content": "x", "reasoning_details": [detail(Some(u64::MAX))],
        "tool_calls": [call, other] });
    assert_eq!(sent_back(&far)[0], "thinking c2ln");
}
