//! The response as upstreams send it in each protocol, unary and streamed.

use serde_json::{Value, json};

use crate::callers::{Protocol, numbered, response};

/// The text that every upstream sends before its calls.
pub(super) const ANSWER_TEXT: &str = "I look again.";

/// The parallel tool calls of every upstream.
pub(super) fn calls() -> [(&'static str, Value); 2] {
    [("d1", json!({"city": "Oslo"})), ("d2", json!({"city": "Rome"}))]
}

/// The response of an upstream: [`ANSWER_TEXT`] and [`calls`], 3 input tokens, 2 output tokens.
pub(super) fn whole(speaks: Protocol) -> Value {
    let calls = calls();
    match speaks {
        Protocol::Chat => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|(id, arguments)| {
                    let function = json!({"name": "weather", "arguments": arguments.to_string()});
                    json!({"id": id, "type": "function", "function": function})
                })
                .collect();
            let message =
                json!({"role": "assistant", "content": ANSWER_TEXT, "refusal": null, "tool_calls": calls});
            let choice =
                json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls"});
            json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "theirs",
                "choices": [choice],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
        }
        Protocol::Responses => response("completed", json!(items())),
        Protocol::Messages => {
            let mut content = vec![json!({"type": "text", "text": ANSWER_TEXT})];
            content.extend(calls.iter().map(|(id, arguments)| {
                json!({"type": "tool_use", "id": id, "name": "weather", "input": arguments})
            }));
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": content,
                "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {"input_tokens": 3, "output_tokens": 2}})
        }
        Protocol::Native => {
            let mut parts = vec![json!({"text": ANSWER_TEXT})];
            parts.extend(calls.iter().map(
                |(id, arguments)| json!({"functionCall": {"id": id, "name": "weather", "args": arguments}}),
            ));
            candidates(&parts, true)
        }
    }
}

fn candidates(parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if !is_last {
        return json!({"candidates": [candidate], "modelVersion": "theirs"});
    }
    candidate["finishReason"] = "STOP".into();
    json!({"candidates": [candidate], "modelVersion": "theirs",
        "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}})
}

/// The output items in the responses protocol.
fn items() -> Vec<Value> {
    let part = json!({"type": "output_text", "text": ANSWER_TEXT, "annotations": [], "logprobs": []});
    let mut items =
        vec![json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [part]})];
    items.extend((1..).zip(calls()).map(|(number, (id, arguments))| {
        json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "weather",
            "arguments": arguments.to_string(), "status": "completed"})
    }));
    items
}

/// A text in two fragments.
fn pieces(text: &str) -> [&str; 2] {
    text.split_at(text.len() / 2).into()
}

/// The same response as the events of a stream.
pub(super) fn streamed(speaks: Protocol) -> String {
    let lines = |events: Vec<Value>| -> String {
        let block = |event: Value| format!("data: {event}\n\n");
        events.into_iter().map(block).collect()
    };
    match speaks {
        Protocol::Chat => lines(chunks()) + "data: [DONE]\n\n",
        Protocol::Responses => named(responses_events()),
        Protocol::Messages => named(messages_events()),
        Protocol::Native => {
            let [first, second] = pieces(ANSWER_TEXT);
            let mut events = vec![
                candidates(&[json!({"text": first})], false),
                candidates(&[json!({"text": second})], false),
            ];
            let [one, two] = calls().map(
                |(id, arguments)| json!({"functionCall": {"id": id, "name": "weather", "args": arguments}}),
            );
            events.extend([candidates(&[one], false), candidates(&[two], true)]);
            lines(events)
        }
    }
}

pub(super) fn named(events: Vec<Value>) -> String {
    let block =
        |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
    events.into_iter().map(block).collect()
}

fn chunks() -> Vec<Value> {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "theirs",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], "usage": null})
    };
    let mut chunks = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    chunks.extend(pieces(ANSWER_TEXT).map(|text| chunk(json!({"content": text}), Value::Null)));
    for (index, (id, arguments)) in calls().into_iter().enumerate() {
        let started = json!({"index": index, "id": id, "type": "function",
            "function": {"name": "weather", "arguments": ""}});
        chunks.push(chunk(json!({"tool_calls": [started]}), Value::Null));
        chunks.extend(pieces(&arguments.to_string()).map(|piece| {
            let call = json!({"index": index, "function": {"arguments": piece}});
            chunk(json!({"tool_calls": [call]}), Value::Null)
        }));
    }
    chunks.push(chunk(json!({}), "tool_calls".into()));
    chunks
        .push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "theirs",
        "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}));
    chunks
}

fn responses_events() -> Vec<Value> {
    let mut events =
        vec![json!({"type": "response.created", "response": response("in_progress", json!([]))})];
    for (index, item) in items().into_iter().enumerate() {
        let at = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "item_id": item["id"], "output_index": index});
            event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            event
        };
        let mut started = item.clone();
        started["status"] = "in_progress".into();
        let is_message = item["type"] == "message";
        started[if is_message { "content" } else { "arguments" }] =
            if is_message { json!([]) } else { json!("") };
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": started}));
        if is_message {
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            events.push(at("response.content_part.added", json!({"content_index": 0, "part": part("")})));
            events.extend(pieces(ANSWER_TEXT).map(|piece| {
                at("response.output_text.delta", json!({"content_index": 0, "delta": piece, "logprobs": []}))
            }));
            let done = json!({"content_index": 0, "text": ANSWER_TEXT, "logprobs": []});
            events.push(at("response.output_text.done", done));
            events.push(at(
                "response.content_part.done",
                json!({"content_index": 0, "part": part(ANSWER_TEXT)}),
            ));
        } else {
            let arguments = item["arguments"].as_str().expect("text");
            events.extend(
                pieces(arguments)
                    .map(|piece| at("response.function_call_arguments.delta", json!({"delta": piece}))),
            );
            events.push(at("response.function_call_arguments.done", json!({"arguments": arguments})));
        }
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    events.push(json!({"type": "response.completed", "response": response("completed", json!(items()))}));
    numbered(events)
}

fn messages_events() -> Vec<Value> {
    let started = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 1}});
    let mut events = vec![json!({"type": "message_start", "message": started})];
    let mut block = |index: usize, started: Value, deltas: [Value; 2]| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": started}));
        let deltas =
            deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.extend(deltas);
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    let text = pieces(ANSWER_TEXT).map(|text| json!({"type": "text_delta", "text": text}));
    block(0, json!({"type": "text", "text": ""}), text);
    for (index, (id, arguments)) in (1..).zip(calls()) {
        let started = json!({"type": "tool_use", "id": id, "name": "weather", "input": {}});
        let deltas = pieces(&arguments.to_string())
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        block(index, started, deltas);
    }
    events.extend([
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]);
    events
}
