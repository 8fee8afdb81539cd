use serde_json::{Value, json};

use super::{Answer, Call, Event, Form, Later, Step, Style, mixed, pieces};

/// Response items: several may be open at the same time, and deltas or the final output may be missing.
pub(super) fn responses(answer: &Answer) -> Vec<Event> {
    let style = &answer.style;
    let started = json!({ "id": "resp_1", "object": "response", "created_at": 1, "status": "in_progress", "model": "m", "output": [] });
    let mut events = vec![json!({ "type": "response.created", "response": started })];
    let mut output: Vec<Value> = Vec::new();
    for step in &answer.steps {
        let index = output.len();
        match step {
            Step::Text(text) => events.extend(message(text, index, style, &mut output)),
            Step::Thought(text) => events.extend(thought(text, index, style, &mut output)),
            Step::Calls(calls, _) => {
                let lists = calls.iter().map(|call| item(call, style, &mut output)).collect();
                events.extend(mixed_items(lists, style));
            }
        }
    }
    let is_cut = answer.is_cut();
    let status = if is_cut { "incomplete" } else { "completed" };
    let mut whole = started;
    whole["status"] = status.into();
    if is_cut {
        whole["incomplete_details"] = json!({ "reason": "max_output_tokens" });
    }
    whole["output"] = if style.late_text { json!([]) } else { output.into() };
    events.push(json!({ "type": format!("response.{status}"), "response": whole }));
    let name = |event: &Value| {
        let kinds = [
            "response.created",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
            "response.completed",
            "response.incomplete",
        ];
        kinds.into_iter().find(|kind| event["type"] == *kind)
    };
    let numbered = |(number, mut event): (usize, Value)| {
        event["sequence_number"] = number.into();
        (name(&event), event.to_string())
    };
    events.into_iter().enumerate().map(numbered).collect()
}

/// Items are added in order, and then continue in turns.
fn mixed_items(lists: Vec<Vec<Value>>, style: &Style) -> Vec<Value> {
    if style.turns.len().is_multiple_of(2) {
        return lists.into_iter().flatten().collect();
    }
    let (mut added, mut rest) = (Vec::new(), Vec::new());
    for mut list in lists {
        added.push(list.remove(0));
        rest.push(list);
    }
    added.into_iter().chain(mixed(rest, &style.turns)).collect()
}

fn with(at: &Value, kind: &str, members: Value) -> Value {
    let mut event = at.clone();
    event["type"] = format!("response.{kind}").into();
    if let Value::Object(members) = members {
        for (name, value) in members {
            event[name] = value;
        }
    }
    event
}

fn message(text: &str, index: usize, style: &Style, output: &mut Vec<Value>) -> Vec<Value> {
    let id = format!("msg_{index}");
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let item = |status: &str, content: Value| json!({ "id": id, "type": "message", "role": "assistant", "status": status, "content": content });
    let at = json!({ "output_index": index, "item_id": id, "content_index": 0 });
    let of_item = json!({ "output_index": index });
    let mut events = vec![
        with(&of_item, "output_item.added", json!({ "item": item("in_progress", json!([])) })),
        with(&at, "content_part.added", json!({ "part": part("") })),
    ];
    let has_deltas = style.arguments != Form::Whole;
    if has_deltas {
        let delta = |text: String| with(&at, "output_text.delta", json!({ "delta": text }));
        events.extend(pieces(text, style.size).into_iter().map(delta));
    }
    events.push(with(&at, "output_text.done", json!({ "text": text })));
    events.push(with(&at, "content_part.done", json!({ "part": part(text) })));
    let done = item("completed", json!([part(text)]));
    events.push(with(&of_item, "output_item.done", json!({ "item": done })));
    output.push(done);
    events
}

fn thought(text: &str, index: usize, style: &Style, output: &mut Vec<Value>) -> Vec<Value> {
    let id = format!("rs_{index}");
    let part = |text: &str| json!({ "type": "summary_text", "text": text });
    let item = |summary: Value| json!({ "id": id, "type": "reasoning", "summary": summary, "encrypted_content": "AA==" });
    let at = json!({ "output_index": index, "item_id": id, "summary_index": 0 });
    let of_item = json!({ "output_index": index });
    let mut events = vec![
        with(&of_item, "output_item.added", json!({ "item": item(json!([])) })),
        with(&at, "reasoning_summary_part.added", json!({ "part": part("") })),
    ];
    let delta = |text: String| with(&at, "reasoning_summary_text.delta", json!({ "delta": text }));
    events.extend(pieces(text, style.size).into_iter().map(delta));
    events.push(with(&at, "reasoning_summary_text.done", json!({ "text": text })));
    events.push(with(&at, "reasoning_summary_part.done", json!({ "part": part(text) })));
    let done = item(json!([part(text)]));
    events.push(with(&of_item, "output_item.done", json!({ "item": done })));
    output.push(done);
    events
}

fn item(call: &Call, style: &Style, output: &mut Vec<Value>) -> Vec<Value> {
    let index = output.len();
    let id = format!("fc_{index}");
    let text = arguments(call, style);
    let item = |status: &str, arguments: &str| json!({ "id": id, "type": "function_call", "status": status, "call_id": call.id, "name": call.name, "arguments": arguments });
    let at = json!({ "output_index": index, "item_id": id });
    let of_item = json!({ "output_index": index });
    let mut events = vec![with(&of_item, "output_item.added", json!({ "item": item("in_progress", "") }))];
    if style.arguments != Form::Whole {
        let delta = |text: String| with(&at, "function_call_arguments.delta", json!({ "delta": text }));
        events.extend(pieces(&text, style.size).into_iter().map(delta));
    }
    events.push(with(&at, "function_call_arguments.done", json!({ "arguments": text })));
    let done = item("completed", &text);
    events.push(with(&of_item, "output_item.done", json!({ "item": done })));
    output.push(done);
    events
}

/// Arguments as text. Without any arguments, it may be empty.
fn arguments(call: &Call, style: &Style) -> String {
    if call.arguments.is_empty() && style.later == Later::Empty {
        return String::new();
    }
    Value::Object(call.arguments.clone()).to_string()
}

/// Message blocks: one after the other, with the input in pieces, all at once, or at the start.
pub(super) fn messages(answer: &Answer) -> Vec<Event> {
    let style = &answer.style;
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage });
    let mut events = vec![("message_start", json!({ "type": "message_start", "message": message }))];
    let mut index = 0;
    for step in &answer.steps {
        match step {
            Step::Text(text) => {
                let delta = |text: String| json!({ "type": "text_delta", "text": text });
                let deltas = pieces(text, style.size).into_iter().map(delta).collect();
                block(&json!({ "type": "text", "text": "" }), deltas, &mut index, &mut events);
            }
            Step::Thought(text) => {
                let delta = |text: String| json!({ "type": "thinking_delta", "thinking": text });
                let mut deltas: Vec<Value> = pieces(text, style.size).into_iter().map(delta).collect();
                deltas.push(json!({ "type": "signature_delta", "signature": "AA==" }));
                block(
                    &json!({ "type": "thinking", "thinking": "", "signature": "" }),
                    deltas,
                    &mut index,
                    &mut events,
                );
            }
            Step::Calls(calls, _) => {
                for call in calls {
                    tool_use(call, style, &mut index, &mut events);
                }
            }
        }
        if style.nulls {
            events.push(("ping", json!({ "type": "ping" })));
        }
    }
    let end = if answer.is_cut() {
        "max_tokens"
    } else if answer.has_calls() != style.late_text {
        "tool_use"
    } else {
        "end_turn"
    };
    let delta = json!({ "stop_reason": end, "stop_sequence": null });
    events.push((
        "message_delta",
        json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 2 } }),
    ));
    events.push(("message_stop", json!({ "type": "message_stop" })));
    events.into_iter().map(|(name, event)| (Some(name), event.to_string())).collect()
}

type Named = (&'static str, Value);

fn block(block: &Value, deltas: Vec<Value>, index: &mut u64, events: &mut Vec<Named>) {
    events.push((
        "content_block_start",
        json!({ "type": "content_block_start", "index": index, "content_block": block }),
    ));
    for delta in deltas {
        events.push((
            "content_block_delta",
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
        ));
    }
    events.push(("content_block_stop", json!({ "type": "content_block_stop", "index": index })));
    *index += 1;
}

fn tool_use(call: &Call, style: &Style, index: &mut u64, events: &mut Vec<Named>) {
    let text = arguments(call, style);
    let delta = |text: String| json!({ "type": "input_json_delta", "partial_json": text });
    let (input, deltas) = match style.arguments {
        Form::Object => (Value::Object(call.arguments.clone()), Vec::new()),
        Form::Whole => (json!({}), vec![delta(text)]),
        Form::Pieces => (json!({}), pieces(&text, style.size).into_iter().map(delta).collect()),
    };
    block(
        &json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }),
        deltas,
        index,
        events,
    );
}

/// Native parts: calls are complete, with or without an id, and may omit empty arguments.
pub(super) fn native(answer: &Answer) -> Vec<Event> {
    let style = &answer.style;
    let mut parts: Vec<Value> = Vec::new();
    for step in &answer.steps {
        match step {
            Step::Text(text) => {
                parts.extend(pieces(text, style.size).into_iter().map(|text| json!({ "text": text })));
            }
            Step::Thought(text) => {
                let part = |text: String| json!({ "text": text, "thought": true });
                parts.extend(pieces(text, style.size).into_iter().map(part));
            }
            Step::Calls(calls, _) => parts.extend(calls.iter().map(|call| function_call(call, style))),
        }
    }
    let event = |parts: &[Value], end: Option<&str>| {
        let mut candidate = json!({ "index": 0, "content": { "role": "model", "parts": parts } });
        if let Some(end) = end {
            candidate["finishReason"] = end.into();
        }
        json!({ "candidates": [candidate], "modelVersion": "m", "responseId": "r" })
    };
    let end = if answer.is_cut() { "MAX_TOKENS" } else { "STOP" };
    let mut events: Vec<Value> = parts.chunks(style.size).map(|parts| event(parts, None)).collect();
    let mut last = event(&[], Some(end));
    if style.nulls {
        last["candidates"][0]["content"] = json!({ "role": "model" });
    }
    if style.usage {
        last["usageMetadata"] =
            json!({ "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 });
    }
    events.push(last);
    events.into_iter().map(|event| (None, event.to_string())).collect()
}

fn function_call(call: &Call, style: &Style) -> Value {
    let mut function = json!({ "name": call.name, "args": call.arguments });
    if call.arguments.is_empty() && style.later == Later::Null {
        function["args"] = Value::Null;
    }
    match style.later {
        Later::Missing | Later::Null => {}
        Later::Empty => function["id"] = "".into(),
        Later::Repeated => function["id"] = call.id.as_str().into(),
    }
    json!({ "functionCall": function })
}
