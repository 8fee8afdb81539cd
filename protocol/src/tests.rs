//! Tests for the codecs of every protocol. The documents are in `tests/vectors/protocols`.

mod answer_documents;
mod answers;
mod bounds;
mod documents;
mod every_member;
mod functions;
mod goldens;
mod hostile;
mod interleaved;
mod legal;
mod messy_answers;
mod probes;
mod round_trip;
mod same_conversation;
mod settings;
mod stream_documents;
mod streamed;
mod strict;

use serde_json::{Value, json};

use super::{Defaults, MalformedDocument, ResponseContext};
use crate::capabilities::{Capabilities, Thinking};
use crate::conversation::{Delta, Protocol};

/// The protocols, and the folders of their vectors.
const PROTOCOLS: [(Protocol, &str); 4] = [
    (Protocol::Chat, "chat"),
    (Protocol::Responses, "responses"),
    (Protocol::Messages, "messages"),
    (Protocol::Native, "native"),
];

/// The protocols of providers: no client speaks the last one.
const TARGETS: [(Protocol, &str); 5] = [
    (Protocol::Chat, "chat"),
    (Protocol::Responses, "responses"),
    (Protocol::Messages, "messages"),
    (Protocol::Native, "native"),
    (Protocol::Converse, "converse"),
];

const DEFAULTS: Defaults = Defaults {
    max_tokens: 4096,
    thinking: Thinking::Budget,
    functions_only: false,
    capabilities: Capabilities::MOST,
};

/// How many inputs a property test tries: `PROPTEST_CASES`, which the nightly run sets, or `few`.
fn tries(few: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(few)
}

/// The cases of a vector file.
fn cases(folder: &str, file: &str) -> Vec<Value> {
    let path = format!("{}/../tests/vectors/protocols/{folder}/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut document: Value = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    match document["cases"].take() {
        Value::Array(cases) => cases,
        _ => panic!("{path} has no cases"),
    }
}

fn response_context(model: &str) -> ResponseContext {
    ResponseContext {
        model: model.to_owned(),
        request: json!({}),
        include_usage: true,
        id: "id_1".to_owned(),
        created: 1,
        ..ResponseContext::default()
    }
}

/// Whether a request wants a stream.
fn streams(request: &Value) -> bool {
    request["stream"] == true
}

/// Reads a stream: each event has `data`, a text or a document, and may have the name `event`.
fn deltas(protocol: Protocol, events: &Value) -> Result<Vec<Delta>, MalformedDocument> {
    let mut reader = protocol.stream_in();
    let mut deltas = Vec::new();
    for event in events.as_array().into_iter().flatten() {
        let data = event["data"].as_str().map_or_else(|| event["data"].to_string(), str::to_owned);
        reader.event(event["event"].as_str(), &data, &mut deltas)?;
    }
    reader.end(&mut deltas)?;
    Ok(deltas)
}

/// Writes a stream.
fn written(protocol: Protocol, deltas: &[Delta]) -> String {
    let mut writer = protocol.stream_out(response_context("m"));
    let mut bytes = Vec::new();
    for delta in deltas {
        writer.delta(delta.clone(), &mut bytes);
    }
    String::from_utf8(bytes).expect("events are text")
}

/// The events in a text.
fn events(text: &str) -> Value {
    let event = |frame: &str| {
        let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        let data = line("data: ").unwrap_or_default();
        let data = serde_json::from_str(data).unwrap_or_else(|_| Value::from(data));
        json!({ "event": line("event: "), "data": data })
    };
    text.split("\n\n").filter(|frame| !frame.is_empty()).map(event).collect()
}
