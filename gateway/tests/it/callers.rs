//! The four protocols, as clients send them and as upstreams answer them, for tests of all pairs.

use gatewright_gateway::Kind;
use serde_json::{Value, json};

use crate::support::{Event, events};
use crate::upstreams::{Seen, chunks, completion};

/// The text of every upstream's answer.
pub(crate) const TEXT: &str = "hello";

/// A protocol on either side of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Chat,
    Responses,
    Messages,
    Native,
}

/// How a stream ended for its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Success,
    Failure,
    /// Neither: the client has to treat the end of the connection as the end of the response.
    Nothing,
}

impl Protocol {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Native];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Native => "native",
        }
    }

    /// The kind of upstream with this protocol.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Chat => Kind::Chat,
            Self::Responses => Kind::Responses,
            Self::Messages => Kind::Messages,
            Self::Native => Kind::Native,
        }
    }

    /// The protocol in which an upstream of this kind is called on behalf of a client: upstreams of kind responses support chat, too.
    pub(crate) fn spoken_for(self, client: Self) -> Self {
        if (self, client) == (Self::Responses, Self::Chat) { client } else { self }
    }

    /// The protocol of a request.
    pub(crate) fn of(seen: &Seen) -> Self {
        match seen.path() {
            path if path.contains("/chat/completions") => Self::Chat,
            path if path.contains("/responses") => Self::Responses,
            path if path.contains("/messages") => Self::Messages,
            path if path.contains("enerateContent") => Self::Native,
            path => panic!("{path}"),
        }
    }

    /// Path and body of a request for a model.
    pub(crate) fn request(self, model: &str, stream: bool) -> (String, Value) {
        let messages = json!([{"role": "user", "content": "hi"}]);
        match self {
            Self::Chat => {
                let body = json!({"model": model, "messages": messages, "stream": stream});
                ("/v1/chat/completions".to_owned(), body)
            }
            Self::Responses => {
                let body = json!({"model": model, "input": "hi", "stream": stream, "store": false});
                ("/v1/responses".to_owned(), body)
            }
            Self::Messages => {
                let body = json!({"model": model, "max_tokens": 99, "messages": messages, "stream": stream});
                ("/v1/messages".to_owned(), body)
            }
            Self::Native => {
                let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
                let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
                (format!("/v1beta/models/{model}:{method}"), body)
            }
        }
    }

    /// A unary response of an upstream: [`TEXT`], 3 input tokens, 2 output tokens.
    pub(crate) fn answer(self) -> Value {
        match self {
            Self::Chat => completion(TEXT),
            Self::Responses => response("completed", json!([message(TEXT)])),
            Self::Messages => json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": "theirs",
                "content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn", "stop_sequence": null,
                "usage": {"input_tokens": 3, "output_tokens": 2},
            }),
            Self::Native => native(TEXT, true),
        }
    }

    /// The text of a unary response.
    pub(crate) fn text(self, answer: &Value) -> Option<&str> {
        let text = match self {
            Self::Chat => &answer["choices"][0]["message"]["content"],
            Self::Responses => &answer["output"][0]["content"][0]["text"],
            Self::Messages => &answer["content"][0]["text"],
            Self::Native => &answer["candidates"][0]["content"]["parts"][0]["text"],
        };
        text.as_str()
    }

    /// The same response as the events of a stream.
    pub(crate) fn events(self) -> String {
        match self {
            Self::Chat => chunks(&["hel", "lo"]),
            Self::Responses => named(responses_events()),
            Self::Messages => named(messages_events()),
            Self::Native => {
                format!("data: {}\n\ndata: {}\n\n", native("hel", false), native("lo", true))
            }
        }
    }

    /// The position in [`events`](Self::events) after which the response is complete: the end of the terminal line.
    pub(crate) fn whole_from(self) -> usize {
        let events = self.events();
        let sign = match self {
            Self::Chat => "\"finish_reason\":\"stop\"",
            Self::Responses => "event: response.completed",
            Self::Messages => "event: message_stop",
            Self::Native => "\"finishReason\":\"STOP\"",
        };
        let started = events.find(sign).unwrap_or_else(|| panic!("{sign} in {events}"));
        started + events[started..].find("\n\n").expect("the end of the event")
    }

    /// How a stream ended, judged by its last event.
    pub(crate) fn end(self, text: &str) -> End {
        let got = events(text);
        let Some(last) = got.last() else { return End::Nothing };
        let name = last.name.as_deref();
        let (success, failure) = match self {
            Self::Chat if last.data == "[DONE]" => (true, false),
            Self::Chat => (false, last.json()["error"]["code"].is_string()),
            Self::Responses => (name == Some("response.completed"), name == Some("response.failed")),
            Self::Messages => (name == Some("message_stop"), name == Some("error")),
            Self::Native => {
                let last = last.json();
                (last["candidates"][0]["finishReason"].is_string(), last["error"]["status"].is_string())
            }
        };
        match (success, failure) {
            (true, false) => End::Success,
            (false, true) => End::Failure,
            _ => End::Nothing,
        }
    }

    /// Whether an error has the protocol's form.
    pub(crate) fn is_error(self, body: &Value) -> bool {
        let error = &body["error"];
        let own = match self {
            Self::Chat | Self::Responses => error["type"].is_string() && error["code"].is_string(),
            Self::Messages => body["type"] == "error" && error["type"].is_string(),
            Self::Native => error["code"].is_u64() && error["status"].is_string(),
        };
        own && error["message"].as_str().is_some_and(|message| !message.is_empty())
    }
}

fn message(text: &str) -> Value {
    let part = json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []});
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]})
}

pub(crate) fn response(status: &str, output: Value) -> Value {
    let mut response = json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "theirs", "status": status,
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "metadata": {},
    });
    response["output"] = output;
    if status == "completed" {
        response["usage"] = json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}});
    }
    response
}

fn responses_events() -> Vec<Value> {
    let started = response("in_progress", json!([]));
    let item = json!({"type": "message", "id": "msg_1", "status": "in_progress", "role": "assistant",
        "content": []});
    let part = |text: &str| json!({"type": "output_text", "text": text, "annotations": []});
    let at = |kind: &str, more: Value| {
        let mut event = json!({"type": kind, "item_id": "msg_1", "output_index": 0, "content_index": 0});
        let object = event.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        event
    };
    let events = vec![
        json!({"type": "response.created", "response": started}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        at("response.content_part.added", json!({"part": part("")})),
        at("response.output_text.delta", json!({"delta": "hel", "logprobs": []})),
        at("response.output_text.delta", json!({"delta": "lo", "logprobs": []})),
        at("response.output_text.done", json!({"text": TEXT, "logprobs": []})),
        at("response.content_part.done", json!({"part": part(TEXT)})),
        json!({"type": "response.output_item.done", "output_index": 0, "item": message(TEXT)}),
        json!({"type": "response.completed", "response": response("completed", json!([message(TEXT)]))}),
    ];
    numbered(events)
}

/// Events of the responses protocol, with sequence numbers.
pub(crate) fn numbered(mut events: Vec<Value>) -> Vec<Value> {
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = number.into();
    }
    events
}

fn messages_events() -> Vec<Value> {
    let started = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 3, "output_tokens": 1}});
    let delta = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    vec![
        json!({"type": "message_start", "message": started}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        delta("hel"),
        delta("lo"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 2}}),
        json!({"type": "message_stop"}),
    ]
}

fn native(text: &str, last: bool) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": [{"text": text}]}, "index": 0});
    if !last {
        return json!({"candidates": [candidate], "modelVersion": "theirs"});
    }
    candidate["finishReason"] = "STOP".into();
    let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
    json!({"candidates": [candidate], "modelVersion": "theirs", "usageMetadata": usage})
}

fn named(events: Vec<Value>) -> String {
    let block =
        |event: Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
    events.into_iter().map(block).collect()
}

/// The text of a stream, assembled as a client would.
pub(crate) fn text_of(protocol: Protocol, events: &[Event]) -> String {
    let piece = |event: &Event| {
        let data: Value = serde_json::from_str(&event.data).ok()?;
        let piece = match protocol {
            Protocol::Chat => &data["choices"][0]["delta"]["content"],
            Protocol::Responses if data["type"] == "response.output_text.delta" => &data["delta"],
            Protocol::Responses => &Value::Null,
            Protocol::Messages => &data["delta"]["text"],
            Protocol::Native => &data["candidates"][0]["content"]["parts"][0]["text"],
        };
        piece.as_str().map(str::to_owned)
    };
    events.iter().filter_map(piece).collect()
}
