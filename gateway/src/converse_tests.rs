//! Tests a gateway in front of a server of the converse protocol, which judges each request as the strictest providers do.
//! Clients of every protocol get its answers, whole and as binary event streams over a socket.

use std::sync::{Arc, Mutex};

use gatewright_config::{Config, Kind, ModelConfig, TargetConfig, UpstreamConfig};
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::judge::judge_by;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::server::Embedded;
use crate::wire::Body;

/// The model's name at the server.
const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
/// The same name in a path.
const IN_PATH: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0";
/// Rules of models without this model's features.
const OF_OTHER_MODELS: [&str; 2] = ["plain_settings", "no_cache_points"];

/// A request that the server received.
#[derive(Debug, Clone)]
struct Seen {
    path: String,
    body: Value,
}

struct Server {
    url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&requests)));
            }
        });
        Self { url, seen }
    }

    fn last(&self) -> Seen {
        self.seen.lock().expect("no panic").last().cloned().expect("a request")
    }
}

async fn serve(mut socket: TcpStream, seen: Arc<Mutex<Vec<Seen>>>) {
    let (mut received, mut packet) = (Vec::new(), [0; 4096]);
    loop {
        while let Some((request, length)) = request_in(&received) {
            received.drain(..length);
            let answer = answer(&request);
            seen.lock().expect("no panic").push(request);
            // In small packets that split messages anywhere.
            for piece in answer.chunks(97) {
                if socket.write_all(piece).await.is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        }
        match socket.read(&mut packet).await {
            Ok(length @ 1..) => received.extend_from_slice(&packet[..length]),
            _ => return,
        }
    }
}

/// The first request, and its length.
fn request_in(received: &[u8]) -> Option<(Seen, usize)> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let lower = head.to_ascii_lowercase();
    let length =
        lower.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    let body = received.get(end..end + length)?;
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = serde_json::from_slice(body).expect("a JSON body");
    Some((Seen { path, body }, end + length))
}

fn response(status: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn refusal(status: &str, message: &str) -> Vec<u8> {
    response(status, "application/json", json!({ "message": message }).to_string().as_bytes())
}

fn answer(Seen { path, body }: &Seen) -> Vec<u8> {
    let found = judge_by(Protocol::Converse, body, |rule| !OF_OTHER_MODELS.contains(&rule.name));
    if let Some(finding) = found.first() {
        return refusal("400 Bad Request", &finding.to_string());
    }
    let text = body["messages"].to_string();
    let fails = |word: &str| text.contains(word);
    match path.strip_prefix(&format!("/model/{IN_PATH}/")) {
        Some("converse") if fails("too often") => refusal("429 Too Many Requests", "Slow down."),
        Some("converse") => response("200 OK", "application/json", whole().to_string().as_bytes()),
        Some("converse-stream") => {
            let mut events = stream();
            if fails("in the middle") {
                events.truncate(6);
                let exception = json!({ "message": "The model broke." });
                events.push(message("exception", ":exception-type", "modelStreamErrorException", &exception));
            }
            response("200 OK", "application/vnd.amazon.eventstream", &events.concat())
        }
        _ => refusal("404 Not Found", path),
    }
}

fn usage() -> Value {
    json!({ "inputTokens": 5, "outputTokens": 7, "totalTokens": 15, "cacheReadInputTokens": 3 })
}

fn whole() -> Value {
    json!({
        "output": { "message": { "role": "assistant", "content": [
            { "reasoningContent": { "reasoningText": { "text": "Which zone?", "signature": "c2lnbmVk" } } },
            { "text": "Let me see." },
            { "toolUse": { "toolUseId": "tooluse_1", "name": "now", "input": { "zone": "UTC" } } },
        ] } },
        "stopReason": "tool_use",
        "usage": usage(),
        "metrics": { "latencyMs": 9 },
    })
}

fn stream() -> Vec<Vec<u8>> {
    let delta = |index: u64, delta: Value| {
        ("contentBlockDelta", json!({ "delta": delta, "contentBlockIndex": index, "p": "abcdef" }))
    };
    let stop = |index: u64| ("contentBlockStop", json!({ "contentBlockIndex": index, "p": "abc" }));
    let call = json!({ "toolUse": { "toolUseId": "tooluse_1", "name": "now" } });
    let events = [
        ("messageStart", json!({ "role": "assistant", "p": "a" })),
        delta(0, json!({ "reasoningContent": { "text": "Which zone?" } })),
        delta(0, json!({ "reasoningContent": { "signature": "c2lnbmVk" } })),
        stop(0),
        delta(1, json!({ "text": "Let me" })),
        delta(1, json!({ "text": " see." })),
        stop(1),
        ("contentBlockStart", json!({ "start": call, "contentBlockIndex": 2 })),
        delta(2, json!({ "toolUse": { "input": "{\"zone\":" } })),
        delta(2, json!({ "toolUse": { "input": "\"UTC\"}" } })),
        stop(2),
        ("messageStop", json!({ "stopReason": "tool_use" })),
        ("metadata", json!({ "usage": usage(), "metrics": { "latencyMs": 9 } })),
    ];
    events.iter().map(|(name, payload)| message("event", ":event-type", name, payload)).collect()
}

/// A message of an event stream.
fn message(kind: &str, name_header: &str, name: &str, payload: &Value) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let (name_length, length) = (
            u8::try_from(name.len()).expect("a short name"),
            u16::try_from(value.len()).expect("a short value"),
        );
        [&[name_length], name.as_bytes(), &[7], &length.to_be_bytes(), value.as_bytes()].concat()
    };
    let headers = [
        header(name_header, name),
        header(":content-type", "application/json"),
        header(":message-type", kind),
    ]
    .concat();
    let payload = payload.to_string();
    let length = |of: usize| u32::try_from(of).expect("a length").to_be_bytes();
    let lengths = [length(16 + headers.len() + payload.len()), length(headers.len())].concat();
    let prelude = crc32fast::hash(&lengths).to_be_bytes();
    let bytes = [&lengths[..], &prelude, &headers, payload.as_bytes()].concat();
    let checksum = crc32fast::hash(&bytes).to_be_bytes();
    [&bytes[..], &checksum].concat()
}

/// A gateway with the model `mine` at the server.
fn gateway(server: &Server) -> Embedded {
    let mut model = ModelConfig::new("mine", "family_one", TargetConfig::new("one", MODEL));
    model.translate_responses = true;
    let upstreams = vec![UpstreamConfig::new("one", Kind::Converse, &server.url)];
    Embedded::new(Config { upstreams, models: vec![model], ..Config::default() }).expect("a gateway")
}

/// Status, the header with what was dropped, and the body.
async fn send(gateway: &Embedded, path: &str, body: &Value) -> (u16, String, String) {
    let request = http::Request::post(path)
        .header("authorization", format!("Bearer {}", gateway.key().expose()))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()));
    let response = gateway.answer(request.expect("a request")).await;
    let status = response.status().as_u16();
    let dropped = response.headers().get("x-gatewright-dropped").and_then(|value| value.to_str().ok());
    let dropped = dropped.unwrap_or_default().to_owned();
    let bytes = response.into_body().collect().await.expect("a body").to_bytes();
    (status, dropped, String::from_utf8(bytes.to_vec()).expect("text"))
}

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";
const PATHS: [&str; 4] = [CHAT, RESPONSES, MESSAGES, "native"];

/// A question with a picture and a tool, in the protocol of a path; and the path itself.
fn question(path: &str, text: &str, stream: bool) -> (String, Value) {
    let schema = json!({ "type": "object", "properties": { "zone": { "type": "string" } } });
    let picture = "data:image/png;base64,AA==";
    let tool = json!({ "name": "now", "parameters": schema });
    let body = match path {
        CHAT => json!({
            "messages": [
                { "role": "system", "content": "Be brief." },
                { "role": "user", "content": [
                    { "type": "text", "text": text }, { "type": "image_url", "image_url": { "url": picture } },
                ] },
            ],
            "tools": [{ "type": "function", "function": tool }],
            "reasoning_effort": "low",
        }),
        RESPONSES => json!({
            "instructions": "Be brief.",
            "input": [{ "role": "user", "content": [
                { "type": "input_text", "text": text }, { "type": "input_image", "image_url": picture },
            ] }],
            "tools": [{ "type": "function", "name": "now", "parameters": schema }],
            "reasoning": { "effort": "low", "summary": "auto" },
        }),
        MESSAGES => json!({
            "system": "Be brief.", "max_tokens": 9000, "thinking": { "type": "enabled", "budget_tokens": 2048 },
            "messages": [{ "role": "user", "content": [
                { "type": "text", "text": text },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } },
            ] }],
            "tools": [{ "name": "now", "input_schema": schema }],
        }),
        _ => json!({
            "systemInstruction": { "parts": [{ "text": "Be brief." }] },
            "contents": [{ "role": "user", "parts": [
                { "text": text }, { "inlineData": { "mimeType": "image/png", "data": "AA==" } },
            ] }],
            "tools": [{ "functionDeclarations": [tool] }],
            "generationConfig": { "thinkingConfig": { "thinkingBudget": 2048, "includeThoughts": true } },
        }),
    };
    addressed(path, body, stream)
}

/// Adds the model and whether to stream.
fn addressed(path: &str, mut body: Value, stream: bool) -> (String, Value) {
    if path == "native" {
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        return (format!("/v1beta/models/mine:{method}"), body);
    }
    (body["model"], body["stream"]) = ("mine".into(), stream.into());
    (path.to_owned(), body)
}

#[tokio::test]
async fn converse_answers_reach_clients_of_every_protocol() {
    let server = Server::start().await;
    let gateway = gateway(&server);
    for path in PATHS {
        for stream in [false, true] {
            let (target, body) = question(path, "What time is it?", stream);
            let (status, dropped, answer) = send(&gateway, &target, &body).await;
            assert_eq!((status, dropped.as_str()), (200, ""), "{path} {stream}: {answer}");
            for expected in ["Which zone?", "Let me", " see.", "now", "zone", "UTC", "gw-converse:c2lnbmVk"] {
                // Clients of the native protocol get signatures as bytes.
                let is_there = answer.contains(expected)
                    || path == "native" && expected.starts_with("gw-") && answer.contains("thoughtSignature");
                assert!(is_there, "{path} {stream}: {expected} is missing: {answer}");
            }
            let Seen { path: seen, body } = server.last();
            let method = if stream { "converse-stream" } else { "converse" };
            assert_eq!(seen, format!("/model/{IN_PATH}/{method}"));
            assert_eq!(body["system"], json!([{ "text": "Be brief." }]), "{path}");
            let picture = json!({ "image": { "format": "png", "source": { "bytes": "AA==" } } });
            assert_eq!(body["messages"][0]["content"][1], picture, "{path}");
            assert_eq!(body["additionalModelRequestFields"]["thinking"]["type"], "enabled", "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn tool_result_is_sent_back_with_the_signed_thought() {
    let server = Server::start().await;
    let gateway = gateway(&server);
    let (target, mut body) = question(MESSAGES, "What time is it?", false);
    let (_, _, answer) = send(&gateway, &target, &body).await;
    let message: Value = serde_json::from_str(&answer).expect("JSON");
    let call = message["content"].as_array().and_then(|content| content.last()).expect("a call");
    let result = json!({ "type": "tool_result", "tool_use_id": call["id"], "content": "noon" });
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(json!({ "role": "assistant", "content": message["content"] }));
    messages.push(json!({ "role": "user", "content": [result] }));
    let (status, dropped, answer) = send(&gateway, &target, &body).await;
    assert_eq!((status, dropped.as_str()), (200, ""), "{answer}");
    let sent = server.last().body;
    assert_eq!(
        sent["messages"][1]["content"],
        json!([
            { "reasoningContent": { "reasoningText": { "text": "Which zone?", "signature": "c2lnbmVk" } } },
            { "text": "Let me see." },
            { "toolUse": { "toolUseId": "tooluse_1", "name": "now", "input": { "zone": "UTC" } } },
        ])
    );
    let result = json!({ "toolResult": { "toolUseId": "tooluse_1", "content": [{ "text": "noon" }] } });
    assert_eq!(sent["messages"][2]["content"], json!([result]));
}

#[tokio::test]
async fn mid_stream_exception_ends_each_client_stream_with_an_error() {
    let server = Server::start().await;
    let gateway = gateway(&server);
    for path in PATHS {
        let (target, body) = question(path, "Break in the middle.", true);
        let (status, _, answer) = send(&gateway, &target, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
        for expected in ["Which zone?", "Let me", "The model broke."] {
            assert!(answer.contains(expected), "{path}: {expected} is missing: {answer}");
        }
        for end in ["[DONE]", "response.completed", "message_stop", "\"STOP\""] {
            assert!(!answer.contains(end), "{path}: {end} ends a broken stream: {answer}");
        }
    }
}

#[tokio::test]
async fn upstream_error_reaches_the_client_and_dropped_members_are_listed() {
    let server = Server::start().await;
    let gateway = gateway(&server);
    for path in PATHS {
        let (target, body) = question(path, "Asked too often.", false);
        let (status, _, answer) = send(&gateway, &target, &body).await;
        assert_eq!(status, 429, "{path}: {answer}");
        assert!(answer.contains("Slow down."), "{path}: {answer}");
    }
    let (target, mut body) = question(CHAT, "What is it?", false);
    body["seed"] = json!(7);
    let (status, dropped, answer) = send(&gateway, &target, &body).await;
    assert_eq!((status, dropped.as_str()), (200, "/seed"), "{answer}");
}

#[tokio::test]
async fn image_url_is_rejected_before_the_upstream_is_called() {
    let server = Server::start().await;
    let gateway = gateway(&server);
    let (target, body) = question(CHAT, "The only request.", false);
    assert_eq!(send(&gateway, &target, &body).await.0, 200);
    let address = "https://a.example/a.png";
    for (path, at, picture) in [
        (CHAT, "/messages/1/content/1", json!({ "type": "image_url", "image_url": { "url": address } })),
        (RESPONSES, "/input/0/content/1", json!({ "type": "input_image", "image_url": address })),
        (
            MESSAGES,
            "/messages/0/content/1",
            json!({ "type": "image", "source": { "type": "url", "url": address } }),
        ),
        (
            "native",
            "/contents/0/parts/1",
            json!({ "fileData": { "mimeType": "image/png", "fileUri": address } }),
        ),
    ] {
        for stream in [false, true] {
            let (target, mut body) = question(path, "What is it?", stream);
            *body.pointer_mut(at).expect("a picture") = picture.clone();
            let (status, _, answer) = send(&gateway, &target, &body).await;
            assert_eq!(status, 400, "{path}: {answer}");
            let expected = format!("cannot take the image at {at}; send its content as base64 (a data URL)");
            assert!(answer.contains(&expected), "{path}: {answer}");
            assert!(server.last().body.to_string().contains("The only request."), "{path}");
        }
    }
}
