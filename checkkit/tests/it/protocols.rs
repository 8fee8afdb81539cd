//! The additional checks: against the gateway, and against a double that speaks the protocols by itself and breaks one rule at
//! a time. Every fault must be found, and only by the checks that it concerns.

use std::sync::LazyLock;

use futures_util::future::join_all;
use gatewright::report::{ProtocolReport, Status};
use gatewright_checkkit::{ApiKey, CancellationToken, CheckKit, Options, ProbedProtocol};
use gatewright_gateway::{Config, Gateway};
use serde_json::{Value, json};

use crate::server::{Canned, End, Request, Server};
use crate::{CANARY, key};

static SCHEMA: LazyLock<jsonschema::Validator> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../spec/protocols.schema.json");
    let schema = std::fs::read(path).expect("the schema is there");
    let schema = serde_json::from_slice(&schema).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("a schema")
});

async fn document(url: String, key: &ApiKey) -> ProtocolReport {
    let mut options = Options::new(url);
    options.timeout_ms = 5000;
    let kit = CheckKit::new(options, key).expect("options within bounds");
    let models = ["model-sol".to_owned()];
    let document = kit.run_protocols(&ProbedProtocol::ALL, &models, &|_| {}, &CancellationToken::new()).await;
    let json = document.to_json();
    let value: Value = serde_json::from_str(&json).expect("JSON");
    let violations: Vec<String> =
        SCHEMA.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(violations.is_empty(), "{violations:#?}\n{json}");
    assert_eq!(serde_json::from_str::<ProtocolReport>(&json).expect("it reads back"), document);
    assert!(!json.contains(CANARY), "{json}");
    document
}

/// The failed checks, each with its category and message.
fn failed(document: &ProtocolReport) -> Vec<(String, String, String)> {
    let failed = document.checks.iter().filter(|check| check.status == Status::Fail);
    failed
        .map(|check| {
            let error = check.error.clone().expect("an error");
            (check.id.clone(), error.category, error.message)
        })
        .collect()
}

#[tokio::test]
async fn gateway_passes_every_additional_check() {
    let gateway = Gateway::bind(Config { listen: vec!["127.0.0.1:0".to_owned()], ..Config::default() });
    let gateway = gateway.await.expect("loopback");
    let (url, key) = (gateway.url(), ApiKey::new(gateway.key().expose()).expect("a key"));
    let serving = tokio::spawn(gateway.serve(std::future::pending()));
    let document = document(url, &key).await;
    serving.abort();
    assert_eq!(failed(&document), []);
    assert_eq!((document.summary.passed, document.checks.len()), (15, 15));
    assert_eq!(document.protocols(), [("chat", true), ("messages", true), ("native", true)]);
}

/// What the double answers, before its fault: a document, or the events of a stream with their names.
#[derive(Debug, Clone)]
struct Answer {
    status: u16,
    media_type: &'static str,
    document: Value,
    events: Vec<(Option<&'static str>, String)>,
    /// The end of a line in a stream.
    line_end: &'static str,
}

/// The id of the check that sends such a request.
fn check_of(request: &Request) -> String {
    let protocol = if request.line.contains("/chat/completions") {
        "chat"
    } else if request.line.contains("/v1/messages") {
        "messages"
    } else {
        assert!(request.line.contains("/v1beta/models/model-sol:"), "{}", request.line);
        "native"
    };
    let streams = request.body["stream"] == true || request.line.contains("streamGenerateContent?alt=sse");
    let question = match (&request.body, streams, request.body["tools"].is_array()) {
        (body, ..) if body["messages"].is_null() && body["contents"].is_null() => "error",
        (_, false, false) => "text",
        (_, true, false) => "stream",
        (_, false, true) => "tool",
        (_, true, true) => "tool_stream",
    };
    format!("{protocol}_{question}")
}

fn good(check: &str, token: &str) -> Answer {
    let (protocol, question) = check.split_once('_').expect("a check");
    let mut answer = Answer {
        status: 200,
        media_type: "application/json",
        document: Value::Null,
        events: Vec::new(),
        line_end: "\n",
    };
    let arguments = json!({ "value": token });
    if question == "error" {
        answer.status = 400;
        answer.document = match protocol {
            "chat" => json!({ "error": { "message": "no messages", "type": "invalid_request_error" } }),
            "messages" => {
                json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no messages" } })
            }
            _ => json!({ "error": { "code": 400, "message": "no contents", "status": "INVALID_ARGUMENT" } }),
        };
        return answer;
    }
    let with_tool = question.starts_with("tool");
    if question.ends_with("stream") {
        answer.media_type = "text/event-stream";
        answer.events = match protocol {
            "chat" => chat_events(token, with_tool, &arguments),
            "messages" => messages_events(token, with_tool, &arguments),
            _ => native_events(token, with_tool, &arguments),
        };
        return answer;
    }
    answer.document = match protocol {
        "chat" => {
            let call = json!({
                "id": "call_1", "type": "function",
                "function": { "name": "compat_echo", "arguments": arguments.to_string() },
            });
            let message = if with_tool {
                json!({ "role": "assistant", "content": null, "tool_calls": [call] })
            } else {
                json!({ "role": "assistant", "content": token })
            };
            let end = if with_tool { "tool_calls" } else { "stop" };
            json!({
                "id": "c1", "object": "chat.completion", "created": 1, "model": "model-sol",
                "choices": [{ "index": 0, "message": message, "finish_reason": end }],
                "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
            })
        }
        "messages" => {
            let block = if with_tool {
                json!({ "type": "tool_use", "id": "toolu_1", "name": "compat_echo", "input": arguments })
            } else {
                json!({ "type": "text", "text": token })
            };
            json!({
                "id": "m1", "type": "message", "role": "assistant", "model": "model-sol", "content": [block],
                "stop_reason": if with_tool { "tool_use" } else { "end_turn" }, "stop_sequence": null,
                "usage": { "input_tokens": 3, "output_tokens": 4 },
            })
        }
        _ => {
            let part = if with_tool {
                json!({ "functionCall": { "name": "compat_echo", "args": arguments } })
            } else {
                json!({ "text": token })
            };
            json!({
                "candidates": [{
                    "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP",
                }],
                "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7 },
            })
        }
    };
    answer
}

type Events = Vec<(Option<&'static str>, String)>;

fn chat_events(token: &str, with_tool: bool, arguments: &Value) -> Events {
    let chunk = |delta: Value, end: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
        let chunk = json!({
            "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "model-sol", "choices": [choice],
        });
        (None, chunk.to_string())
    };
    let arguments = arguments.to_string();
    let (begin, rest) = arguments.split_at(7);
    let content = if with_tool {
        let call = |piece: Value| json!({ "tool_calls": [piece] });
        vec![
            chunk(
                call(json!({
                    "index": 0, "id": "call_1", "type": "function",
                    "function": { "name": "compat_echo", "arguments": begin },
                })),
                Value::Null,
            ),
            chunk(call(json!({ "index": 0, "function": { "arguments": rest } })), Value::Null),
        ]
    } else {
        vec![chunk(json!({ "role": "assistant", "content": token }), Value::Null)]
    };
    let end = if with_tool { "tool_calls" } else { "stop" };
    let usage = json!({
        "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "model-sol", "choices": [],
        "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
    });
    let mut events = content;
    events.push(chunk(json!({}), json!(end)));
    events.push((None, usage.to_string()));
    events.push((None, "[DONE]".to_owned()));
    events
}

fn messages_events(token: &str, with_tool: bool, arguments: &Value) -> Events {
    let (block, delta) = if with_tool {
        (
            json!({ "type": "tool_use", "id": "toolu_1", "name": "compat_echo", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
        )
    } else {
        (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": token }))
    };
    let message = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "model-sol", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 3, "output_tokens": 1 },
    });
    let end = if with_tool { "tool_use" } else { "end_turn" };
    let event = |name, mut data: Value| {
        data["type"] = json!(name);
        (Some(name), data.to_string())
    };
    vec![
        event("message_start", json!({ "message": message })),
        event("content_block_start", json!({ "index": 0, "content_block": block })),
        event("ping", json!({})),
        event("content_block_delta", json!({ "index": 0, "delta": delta })),
        event("content_block_stop", json!({ "index": 0 })),
        event(
            "message_delta",
            json!({ "delta": { "stop_reason": end, "stop_sequence": null }, "usage": { "output_tokens": 4 } }),
        ),
        event("message_stop", json!({})),
    ]
}

fn native_events(token: &str, with_tool: bool, arguments: &Value) -> Events {
    let part = if with_tool {
        json!({ "functionCall": { "name": "compat_echo", "args": arguments } })
    } else {
        json!({ "text": token })
    };
    let usage = json!({ "promptTokenCount": 3, "candidatesTokenCount": 4, "totalTokenCount": 7 });
    let answer = json!({
        "candidates": [{ "index": 0, "content": { "role": "model", "parts": [part] }, "finishReason": "STOP" }],
        "usageMetadata": usage,
    });
    vec![(None, answer.to_string())]
}

fn written(answer: &Answer) -> Canned {
    let mut body = answer.document.to_string();
    if answer.media_type == "text/event-stream" {
        let end = answer.line_end;
        let of = |(name, data): &(Option<&str>, String)| {
            let name = name.map(|name| format!("event: {name}{end}")).unwrap_or_default();
            format!("{name}data: {data}{end}{end}")
        };
        body = answer.events.iter().map(of).collect();
    }
    let head = format!("HTTP/1.1 {} X\r\ncontent-type: {}\r\n\r\n", answer.status, answer.media_type);
    Canned { packets: vec![format!("{head}{body}").into_bytes()], end: End::Close }
}

/// The failed checks of a service that answers well, except for what `change` does to the answers of these checks.
async fn failed_with(
    checks: &'static [&'static str],
    change: fn(&mut Answer),
) -> Vec<(String, String, String)> {
    let server = Server::start(move |request| {
        let check = check_of(request);
        let mut answer = good(&check, &request.token());
        if checks.contains(&check.as_str()) {
            change(&mut answer);
        }
        written(&answer)
    })
    .await;
    failed(&document(server.url(), &key()).await)
}

#[tokio::test]
async fn service_that_keeps_the_rules_passes() {
    assert_eq!(failed_with(&[], |_| {}).await, []);
    let streams: &[&str] = &["chat_stream", "messages_tool_stream", "native_stream"];
    // Line ends that the standard allows.
    assert_eq!(failed_with(streams, |answer| answer.line_end = "\r\n").await, []);
}

#[tokio::test]
async fn requests_are_those_of_the_protocols_clients() {
    let server = Server::start(|request| written(&good(&check_of(request), &request.token()))).await;
    document(server.url(), &key()).await;
    let requests = server.requests();
    assert_eq!(requests.len(), 15);
    for request in &requests {
        assert_eq!(request.key(), CANARY);
        let is_messages = request.line.contains("/v1/messages");
        assert_eq!(request.head.contains("anthropic-version: 2023-06-01"), is_messages, "{}", request.head);
    }
}

type Fault = (&'static str, &'static [&'static str], fn(&mut Answer), &'static str, &'static str);

/// A fault, the checks whose answers have it, what it does, the category that all of them fail with, and a part of the
/// message.
const FAULTS: &[Fault] = &[
    (
        "no such endpoint",
        &["messages_text", "native_stream"],
        |answer| answer.status = 404,
        "http_status",
        "404",
    ),
    (
        "web page",
        &["chat_text", "chat_stream"],
        |answer| answer.media_type = "text/html",
        "content_type",
        "text/html",
    ),
    (
        "error with status 200",
        &["chat_text", "native_tool"],
        |answer| answer.document = json!({ "error": { "message": "out of credit" } }),
        "response",
        "out of credit",
    ),
    ("no usage", &["chat_text"], |answer| answer.document["usage"] = Value::Null, "schema", "usage"),
    ("no usage", &["native_text"], |answer| answer.document["usageMetadata"] = json!({}), "schema", "usage"),
    (
        "no output tokens",
        &["messages_tool"],
        |answer| answer.document["usage"] = json!({ "input_tokens": 3 }),
        "schema",
        "usage",
    ),
    (
        "another text",
        &["chat_text"],
        |answer| answer.document["choices"][0]["message"]["content"] = json!("hello"),
        "verification",
        "hello",
    ),
    (
        "responses object for chat",
        &["chat_text"],
        |answer| answer.document["object"] = json!("response"),
        "schema",
        "chat.completion",
    ),
    ("no choices", &["chat_tool"], |answer| answer.document["choices"] = json!([]), "schema", "choices"),
    (
        "arguments as an object",
        &["chat_tool"],
        |answer| {
            answer.document["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] =
                json!({ "value": 1 });
        },
        "schema",
        "arguments",
    ),
    (
        "tool ignored",
        &["messages_tool"],
        |answer| {
            answer.document["content"] = json!([{ "type": "text", "text": "I cannot" }]);
            answer.document["stop_reason"] = json!("end_turn");
        },
        "verification",
        "function calls",
    ),
    (
        "call without id",
        &["messages_tool"],
        |answer| answer.document["content"][0]["id"] = json!(""),
        "schema",
        "id",
    ),
    (
        "unknown end",
        &["messages_text"],
        |answer| answer.document["stop_reason"] = json!("stop"),
        "schema",
        "stop_reason",
    ),
    (
        "other arguments",
        &["native_tool"],
        |answer| {
            answer.document["candidates"][0]["content"]["parts"][0]["functionCall"]["args"] =
                json!({ "text": 1 });
        },
        "verification",
        "arguments",
    ),
    (
        "wrong role",
        &["native_text"],
        |answer| answer.document["candidates"][0]["content"]["role"] = json!("assistant"),
        "schema",
        "role",
    ),
    (
        "no [DONE]",
        &["chat_stream", "chat_tool_stream"],
        |answer| drop(answer.events.pop()),
        "protocol",
        "done",
    ),
    (
        "no usage in the stream",
        &["chat_stream"],
        |answer| drop(answer.events.remove(answer.events.len() - 2)),
        "schema",
        "usage in the stream",
    ),
    (
        "no finish_reason",
        &["chat_stream"],
        |answer| drop(answer.events.remove(answer.events.len() - 3)),
        "protocol",
        "an end for each choice",
    ),
    (
        "call that begins without a name",
        &["chat_tool_stream"],
        |answer| drop(answer.events.remove(0)),
        "protocol",
        "a call begins with id and name",
    ),
    (
        "chunks of two answers",
        &["chat_stream"],
        |answer| answer.events[1].1 = answer.events[1].1.replace("\"c1\"", "\"c2\""),
        "protocol",
        "chunks of one answer",
    ),
    (
        "error in the stream",
        &["chat_stream"],
        |answer| {
            answer.events.insert(1, (None, json!({ "error": { "message": "upstream died" } }).to_string()));
        },
        "response",
        "upstream died",
    ),
    (
        "stream without events",
        &["chat_stream", "messages_stream", "native_stream"],
        |answer| answer.events.clear(),
        "protocol",
        "events of the stream",
    ),
    (
        "events without names",
        &["messages_stream"],
        |answer| answer.events[3].0 = None,
        "protocol",
        "names are types",
    ),
    ("no message_stop", &["messages_stream"], |answer| drop(answer.events.pop()), "protocol", "stop is last"),
    (
        "block that never stops",
        &["messages_tool_stream"],
        |answer| drop(answer.events.remove(4)),
        "protocol",
        "one block is open",
    ),
    (
        "no message_start",
        &["messages_stream"],
        |answer| drop(answer.events.remove(0)),
        "protocol",
        "the start is first",
    ),
    (
        "arguments cut off",
        &["messages_tool_stream"],
        |answer| answer.events[3].1 = answer.events[3].1.replace("\\\"}", ""),
        "protocol",
        "arguments are whole",
    ),
    (
        "no finishReason",
        &["native_stream"],
        |answer| answer.events[0].1 = answer.events[0].1.replace(",\"finishReason\":\"STOP\"", ""),
        "protocol",
        "an end for each choice",
    ),
    (
        "array instead of events",
        &["native_stream"],
        |answer| answer.events[0].1 = format!("[{}]", answer.events[0].1),
        "protocol",
        "events are json",
    ),
    ("wrong request accepted", &["chat_error"], |answer| answer.status = 200, "verification", "200"),
    ("server error", &["native_error"], |answer| answer.status = 500, "http_status", "500"),
    (
        "error of another protocol",
        &["messages_error"],
        |answer| answer.document = json!({ "error": { "message": "no", "type": "invalid_request_error" } }),
        "schema",
        "type",
    ),
    (
        "error as text",
        &["chat_error", "native_error"],
        |answer| answer.document = json!({ "error": "no messages" }),
        "schema",
        "error",
    ),
    (
        "detail in place of error",
        &["chat_error"],
        |answer| answer.document = json!({ "detail": [{ "msg": "field required" }] }),
        "schema",
        "error",
    ),
    (
        "key in the error",
        &["chat_text"],
        |answer| {
            answer.status = 401;
            answer.document = json!({ "error": { "message": format!("wrong key {CANARY}") } });
        },
        "auth",
        "wrong key",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_fails_the_right_checks_with_the_right_category() {
    let runs = FAULTS.iter().map(|(name, checks, change, category, part)| async move {
        let found = failed_with(checks, *change).await;
        let ids: Vec<&str> = found.iter().map(|(id, ..)| id.as_str()).collect();
        let fits = found.iter().all(|(_, of, message)| of == category && message.contains(part));
        (ids != *checks || !fits)
            .then(|| format!("{name}: expected {category} with {part:?} in {checks:?}, found {found:#?}"))
    });
    let wrong: Vec<String> = join_all(runs).await.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[tokio::test]
async fn service_without_the_protocols_fails_all_of_their_checks() {
    let server = Server::start(|_| {
        let body = json!({ "detail": "Not Found" });
        let head = "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n\r\n";
        Canned { packets: vec![format!("{head}{body}").into_bytes()], end: End::Close }
    })
    .await;
    let document = document(server.url(), &key()).await;
    assert_eq!((document.summary.failed, document.checks.len()), (15, 15));
}

#[tokio::test]
async fn cancelled_run_marks_what_it_did_not_reach() {
    let server = Server::start(|_| Canned { packets: Vec::new(), end: End::Hang }).await;
    let kit = CheckKit::new(Options::new(server.url()), &key()).expect("options within bounds");
    let cancel = CancellationToken::new();
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let models = ["model-sol".to_owned()];
    let (document, ()) =
        tokio::join!(kit.run_protocols(&ProbedProtocol::ALL, &models, &|_| {}, &cancel), stop);
    assert_eq!((document.summary.skipped, document.checks.len()), (15, 15));
    assert!(
        document
            .checks
            .iter()
            .all(|check| check.reason.as_deref().is_some_and(|why| why.starts_with("aborted:")))
    );
}
