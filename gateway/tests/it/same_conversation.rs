//! One conversation, in the words of each protocol, through a running gateway to an upstream of each kind: every upstream
//! gets the same conversation, whoever asks, and every client the same answer, whoever gives it.

use gatewright_gateway::{Config, Model, Target};
use serde_json::{Map, Value, json};

use crate::callers::Protocol;
use crate::support::{Event, Server, events, send, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Seen, Step, answer, upstream};

/// A picture of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The word that ends an answer.
const STOP: &str = "END";
/// What every upstream says before it calls.
const SAID: &str = "I look again.";

/// The calls that every upstream makes, both at once.
fn calls() -> [(&'static str, Value); 2] {
    [("d1", json!({"city": "Oslo"})), ("d2", json!({"city": "Rome"}))]
}

/// The form that the answer must have.
fn schema() -> Value {
    json!({"type": "object", "properties": {"sky": {"type": "string"}}, "required": ["sky"],
        "additionalProperties": false})
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

/// The conversation as a client of the protocol writes it: instructions, a question with a picture, two calls at once and
/// their results, another question; a tool, a schema, and how tokens are drawn. `stops`: and the word that ends the
/// answer, which the responses protocol does not have.
fn request(client: Protocol, model: &str, stream: bool, stops: bool) -> (String, Value) {
    let (path, mut body) = match client {
        Protocol::Chat => ("/v1/chat/completions".to_owned(), chat()),
        Protocol::Responses => ("/v1/responses".to_owned(), responses()),
        Protocol::Messages => ("/v1/messages".to_owned(), messages()),
        Protocol::Native => return (native_path(model, stream), native(stops)),
    };
    body["model"] = model.into();
    body["stream"] = stream.into();
    match client {
        Protocol::Chat if stops => body["stop"] = json!([STOP]),
        Protocol::Messages if stops => body["stop_sequences"] = json!([STOP]),
        _ => {}
    }
    if client == Protocol::Chat && stream {
        // Clients of the others are told the usage unasked.
        body["stream_options"] = json!({"include_usage": true});
    }
    (path, body)
}

fn native_path(model: &str, stream: bool) -> String {
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("/v1beta/models/{model}:{method}")
}

fn chat() -> Value {
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "weather", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Weather here?"},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PICTURE}")}},
            ]},
            {"role": "assistant", "content": "I look.",
                "tool_calls": [call("c1", r#"{"city":"Oslo"}"#), call("c2", r#"{"city":"Rome"}"#)]},
            {"role": "tool", "tool_call_id": "c1", "content": "snow"},
            {"role": "tool", "tool_call_id": "c2", "content": "sun"},
            {"role": "assistant", "content": "Snow and sun."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "weather", "description": "Tells it.", "parameters": parameters()}}],
        "tool_choice": "auto",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema()}},
        "max_tokens": 64, "temperature": 0.5, "top_p": 0.9,
    })
}

fn responses() -> Value {
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": arguments});
    json!({
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "Weather here?"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PICTURE}")},
            ]},
            {"role": "assistant", "content": "I look."},
            call("c1", r#"{"city":"Oslo"}"#),
            call("c2", r#"{"city":"Rome"}"#),
            {"type": "function_call_output", "call_id": "c1", "output": "snow"},
            {"type": "function_call_output", "call_id": "c2", "output": "sun"},
            {"role": "assistant", "content": "Snow and sun."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [{"type": "function", "name": "weather", "description": "Tells it.", "parameters": parameters(),
            "strict": false}],
        "tool_choice": "auto",
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema()}},
        "max_output_tokens": 64, "temperature": 0.5, "top_p": 0.9, "store": false,
    })
}

fn messages() -> Value {
    let source = json!({"type": "base64", "media_type": "image/png", "data": PICTURE});
    let call = |id: &str, city: &str| json!({"type": "tool_use", "id": id, "name": "weather", "input": {"city": city}});
    json!({
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Weather here?"},
                {"type": "image", "source": source},
            ]},
            {"role": "assistant",
                "content": [{"type": "text", "text": "I look."}, call("c1", "Oslo"), call("c2", "Rome")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "snow"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "sun"},
            ]},
            {"role": "assistant", "content": "Snow and sun."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [{"name": "weather", "description": "Tells it.", "input_schema": parameters()}],
        "tool_choice": {"type": "auto"},
        "output_config": {"format": {"type": "json_schema", "schema": schema()}},
        "max_tokens": 64, "temperature": 0.5, "top_p": 0.9,
    })
}

fn native(stops: bool) -> Value {
    let call =
        |id: &str, city: &str| json!({"functionCall": {"id": id, "name": "weather", "args": {"city": city}}});
    let result = |id: &str, output: &str| json!({"functionResponse": {"id": id, "name": "weather", "response": {"output": output}}});
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "Weather here?"},
                {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
            ]},
            {"role": "model", "parts": [{"text": "I look."}, call("c1", "Oslo"), call("c2", "Rome")]},
            {"role": "user", "parts": [result("c1", "snow"), result("c2", "sun")]},
            {"role": "model", "parts": [{"text": "Snow and sun."}]},
            {"role": "user", "parts": [{"text": "Thanks. And now?"}]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "weather", "description": "Tells it.", "parametersJsonSchema": parameters()}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"maxOutputTokens": 64, "temperature": 0.5, "topP": 0.9,
            "responseMimeType": "application/json", "responseJsonSchema": schema()},
    });
    if stops {
        body["generationConfig"]["stopSequences"] = json!([STOP]);
    }
    body
}

/// The answer of an upstream: [`SAID`] and [`calls`], 3 tokens read, 2 written.
fn whole(speaks: Protocol) -> Value {
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
            let message = json!({"role": "assistant", "content": SAID, "refusal": null, "tool_calls": calls});
            let choice =
                json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls"});
            json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "theirs",
                "choices": [choice],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}})
        }
        Protocol::Responses => response("completed", items()),
        Protocol::Messages => {
            let mut content = vec![json!({"type": "text", "text": SAID})];
            content.extend(calls.iter().map(|(id, arguments)| {
                json!({"type": "tool_use", "id": id, "name": "weather", "input": arguments})
            }));
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": content,
                "stop_reason": "tool_use", "stop_sequence": null,
                "usage": {"input_tokens": 3, "output_tokens": 2}})
        }
        Protocol::Native => {
            let mut parts = vec![json!({"text": SAID})];
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

fn response(status: &str, output: Vec<Value>) -> Value {
    let mut response = json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "theirs",
        "status": status, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "metadata": {}});
    response["output"] = output.into();
    if status == "completed" {
        response["usage"] = json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
    }
    response
}

/// The items of an answer in the responses protocol.
fn items() -> Vec<Value> {
    let part = json!({"type": "output_text", "text": SAID, "annotations": [], "logprobs": []});
    let mut items =
        vec![json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [part]})];
    items.extend((1..).zip(calls()).map(|(number, (id, arguments))| {
        json!({"type": "function_call", "id": format!("fc_{number}"), "call_id": id, "name": "weather",
            "arguments": arguments.to_string(), "status": "completed"})
    }));
    items
}

/// A text in two pieces.
fn pieces(text: &str) -> [&str; 2] {
    text.split_at(text.len() / 2).into()
}

/// The same answer as the events of a stream.
fn streamed(speaks: Protocol) -> String {
    let lines = |events: Vec<Value>| -> String {
        let block = |event: Value| format!("data: {event}\n\n");
        events.into_iter().map(block).collect()
    };
    match speaks {
        Protocol::Chat => lines(chunks()) + "data: [DONE]\n\n",
        Protocol::Responses => named(responses_events()),
        Protocol::Messages => named(messages_events()),
        Protocol::Native => {
            let [first, second] = pieces(SAID);
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

fn named(events: Vec<Value>) -> String {
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
    chunks.extend(pieces(SAID).map(|text| chunk(json!({"content": text}), Value::Null)));
    for (index, (id, arguments)) in calls().into_iter().enumerate() {
        let begun = json!({"index": index, "id": id, "type": "function",
            "function": {"name": "weather", "arguments": ""}});
        chunks.push(chunk(json!({"tool_calls": [begun]}), Value::Null));
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
        vec![json!({"type": "response.created", "response": response("in_progress", Vec::new())})];
    for (index, item) in items().into_iter().enumerate() {
        let at = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "item_id": item["id"], "output_index": index});
            event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            event
        };
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        let is_message = item["type"] == "message";
        begun[if is_message { "content" } else { "arguments" }] =
            if is_message { json!([]) } else { json!("") };
        events.push(json!({"type": "response.output_item.added", "output_index": index, "item": begun}));
        if is_message {
            let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
            events.push(at("response.content_part.added", json!({"content_index": 0, "part": part("")})));
            events.extend(pieces(SAID).map(|piece| {
                at("response.output_text.delta", json!({"content_index": 0, "delta": piece, "logprobs": []}))
            }));
            let done = json!({"content_index": 0, "text": SAID, "logprobs": []});
            events.push(at("response.output_text.done", done));
            events.push(at("response.content_part.done", json!({"content_index": 0, "part": part(SAID)})));
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
    events.push(json!({"type": "response.completed", "response": response("completed", items())}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

fn messages_events() -> Vec<Value> {
    let begun = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 1}});
    let mut events = vec![json!({"type": "message_start", "message": begun})];
    let mut block = |index: usize, begun: Value, deltas: [Value; 2]| {
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        let deltas =
            deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.extend(deltas);
        events.push(json!({"type": "content_block_stop", "index": index}));
    };
    let text = pieces(SAID).map(|text| json!({"type": "text_delta", "text": text}));
    block(0, json!({"type": "text", "text": ""}), text);
    for (index, (id, arguments)) in (1..).zip(calls()) {
        let begun = json!({"type": "tool_use", "id": id, "name": "weather", "input": {}});
        let deltas = pieces(&arguments.to_string())
            .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        block(index, begun, deltas);
    }
    events.extend([
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]);
    events
}

/// What a client understands of an answer.
#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    /// Id, tool and arguments of each call.
    calls: Vec<(String, String, Value)>,
    /// Tokens read and written.
    usage: (u64, u64),
    /// It ended as answers with calls do in the client's protocol.
    is_end: bool,
}

/// What everybody is to understand.
fn expected() -> Said {
    let calls = calls().map(|(id, arguments)| (id.to_owned(), "weather".to_owned(), arguments));
    Said { text: SAID.to_owned(), calls: calls.into(), usage: (3, 2), is_end: true }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Arguments that are written as text.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

fn usage(usage: &Value, read: &str, written: &str) -> (u64, u64) {
    (usage[read].as_u64().unwrap_or_default(), usage[written].as_u64().unwrap_or_default())
}

/// A whole answer as its client reads it.
fn understood(client: Protocol, answer: &Value) -> Said {
    let mut said = Said::default();
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match client {
        Protocol::Chat => {
            let choice = &answer["choices"][0];
            said.text = text(&choice["message"]["content"]);
            for call in items(&choice["message"]["tool_calls"]) {
                let function = &call["function"];
                let arguments = parsed(&text(&function["arguments"]));
                said.calls.push((text(&call["id"]), text(&function["name"]), arguments));
            }
            said.usage = usage(&answer["usage"], "prompt_tokens", "completion_tokens");
            said.is_end = choice["finish_reason"] == "tool_calls";
        }
        Protocol::Responses => {
            for item in items(&answer["output"]) {
                if item["type"] == "message" {
                    said.text += &text(&item["content"][0]["text"]);
                } else {
                    let arguments = parsed(&text(&item["arguments"]));
                    said.calls.push((text(&item["call_id"]), text(&item["name"]), arguments));
                }
            }
            said.usage = usage(&answer["usage"], "input_tokens", "output_tokens");
            said.is_end = answer["status"] == "completed";
        }
        Protocol::Messages => {
            for block in items(&answer["content"]) {
                if block["type"] == "text" {
                    said.text += &text(&block["text"]);
                } else {
                    said.calls.push((text(&block["id"]), text(&block["name"]), block["input"].clone()));
                }
            }
            said.usage = usage(&answer["usage"], "input_tokens", "output_tokens");
            said.is_end = answer["stop_reason"] == "tool_use";
        }
        Protocol::Native => take_candidate(&mut said, answer),
    }
    said
}

/// A document of the native protocol: an answer, or a part of one.
fn take_candidate(said: &mut Said, document: &Value) {
    let candidate = &document["candidates"][0];
    for part in candidate["content"]["parts"].as_array().into_iter().flatten() {
        said.text += &text(&part["text"]);
        let call = &part["functionCall"];
        if call.is_object() {
            said.calls.push((text(&call["id"]), text(&call["name"]), call["args"].clone()));
        }
    }
    if document["usageMetadata"].is_object() {
        said.usage = usage(&document["usageMetadata"], "promptTokenCount", "candidatesTokenCount");
    }
    said.is_end |= candidate["finishReason"] == "STOP";
}

/// A stream as its client puts it together.
fn put_together(client: Protocol, events: &[Event]) -> Said {
    let documents = events.iter().filter(|event| event.data != "[DONE]").map(Event::json);
    let mut said = Said::default();
    // Arguments come as text, in pieces.
    let mut arguments: Vec<String> = Vec::new();
    for document in documents {
        match client {
            Protocol::Chat => {
                let choice = &document["choices"][0];
                said.text += &text(&choice["delta"]["content"]);
                for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
                    if call["id"].is_string() {
                        said.calls.push((text(&call["id"]), text(&call["function"]["name"]), Value::Null));
                        arguments.push(String::new());
                    }
                    let index = usize::try_from(call["index"].as_u64().expect("an index")).expect("small");
                    arguments[index] += &text(&call["function"]["arguments"]);
                }
                if document["usage"].is_object() {
                    said.usage = usage(&document["usage"], "prompt_tokens", "completion_tokens");
                }
                said.is_end |= choice["finish_reason"] == "tool_calls";
            }
            Protocol::Responses => match document["type"].as_str().expect("a type") {
                "response.output_text.delta" => said.text += &text(&document["delta"]),
                "response.output_item.done" if document["item"]["type"] == "function_call" => {
                    let item = &document["item"];
                    said.calls.push((text(&item["call_id"]), text(&item["name"]), Value::Null));
                    // The pieces have come before.
                    assert_eq!(arguments.last(), Some(&text(&item["arguments"])));
                }
                "response.function_call_arguments.delta" => {
                    if arguments.len() == said.calls.len() {
                        arguments.push(String::new());
                    }
                    *arguments.last_mut().expect("one") += &text(&document["delta"]);
                }
                "response.completed" => {
                    let last = understood(client, &document["response"]);
                    assert_eq!(last, expected(), "the last event has all of it, too");
                    (said.usage, said.is_end) = (last.usage, true);
                }
                _ => {}
            },
            Protocol::Messages => {
                let (block, delta) = (&document["content_block"], &document["delta"]);
                if block["type"] == "tool_use" {
                    said.calls.push((text(&block["id"]), text(&block["name"]), Value::Null));
                    arguments.push(String::new());
                }
                said.text += &text(&delta["text"]);
                if let Some(arguments) = arguments.last_mut() {
                    *arguments += &text(&delta["partial_json"]);
                }
                // Some upstreams tell only at the end how much they have read.
                for told in [&document["message"]["usage"], &document["usage"]] {
                    let (read, written) = usage(told, "input_tokens", "output_tokens");
                    said.usage = (said.usage.0.max(read), said.usage.1.max(written));
                }
                said.is_end |= delta["stop_reason"] == "tool_use";
            }
            Protocol::Native => take_candidate(&mut said, &document),
        }
    }
    for (call, arguments) in said.calls.iter_mut().zip(&arguments) {
        call.2 = parsed(arguments);
    }
    said
}

/// The upstreams, one of each kind, and a gateway with a model at each.
struct Bench {
    upstreams: Vec<(Protocol, Scripted)>,
    server: Server,
}

fn model_at(speaks: Protocol) -> String {
    format!("at-{}", speaks.name())
}

impl Bench {
    async fn start() -> Self {
        let mut upstreams = Vec::new();
        for speaks in Protocol::ALL {
            upstreams.push((speaks, Scripted::answering(steps).await));
        }
        let models = Protocol::ALL.map(|speaks| {
            let mut model = Model::new(model_at(speaks), "family_one", Target::new(speaks.name(), "theirs"));
            model.translate_responses = true;
            model
        });
        let listed =
            upstreams.iter().map(|(speaks, scripted)| upstream(speaks.name(), speaks.kind(), &scripted.url));
        let config = Config { upstreams: listed.collect(), models: models.into(), ..Config::default() };
        Self { upstreams, server: start_with(config).await }
    }

    /// Asks an upstream, and gives the body that it got, and what the gateway says it dropped. The client has to understand
    /// the answer.
    async fn ask(&self, client: Protocol, speaks: Protocol, path: &str, body: &Value) -> (Value, String) {
        let here = format!("{client:?} at {speaks:?}, {path}");
        let (_, scripted) = self.upstreams.iter().find(|(one, _)| *one == speaks).expect("each kind");
        let count = scripted.count();
        let response = send(self.server.post(path, body)).await;
        let (status, headers) = (response.status(), response.headers().clone());
        let told = response.text().await.expect("a body");
        assert_eq!(status, 200, "{here}: {told}");
        let seen = scripted.seen();
        assert_eq!(seen.len(), count + 1, "{here}");
        let dropped =
            headers.get("x-gatewright-dropped").map(|value| value.to_str().expect("ASCII").to_owned());
        let said = if headers["content-type"].to_str().expect("ASCII").starts_with("text/event-stream") {
            put_together(client, &events(&told))
        } else {
            understood(client, &serde_json::from_str(&told).expect("JSON"))
        };
        assert_eq!(said, expected(), "{here}: {told}");
        (normal(seen[count].json()), dropped.unwrap_or_default())
    }

    /// What the upstreams get of clients that speak another protocol than they: by kind, and by who asked.
    async fn translated(&self, stream: bool, stops: bool) -> Vec<(Protocol, Protocol, Value, String)> {
        let mut got = Vec::new();
        for (speaks, client) in pairs() {
            let (path, body) = request(client, &model_at(speaks), stream, stops);
            let (sent, dropped) = self.ask(client, speaks, &path, &body).await;
            if speaks.spoken_for(client) == client {
                // Nothing is changed but the model.
                assert_eq!(sent, normal(body), "{client:?} at {speaks:?}");
                assert_eq!(dropped, "", "{client:?} at {speaks:?}");
            } else {
                got.push((speaks, client, sent, dropped));
            }
        }
        got
    }
}

fn pairs() -> impl Iterator<Item = (Protocol, Protocol)> {
    Protocol::ALL.into_iter().flat_map(|speaks| Protocol::ALL.map(|client| (speaks, client)))
}

/// An upstream answers in the protocol that it is asked in.
fn steps(seen: &Seen) -> Vec<Step> {
    let path = seen.line.split(' ').nth(1).expect("a path");
    let speaks = match path {
        _ if path.contains("/chat/completions") => Protocol::Chat,
        _ if path.contains("/responses") => Protocol::Responses,
        _ if path.contains("/messages") => Protocol::Messages,
        _ if path.contains("enerateContent") => Protocol::Native,
        _ => panic!("{path}"),
    };
    if path.contains("streamGenerateContent") || seen.json()["stream"] == true {
        vec![Step::Write(format!("{STREAM_HEAD}{}", streamed(speaks)).into()), Step::Close]
    } else {
        vec![Step::Write(answer(200, "application/json", &whole(speaks).to_string()))]
    }
}

/// A body without the model's name, and without what says the same as silence: that it is no stream, and that a tool is
/// not strict.
fn normal(mut body: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.retain(|name, value| !(name == "strict" && *value == false));
                members.values_mut().for_each(walk);
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut body);
    let members: &mut Map<String, Value> = body.as_object_mut().expect("an object");
    members.remove("model");
    members.retain(|name, value| !(name == "stream" && *value == false));
    body
}

/// Whoever asks, an upstream gets the same words, and every client understands the same answer, whole and streamed. What
/// is written for an upstream means what its own clients write: sent to the gateway as theirs, it reaches every other
/// upstream in the words that this one gets of everybody else.
#[tokio::test]
async fn the_same_conversation_reaches_each_upstream_in_the_same_words_and_its_answer_each_client() {
    let bench = Bench::start().await;
    for stream in [false, true] {
        let got = bench.translated(stream, false).await;
        for (speaks, client, sent, dropped) in &got {
            assert_eq!(dropped, "", "{client:?} at {speaks:?}");
            let (_, first, words, _) = got.iter().find(|(one, ..)| one == speaks).expect("one");
            assert_eq!(sent, words, "{client:?} and {first:?} at {speaks:?}, stream: {stream}");
        }
        for (from, _, words, _) in &got {
            for (speaks, _, expected, _) in
                got.iter().filter(|(speaks, client, ..)| speaks != from && client == from)
            {
                let mut body = words.clone();
                let path = if *from == Protocol::Native {
                    native_path(&model_at(*speaks), stream)
                } else {
                    body["model"] = model_at(*speaks).into();
                    request(*from, "", stream, false).0
                };
                let (sent, dropped) = bench.ask(*from, *speaks, &path, &body).await;
                assert_eq!(&sent, expected, "written for {from:?}, at {speaks:?}, stream: {stream}");
                assert_eq!(dropped, "", "written for {from:?}, at {speaks:?}");
            }
        }
    }
}

/// The word that ends an answer reaches every upstream whose protocol has one, and its loss is told elsewhere.
#[tokio::test]
async fn what_one_protocol_has_no_word_for_reaches_all_others_and_is_told_there() {
    let bench = Bench::start().await;
    let without = bench.translated(false, false).await;
    let got = bench.translated(false, true).await;
    for ((speaks, client, sent, dropped), (.., silent, _)) in got.iter().zip(&without) {
        let here = format!("{client:?} at {speaks:?}");
        if *client == Protocol::Responses {
            assert_eq!((sent, dropped.as_str()), (silent, ""), "{here}");
        } else if *speaks == Protocol::Responses {
            assert_eq!(sent, silent, "{here}");
            assert!(dropped.to_lowercase().contains("stop"), "{here}: {dropped}");
        } else {
            assert_ne!(sent, silent, "{here}");
            assert_eq!(dropped, "", "{here}");
            let alike = got.iter().filter(|(one, by, ..)| one == speaks && *by != Protocol::Responses);
            for (_, by, other, _) in alike {
                assert_eq!(sent, other, "{here}, and of {by:?}");
            }
        }
    }
}
