//! Whole answers as stream events.

use serde_json::{Map, Value, json};

use crate::conversation::Protocol;
use crate::json::list;

/// The answer without what has no text to attach to: log probabilities, and citations of a part. Details of thoughts get
/// the indices that providers give them in streams.
pub(super) fn tidy(protocol: Protocol, mut document: Value) -> Value {
    match protocol {
        Protocol::Responses => {
            for item in document["output"].as_array_mut().into_iter().flatten() {
                let content = item.get_mut("content").and_then(Value::as_array_mut);
                for part in content.into_iter().flatten().filter(|part| part["text"] == "") {
                    (part["logprobs"], part["annotations"]) = (json!([]), json!([]));
                }
            }
        }
        Protocol::Native => {
            for candidate in
                document.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten()
            {
                if let (None, Value::Object(members)) = (first_text(candidate), candidate) {
                    members.shift_remove("logprobsResult");
                }
            }
        }
        Protocol::Chat => {
            for choice in document["choices"].as_array_mut().into_iter().flatten() {
                let details = choice.pointer_mut("/message/reasoning_details").and_then(Value::as_array_mut);
                for (place, detail) in details.into_iter().flatten().enumerate() {
                    // It tells pieces apart.
                    detail["index"] = place.into();
                }
            }
        }
        Protocol::Messages | Protocol::Converse | Protocol::External(_) => {}
    }
    document
}

/// The events of an answer. `size`: length of a text piece, in characters.
pub(super) fn events(protocol: Protocol, document: &Value, size: usize) -> Value {
    match protocol {
        Protocol::Chat => chat(document, size),
        Protocol::Responses => responses(document, size),
        Protocol::Messages => messages(document, size),
        Protocol::Native => native(document, size),
        Protocol::Converse => converse(document, size),
        Protocol::External(_) => unreachable!("these are the protocols of this crate"),
    }
    .into()
}

fn pieces(text: &Value, size: usize) -> Vec<String> {
    let text: Vec<char> = text.as_str().unwrap_or_default().chars().collect();
    text.chunks(size).map(String::from_iter).collect()
}

/// The fields of an object except these.
fn without(object: &Value, names: &[&str]) -> Map<String, Value> {
    let members = object.as_object().into_iter().flatten();
    members
        .filter(|(name, _)| !names.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn chat(document: &Value, size: usize) -> Vec<Value> {
    let mut events = Vec::new();
    let choices: Vec<&Value> = list(&document["choices"]).collect();
    let mut chunk = |choice: Value| {
        let mut chunk = json!({ "id": document["id"], "object": "chat.completion.chunk", "created": document["created"],
            "model": document["model"], "choices": [choice] });
        if events.is_empty() {
            let first = without(document, &["id", "object", "created", "model", "choices", "usage"]);
            first.into_iter().for_each(|(name, value)| chunk[name] = value);
        }
        events.push(json!({ "data": chunk }));
    };
    for choice in choices {
        let mut piece = |delta: Value| chunk(json!({ "index": choice["index"], "delta": delta }));
        let message = &choice["message"];
        let known = [
            "role",
            "content",
            "refusal",
            "reasoning_content",
            "reasoning",
            "reasoning_details",
            "tool_calls",
            "annotations",
        ];
        let mut first = without(message, &known);
        first.insert("role".to_owned(), json!("assistant"));
        piece(first.into());
        thoughts(message, size).into_iter().for_each(&mut piece);
        let mut logprobs = Some(&choice["logprobs"]).filter(|logprobs| !logprobs.is_null());
        let mut texts = pieces(&message["content"], size);
        if texts.is_empty() && logprobs.is_some() {
            texts.push(String::new());
        }
        for text in texts {
            let mut choice = json!({ "index": choice["index"], "delta": { "content": text } });
            if let Some(logprobs) = logprobs.take() {
                choice["logprobs"] = logprobs.clone();
            }
            chunk(choice);
        }
        let mut piece = |delta: Value| chunk(json!({ "index": choice["index"], "delta": delta }));
        for text in pieces(&message["refusal"], size) {
            piece(json!({ "refusal": text }));
        }
        if !message["annotations"].is_null() {
            piece(json!({ "annotations": message["annotations"] }));
        }
        for (index, call) in list(&message["tool_calls"]).enumerate() {
            let (kind, input) =
                if call["type"] == "custom" { ("custom", "input") } else { ("function", "arguments") };
            let mut first = without(call, &[]);
            first.insert("index".to_owned(), index.into());
            first.insert(kind.to_owned(), json!({ "name": call[kind]["name"], input: "" }));
            let proofs: Vec<&Value> =
                list(&message["reasoning_details"]).filter(|detail| detail["id"] == call["id"]).collect();
            let mut delta = json!({ "tool_calls": [first] });
            if !proofs.is_empty() {
                delta["reasoning_details"] = json!(proofs);
            }
            piece(delta);
            for text in pieces(&call[kind][input], size) {
                piece(json!({ "tool_calls": [{ "index": index, kind: { input: text } }] }));
            }
        }
        let mut last = without(choice, &["message", "logprobs"]);
        last.insert("delta".to_owned(), json!({}));
        chunk(last.into());
    }
    if !document["usage"].is_null() {
        events.push(json!({ "data": { "id": document["id"], "choices": [], "usage": document["usage"] } }));
    }
    events.push(json!({ "data": "[DONE]" }));
    events
}

/// A message's thoughts in pieces: what is shown, or its details without the proofs of calls.
fn thoughts(message: &Value, size: usize) -> Vec<Value> {
    let mut deltas: Vec<Value> = Vec::new();
    let is_of_call = |detail: &&Value| detail["id"].as_str().is_some_and(|id| id.starts_with("call_"));
    let details = list(&message["reasoning_details"]).filter(|detail| !is_of_call(detail));
    let mut shown = without(message, &[]);
    shown.retain(|name, _| name.starts_with("reasoning") && name != "reasoning_details");
    if message["reasoning_details"].is_null() {
        // If a thought appears in two fields, the usual one counts: the other repeats it.
        let (name, beside) = match &message["reasoning_content"] {
            Value::Null => ("reasoning", Map::new()),
            _ => ("reasoning_content", without(&shown.clone().into(), &["reasoning_content"])),
        };
        let mut beside = Some(beside);
        for text in pieces(&message[name], size) {
            let mut delta = beside.take().unwrap_or_default();
            delta.insert(name.to_owned(), text.into());
            deltas.push(delta.into());
        }
    }
    for detail in details {
        let name = ["text", "summary"].into_iter().find(|name| detail[name].is_string());
        let texts = name.map(|name| pieces(&detail[name], size)).unwrap_or_default();
        for text in texts {
            let mut detail = without(detail, &["signature", "text", "summary"]);
            detail.insert(name.unwrap_or_default().to_owned(), text.into());
            let mut delta = std::mem::take(&mut shown);
            delta.insert("reasoning_details".to_owned(), json!([detail]));
            deltas.push(delta.into());
        }
        let proof = without(detail, &["text", "summary"]);
        if ["signature", "data"].into_iter().any(|name| proof.get(name).is_some_and(Value::is_string)) {
            deltas.push(json!({ "reasoning_details": [proof] }));
        }
    }
    deltas
}

fn named(data: &Value) -> Value {
    json!({ "event": data["type"], "data": data })
}

fn messages(document: &Value, size: usize) -> Vec<Value> {
    let mut started = document.clone();
    for (name, value) in
        [("content", json!([])), ("stop_reason", json!(null)), ("stop_sequence", json!(null))]
    {
        started[name] = value;
    }
    started["usage"]["output_tokens"] = 1.into();
    let mut events = vec![json!({ "type": "message_start", "message": started })];
    for (index, block) in list(&document["content"]).enumerate() {
        let mut started = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str() {
            Some("text") => {
                started["text"] = "".into();
                if let Value::Object(members) = &mut started {
                    members.shift_remove("citations");
                }
                let texts = pieces(&block["text"], size).into_iter();
                deltas.extend(texts.map(|text| json!({ "type": "text_delta", "text": text })));
                deltas.extend(
                    list(&block["citations"]).map(|it| json!({ "type": "citations_delta", "citation": it })),
                );
            }
            Some("thinking") => {
                (started["thinking"], started["signature"]) = ("".into(), "".into());
                let texts = pieces(&block["thinking"], size).into_iter();
                deltas.extend(texts.map(|text| json!({ "type": "thinking_delta", "thinking": text })));
                let proofs = pieces(&block["signature"], size).into_iter();
                deltas.extend(proofs.map(|text| json!({ "type": "signature_delta", "signature": text })));
            }
            Some("tool_use" | "server_tool_use") => {
                started["input"] = json!({});
                let input = pieces(&block["input"].to_string().into(), size).into_iter();
                deltas.extend(input.map(|text| json!({ "type": "input_json_delta", "partial_json": text })));
            }
            _ => {}
        }
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": started }));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
        );
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({ "stop_reason": document["stop_reason"], "stop_sequence": document["stop_sequence"] });
    let usage = json!({ "output_tokens": document["usage"]["output_tokens"] });
    events.push(json!({ "type": "message_delta", "delta": delta, "usage": usage }));
    events.push(json!({ "type": "message_stop" }));
    events.iter().map(named).collect()
}

fn converse(document: &Value, size: usize) -> Vec<Value> {
    let event = |name: &str, data: Value| json!({ "event": name, "data": data });
    let message = &document["output"]["message"];
    let mut events = vec![event("messageStart", without(message, &["content"]).into())];
    for (index, block) in list(&message["content"]).enumerate() {
        let (start, deltas) = converse_block(block, size);
        if !start.is_null() {
            events.push(event("contentBlockStart", json!({ "start": start, "contentBlockIndex": index })));
        }
        events.extend(deltas.into_iter().map(|delta| {
            event("contentBlockDelta", json!({ "delta": delta, "contentBlockIndex": index, "p": "abc" }))
        }));
        events.push(event("contentBlockStop", json!({ "contentBlockIndex": index })));
    }
    let (last, account) = (["stopReason", "additionalModelResponseFields"], ["output", "stopReason"]);
    let mut stop = document.clone();
    if let Value::Object(members) = &mut stop {
        members.retain(|name, _| last.contains(&name.as_str()));
    }
    events.push(event("messageStop", stop));
    let mut metadata = without(document, &account);
    metadata.shift_remove("additionalModelResponseFields");
    events.push(event("metadata", metadata.into()));
    events
}

/// The start of a block, and its deltas.
fn converse_block(block: &Value, size: usize) -> (Value, Vec<Value>) {
    let mut deltas: Vec<Value> = Vec::new();
    if block["text"].is_string() {
        deltas.extend(pieces(&block["text"], size).into_iter().map(|text| json!({ "text": text })));
        deltas.push(without(block, &["text"]).into());
        return (Value::Null, deltas);
    }
    let call = &block["toolUse"];
    if call["input"].is_object() {
        let input = pieces(&call["input"].to_string().into(), size).into_iter();
        deltas.extend(input.map(|text| json!({ "toolUse": { "input": text } })));
        return (json!({ "toolUse": without(call, &["input"]) }), deltas);
    }
    let (shown, hidden) =
        (&block["reasoningContent"]["reasoningText"], &block["reasoningContent"]["redactedContent"]);
    if shown.is_object() {
        let texts = pieces(&shown["text"], size).into_iter();
        deltas.extend(texts.map(|text| json!({ "reasoningContent": { "text": text } })));
        let proofs = pieces(&shown["signature"], size).into_iter();
        deltas.extend(proofs.map(|proof| json!({ "reasoningContent": { "signature": proof } })));
        deltas.push(json!({ "reasoningContent": without(shown, &["text", "signature"]) }));
        if deltas.len() == 1 {
            deltas.insert(0, json!({ "reasoningContent": { "text": "" } }));
        }
        return (Value::Null, deltas);
    }
    if hidden.is_string() {
        return (Value::Null, vec![json!({ "reasoningContent": { "redactedContent": hidden } })]);
    }
    let cited = &block["citationsContent"];
    if cited.is_object() {
        let texts = list(&cited["content"]).flat_map(|piece| pieces(&piece["text"], size));
        deltas.extend(texts.map(|text| json!({ "text": text })));
        deltas.extend(list(&cited["citations"]).map(|citation| json!({ "citation": citation })));
        return (Value::Null, deltas);
    }
    (block.clone(), Vec::new())
}

fn responses(document: &Value, size: usize) -> Vec<Value> {
    let mut started = document.clone();
    let open = [("status", json!("in_progress")), ("output", json!([])), ("usage", json!(null))];
    open.into_iter()
        .chain([("incomplete_details", json!(null))])
        .for_each(|(name, value)| started[name] = value);
    let mut events = vec![json!({ "type": "response.created", "response": started })];
    // Some providers send whole items only, and some the whole response only.
    let items = list(&document["output"]).enumerate().filter(|_| size != 14);
    for (index, item) in items {
        if size != 15 {
            item_pieces(index, item, size, &mut events);
        }
        events.push(json!({ "type": "response.output_item.done", "output_index": index, "item": item }));
    }
    let last = if document["status"] == "completed" { "response.completed" } else { "response.incomplete" };
    events.push(json!({ "type": last, "response": document }));
    events.iter().map(named).collect()
}

fn item_pieces(index: usize, item: &Value, size: usize, events: &mut Vec<Value>) {
    let mut started = item.clone();
    for (name, value) in
        [("content", json!([])), ("summary", json!([])), ("arguments", json!("")), ("input", json!(""))]
    {
        if started.get(name).is_some() {
            started[name] = value;
        }
    }
    events.push(json!({ "type": "response.output_item.added", "output_index": index, "item": started }));
    let event = |kind: &str, members: Value| {
        let mut event = json!({ "type": kind, "item_id": item["id"], "output_index": index });
        without(&members, &[]).into_iter().for_each(|(name, value)| event[name] = value);
        event
    };
    match item["type"].as_str() {
        Some("message") => {
            for (content, part) in list(&item["content"]).enumerate() {
                let mut logprobs = Some(part["logprobs"].clone());
                for text in pieces(&part["text"], size) {
                    let logprobs = logprobs.take().unwrap_or_else(|| json!([]));
                    let piece = json!({ "content_index": content, "delta": text, "logprobs": logprobs });
                    events.push(event("response.output_text.delta", piece));
                }
                for (number, annotation) in list(&part["annotations"]).enumerate() {
                    let piece = json!({ "content_index": content, "annotation_index": number, "annotation": annotation });
                    events.push(event("response.output_text.annotation.added", piece));
                }
                for text in pieces(&part["refusal"], size) {
                    let piece = json!({ "content_index": content, "delta": text });
                    events.push(event("response.refusal.delta", piece));
                }
            }
        }
        Some("reasoning") => {
            for (name, kind, number) in [
                ("summary", "response.reasoning_summary_text.delta", "summary_index"),
                ("content", "response.reasoning_text.delta", "content_index"),
            ] {
                for (part, text) in list(&item[name]).enumerate() {
                    for text in pieces(&text["text"], size) {
                        events.push(event(kind, json!({ number: part, "delta": text })));
                    }
                }
            }
        }
        Some("function_call") => {
            for text in pieces(&item["arguments"], size) {
                events.push(event("response.function_call_arguments.delta", json!({ "delta": text })));
            }
        }
        Some("custom_tool_call") => {
            for text in pieces(&item["input"], size) {
                events.push(event("response.custom_tool_call_input.delta", json!({ "delta": text })));
            }
        }
        _ => {}
    }
}

/// The first part of a candidate that is a text.
fn first_text(candidate: &Value) -> Option<usize> {
    list(&candidate["content"]["parts"]).position(|part| {
        part["text"].as_str().is_some_and(|text| !text.is_empty()) && part["thought"] != true
    })
}

fn native(document: &Value, size: usize) -> Vec<Value> {
    let mut events = Vec::new();
    let of_all = without(document, &["candidates", "usageMetadata"]);
    let document_of = |candidates: Vec<Value>| {
        let mut event = of_all.clone();
        if !candidates.is_empty() {
            event.insert("candidates".to_owned(), candidates.into());
        }
        event
    };
    let mut last = Vec::new();
    for candidate in list(&document["candidates"]) {
        let mut first = first_text(candidate);
        for (place, part) in list(&candidate["content"]["parts"]).enumerate() {
            let texts = if part["text"].is_string() { pieces(&part["text"], size) } else { Vec::new() };
            let count = texts.len().max(1);
            for number in 0..count {
                let mut piece = part.clone();
                if let Some(text) = texts.get(number) {
                    piece["text"] = text.as_str().into();
                }
                // The proof comes with the last piece.
                if let (true, Value::Object(piece)) = (number + 1 < count, &mut piece) {
                    piece.shift_remove("thoughtSignature");
                }
                let content = json!({ "role": "model", "parts": [piece] });
                let mut of_piece = json!({ "index": candidate["index"], "content": content });
                if first == Some(place) {
                    first = None;
                    if !candidate["logprobsResult"].is_null() {
                        of_piece["logprobsResult"] = candidate["logprobsResult"].clone();
                    }
                }
                events.push(json!({ "data": document_of(vec![of_piece]) }));
            }
        }
        last.push(Value::from(without(candidate, &["content", "logprobsResult"])));
    }
    let mut end = document_of(last);
    if !document["usageMetadata"].is_null() {
        end.insert("usageMetadata".to_owned(), document["usageMetadata"].clone());
    }
    events.push(json!({ "data": end }));
    events
}
