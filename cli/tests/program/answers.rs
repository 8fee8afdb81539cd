//! `gatewright chat` with answers that have no text, or not all of it: a message says why, and the exit code follows the table of
//! the guide.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::{gatewright, transcript};

/// A provider that answers each request with the same document or stream. It rejects requests that a strict one would reject.
struct Provider {
    url: String,
}

/// What it sends: the media type and the body.
type Sent = (&'static str, String);

impl Provider {
    fn start((media_type, body): Sent) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.expect("a connection");
                let wants_stream = read(&socket);
                assert_eq!(
                    wants_stream,
                    media_type == "text/event-stream",
                    "the request asks for what comes"
                );
                let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length");
                let answer = format!("{head}: {}\r\nconnection: close\r\n\r\n{body}", body.len());
                socket.write_all(answer.as_bytes()).expect("sent");
            }
        });
        Self { url }
    }

    fn chat(&self, arguments: &[&str]) -> Output {
        let mut command = gatewright();
        command.args(["chat", "-m", "model-sol", "--base-url", &self.url]).args(arguments).arg("Hello");
        command.env("GATEWRIGHT_API_KEY", "a-key").stdin(Stdio::null()).output().expect("it starts")
    }
}

/// Reads a request; whether it asks for a stream.
fn read(socket: &TcpStream) -> bool {
    let mut reader = BufReader::new(socket);
    let (mut line, mut length, mut has_key) = (String::new(), 0, false);
    reader.read_line(&mut line).expect("a request line");
    assert!(line.starts_with("POST /v1"), "{line}");
    let streams = line.contains(":streamGenerateContent");
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        let header = header.trim_end().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        has_key |= header.contains("a-key");
    }
    assert!(has_key, "the request has no key");
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    assert!(["messages", "input", "contents"].iter().any(|name| body[name].is_array()), "{body}");
    streams || body["stream"] == true
}

fn whole(document: &Value) -> Sent {
    ("application/json", document.to_string())
}

fn chat(message: &Value, end: &str) -> Value {
    json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "model-sol",
        "choices": [{ "index": 0, "message": message, "finish_reason": end }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7 },
    })
}

/// Chunks, the last one with the reason for the end.
fn chunks(deltas: &[Value], end: &str) -> Sent {
    let chunk = |delta: &Value, end: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
        let chunk = json!({
            "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "model-sol", "choices": [choice],
        });
        format!("data: {chunk}\n\n")
    };
    let mut body: String = deltas.iter().map(|delta| chunk(delta, Value::Null)).collect();
    body.push_str(&chunk(&json!({}), end.into()));
    body.push_str("data: [DONE]\n\n");
    ("text/event-stream", body)
}

fn tool_calls() -> Value {
    json!([{ "index": 0, "id": "call_1", "type": "function", "function": { "name": "weather", "arguments": "{}" } }])
}

const CALLS: &str = "the answer has no text: the model calls tools, which this command does not run: weather";
const FILTERED: &str = "the answer has no text: the provider's content filter withheld content";

#[track_caller]
fn assert_without_text(output: &Output, remark: &str) {
    assert_eq!(transcript(output), format!("exit code 1\n--- stdout\n--- stderr\ngatewright: {remark}\n"));
}

#[test]
fn streams_without_text_fail_and_say_why() {
    for (deltas, end, remark) in [
        (vec![json!({ "role": "assistant", "tool_calls": tool_calls() })], "tool_calls", CALLS),
        (vec![json!({ "role": "assistant", "content": "" })], "content_filter", FILTERED),
        (vec![json!({ "role": "assistant" })], "stop", "the answer has no text"),
    ] {
        assert_without_text(&Provider::start(chunks(&deltas, end)).chat(&[]), remark);
    }
}

#[test]
fn whole_answers_without_text_fail_in_every_protocol() {
    let message = json!({ "role": "assistant", "content": null, "tool_calls": tool_calls() });
    let usage = json!({ "input_tokens": 3, "output_tokens": 4 });
    let call = json!({ "type": "tool_use", "id": "toolu_1", "name": "weather", "input": {} });
    let messages = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "model-sol", "content": [call],
        "stop_reason": "tool_use", "stop_sequence": null, "usage": usage,
    });
    let responses = json!({
        "id": "resp_1", "object": "response", "created_at": 1, "model": "model-sol", "status": "incomplete",
        "incomplete_details": { "reason": "content_filter" }, "error": null, "output": [], "usage": usage,
    });
    let native = json!({
        "promptFeedback": { "blockReason": "SAFETY" },
        "usageMetadata": { "promptTokenCount": 3, "totalTokenCount": 3 },
    });
    for (protocol, document, remark) in [
        ("chat", chat(&message, "tool_calls"), CALLS),
        ("messages", messages, CALLS),
        ("responses", responses, FILTERED),
        ("native", native, FILTERED),
    ] {
        let provider = Provider::start(whole(&document));
        assert_without_text(&provider.chat(&["--no-stream", "--protocol", protocol]), remark);
    }
}

/// The text is there, as with an answer that the token limit cut off.
#[test]
fn answer_with_part_of_its_text_succeeds_with_a_remark() {
    for (end, why) in [
        ("content_filter", "the provider's content filter withheld content"),
        ("length", "it was cut off at the model's token limit"),
    ] {
        let expected = format!(
            "exit code 0\n--- stdout\nOnce\n--- stderr\ngatewright: the answer is incomplete: {why}\n"
        );
        let deltas = [json!({ "role": "assistant", "content": "Once" })];
        assert_eq!(transcript(&Provider::start(chunks(&deltas, end)).chat(&[])), expected);
        let message = json!({ "role": "assistant", "content": "Once" });
        let provider = Provider::start(whole(&chat(&message, end)));
        assert_eq!(transcript(&provider.chat(&["--no-stream"])), expected);
    }
}

/// The document shows it.
#[test]
fn json_of_an_answer_without_text_succeeds() {
    let message = json!({ "role": "assistant", "content": null, "tool_calls": tool_calls() });
    let document = chat(&message, "tool_calls");
    let output = Provider::start(whole(&document)).chat(&["--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).expect("JSON"), document);
}
