//! Tests the client against a real server on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(feature = "schemars")]
mod answer_events;
mod answer_forms;
mod calls;
mod catalog_sections;
mod child;
mod echoes;
mod facts;
mod failures;
mod files;
mod forms;
mod framing;
mod hostile;
#[path = "../../../tests/hostile/server.rs"]
mod hostile_server;
mod keys;
mod limits;
mod logging;
mod middleware;
mod options;
mod pages;
mod pool;
mod presence;
mod proxies;
mod read_ahead;
mod repaired_answers;
mod retries;
mod server;
mod stream_levels;
mod stream_vectors;
mod streams;
#[cfg(feature = "schemars")]
mod structured;
mod telemetry;
mod times;
mod tls;
#[cfg(feature = "schemars")]
mod tool_vectors;
#[cfg(feature = "schemars")]
mod tools;
mod vectors;
mod videos;
mod webhooks;

/// The smallest body of a chat request.
const CHAT_BODY: &str = r#"{"model":"model-sol","messages":[{"role":"user","content":"hi"}]}"#;

/// A chat completion as defined in 2.2.
const COMPLETION: &str = r#"{"id":"c1","object":"chat.completion","created":1,"model":"model-sol","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},"vendor":{"kept":true}}"#;

/// The body as the generated type.
fn chat_request() -> gatewright::types::ChatCompletionRequest {
    serde_json::from_str(CHAT_BODY).unwrap()
}

fn chat_call() -> gatewright::Call {
    gatewright::Call::new(&gatewright::operations::CREATE_CHAT_COMPLETION).body(CHAT_BODY)
}
