//! The span of a call, and OpenTelemetry's attributes on it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright::{Call, Client, operations};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

use crate::server::{Script, Server};
use crate::{COMPLETION, chat_call, chat_request};

type Fields = BTreeMap<String, String>;

/// Keeps the fields of the spans that have ended.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<Fields>>>);

struct Visit<'a>(&'a mut Fields);

impl tracing::field::Visit for Visit<'_> {
    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }

    fn record_u64(&mut self, field: &tracing::field::Field, value: u64) {
        panic!("{field} is {value} without a sign, which OpenTelemetry's bridge exports as text");
    }

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        id: &tracing::Id,
        context: Context<'_, S>,
    ) {
        if attributes.metadata().target() == "gatewright" {
            let mut fields = Fields::new();
            attributes.record(&mut Visit(&mut fields));
            context.span(id).unwrap().extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &tracing::Id, values: &tracing::span::Record<'_>, context: Context<'_, S>) {
        if let Some(fields) = context.span(id).unwrap().extensions_mut().get_mut::<Fields>() {
            values.record(&mut Visit(fields));
        }
    }

    fn on_close(&self, id: tracing::Id, context: Context<'_, S>) {
        if let Some(fields) = context.span(&id).unwrap().extensions_mut().remove::<Fields>() {
            self.0.lock().unwrap().push(fields);
        }
    }
}

impl Spans {
    fn listen(&self) -> tracing::subscriber::DefaultGuard {
        tracing::subscriber::set_default(tracing_subscriber::registry().with(self.clone()))
    }

    /// The fields of the only span.
    fn only(&self) -> Fields {
        let spans = self.0.lock().unwrap();
        assert_eq!(spans.len(), 1, "{spans:?}");
        spans[0].clone()
    }
}

fn assert_fields(fields: &Fields, expected: &[(&str, &str)]) {
    for (name, value) in expected {
        assert_eq!(fields.get(*name).map(String::as_str), Some(*value), "{name}: {fields:?}");
    }
}

fn client_with_events(server: &Server) -> Client {
    server.builder().telemetry(true).max_retries(1).build().unwrap()
}

#[tokio::test]
async fn call_has_a_span_with_its_operation_attempts_status_and_request_id() {
    let spans = Spans::default();
    let listening = spans.listen();
    let server = Server::start([
        Script::whole(503, &[("retry-after-ms", "1")], "{}"),
        Script::whole(200, &[("x-request-id", "req_5")], COMPLETION),
    ])
    .await;
    let client = server.builder().max_retries(1).build().unwrap();
    client.chat().completions().create(&chat_request()).await.unwrap();
    drop(listening);
    let expected = [
        ("operation", "create_chat_completion"),
        ("attempts", "2"),
        ("status", "200"),
        ("request_id", "req_5"),
    ];
    let fields = spans.only();
    assert_fields(&fields, &expected);
    assert_eq!(fields.len(), expected.len(), "nothing more unasked: {fields:?}");
}

#[tokio::test]
async fn chat_completion_records_the_attributes_of_the_conventions() {
    let spans = Spans::default();
    let listening = spans.listen();
    let answer = r#"{"id":"c1","model":"model-sol-2","choices":[{"index":0,"finish_reason":"stop"},{"index":1,"finish_reason":"length"}],
        "usage":{"prompt_tokens":11,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    let server =
        Server::start([Script::whole(503, &[("retry-after-ms", "1")], "{}"), Script::json(answer)]).await;
    let body = r#"{"model":"model-sol","messages":[{"role":"user","content":"a secret thought"}],"temperature":0.5,
        "top_p":1,"max_completion_tokens":64,"max_tokens":32,"n":2,"stop":["a","b"],"seed":7}"#;
    client_with_events(&server).call(chat_call().body(body)).await.unwrap();
    drop(listening);
    let port = server.address.port().to_string();
    let fields = spans.only();
    assert_fields(
        &fields,
        &[
            ("otel.name", "chat model-sol"),
            ("otel.kind", "client"),
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "gatewright"),
            ("gen_ai.request.model", "model-sol"),
            ("gen_ai.request.temperature", "0.5"),
            ("gen_ai.request.top_p", "1"),
            ("gen_ai.request.max_tokens", "64"),
            ("gen_ai.request.choice.count", "2"),
            ("gen_ai.request.stop_sequences", r#"["a","b"]"#),
            ("gen_ai.request.seed", "7"),
            ("gen_ai.response.id", "c1"),
            ("gen_ai.response.model", "model-sol-2"),
            ("gen_ai.response.finish_reasons", r#"["stop","length"]"#),
            ("gen_ai.usage.input_tokens", "11"),
            ("gen_ai.usage.output_tokens", "7"),
            ("gen_ai.usage.cache_read.input_tokens", "3"),
            ("gen_ai.usage.reasoning.output_tokens", "2"),
            ("server.address", "127.0.0.1"),
            ("server.port", &port),
            ("http.request.method", "POST"),
            ("http.request.resend_count", "1"),
            ("http.response.status_code", "200"),
            ("url.template", "/v1/chat/completions"),
        ],
    );
    assert!(
        !fields.contains_key("gen_ai.request.stream") && !fields.contains_key("error.type"),
        "{fields:?}"
    );
    assert!(!format!("{fields:?}").contains("secret thought"), "{fields:?}");
}

#[tokio::test]
async fn responses_and_native_calls_record_the_same_attributes() {
    let spans = Spans::default();
    let listening = spans.listen();
    let response = r#"{"id":"r1","object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
        "model":"model-sol","usage":{"input_tokens":5,"output_tokens":6}}"#;
    let native = r#"{"responseId":"n1","modelVersion":"m:a-1","candidates":[{"finishReason":"STOP"}],
        "usageMetadata":{"promptTokenCount":8,"candidatesTokenCount":4,"thoughtsTokenCount":9}}"#;
    let server =
        Server::start([Script::json(response), Script::json(native), Script::json(r#"{"data":[]}"#)]).await;
    let client = client_with_events(&server);
    let body = r#"{"model":"model-sol","input":"x","max_output_tokens":16}"#;
    client.call(Call::new(&operations::CREATE_RESPONSE).body(body)).await.unwrap();
    let body = r#"{"contents":[],"generationConfig":{"temperature":0.25,"topK":4,"maxOutputTokens":9,"stopSequences":["."]}}"#;
    client.call(Call::new(&operations::GENERATE_CONTENT).path("model", "m:a").body(body)).await.unwrap();
    client.call(Call::new(&operations::LIST_MODELS)).await.unwrap();
    drop(listening);
    let spans = spans.0.lock().unwrap();
    assert_fields(
        &spans[0],
        &[
            ("otel.name", "chat model-sol"),
            ("gen_ai.request.max_tokens", "16"),
            ("gen_ai.response.id", "r1"),
            ("gen_ai.response.finish_reasons", r#"["max_output_tokens"]"#),
            ("gen_ai.usage.input_tokens", "5"),
            ("gen_ai.usage.output_tokens", "6"),
        ],
    );
    assert_fields(
        &spans[1],
        &[
            ("otel.name", "generate_content m:a"),
            ("gen_ai.request.model", "m:a"),
            ("gen_ai.request.temperature", "0.25"),
            ("gen_ai.request.top_k", "4"),
            ("gen_ai.request.max_tokens", "9"),
            ("gen_ai.request.stop_sequences", r#"["."]"#),
            ("gen_ai.response.id", "n1"),
            ("gen_ai.response.model", "m:a-1"),
            ("gen_ai.response.finish_reasons", r#"["STOP"]"#),
            ("gen_ai.usage.input_tokens", "8"),
            ("gen_ai.usage.output_tokens", "13"),
            ("gen_ai.usage.reasoning.output_tokens", "9"),
        ],
    );
    assert_fields(&spans[2], &[("otel.name", "list_models"), ("http.response.status_code", "200")]);
    assert!(!spans[2].contains_key("gen_ai.operation.name"), "{:?}", spans[2]);
}

#[tokio::test]
async fn huge_counts_and_choices_are_recorded_up_to_a_limit() {
    let spans = Spans::default();
    let listening = spans.listen();
    let most = u64::MAX;
    let candidates: Vec<String> =
        (0..500).map(|index| format!(r#"{{"index":{index},"finishReason":"STOP"}}"#)).collect();
    let native = format!(
        r#"{{"candidates":[{}],"usageMetadata":{{"candidatesTokenCount":{most},"thoughtsTokenCount":{most}}}}}"#,
        candidates.join(",")
    );
    let server = Server::start([Script::json(&native)]).await;
    let call = Call::new(&operations::GENERATE_CONTENT).path("model", "m:a").body(r#"{"contents":[]}"#);
    client_with_events(&server).call(call).await.unwrap();
    drop(listening);
    let fields = spans.only();
    assert_fields(&fields, &[("gen_ai.usage.output_tokens", &i64::MAX.to_string())]);
    let reasons: Vec<String> = serde_json::from_str(&fields["gen_ai.response.finish_reasons"]).unwrap();
    assert_eq!(reasons.len(), 128);
}

#[tokio::test]
async fn streams_span_lasts_as_long_as_the_stream_and_records_usage() {
    let spans = Spans::default();
    let listening = spans.listen();
    let chunks = [
        r#"{"id":"c1","model":"model-sol-2","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}"#,
        r#"{"id":"c1","model":"model-sol-2","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}"#,
        r#"{"id":"c1","model":"model-sol-2","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}"#,
        "[DONE]",
    ];
    let mut script = Script::events();
    for chunk in chunks {
        script = script.packet(format!("data: {chunk}\n\n"));
    }
    let server = Server::start([script.end()]).await;
    let client = client_with_events(&server);
    let mut stream = client.chat().completions().stream(&chat_request()).await.unwrap();
    assert!(spans.0.lock().unwrap().is_empty(), "it has not ended");
    while stream.try_next().await.unwrap().is_some() {}
    drop(stream);
    // The body is released concurrently with the reader.
    let ended = async {
        while spans.0.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    drop(listening);
    let fields = spans.only();
    assert_fields(
        &fields,
        &[
            ("gen_ai.request.stream", "true"),
            ("gen_ai.response.id", "c1"),
            ("gen_ai.response.finish_reasons", r#"["stop"]"#),
            ("gen_ai.usage.input_tokens", "3"),
            ("gen_ai.usage.output_tokens", "2"),
        ],
    );
    let first: f64 = fields["gen_ai.response.time_to_first_chunk"].parse().unwrap();
    assert!(first > 0.0 && first < 60.0, "{first}");
}

#[tokio::test]
async fn message_records_its_tokens_including_cached_ones_streamed_or_not() {
    let spans = Spans::default();
    let listening = spans.listen();
    let usage = r#"{"input_tokens":3,"cache_read_input_tokens":20,"cache_creation_input_tokens":100,"output_tokens":1}"#;
    let whole = format!(
        r#"{{"id":"m1","type":"message","model":"model-breeze-2","stop_reason":"end_turn","usage":{usage}}}"#
    );
    let started = format!(r#"{{"type":"message_start","message":{{"id":"m2","usage":{usage}}}}}"#);
    let settled =
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}"#;
    let mut script = Script::events();
    for event in [started.as_str(), settled, r#"{"type":"message_stop"}"#] {
        script = script.packet(format!("data: {event}\n\n"));
    }
    let server = Server::start([Script::json(&whole), script.end()]).await;
    let client = client_with_events(&server);
    let body = r#"{"model":"model-breeze","max_tokens":9,"messages":[],"top_k":4,"stop_sequences":["."],"stream":true}"#;
    let call = || Call::new(&operations::CREATE_MESSAGE).body(body);
    client.call(call()).await.unwrap();
    let mut stream = client.open(call()).await.unwrap();
    while stream.next_batch().await.unwrap().is_some() {}
    drop(stream);
    let ended = async {
        while spans.0.lock().unwrap().len() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.unwrap();
    drop(listening);
    let spans = spans.0.lock().unwrap();
    assert_fields(
        &spans[0],
        &[
            ("otel.name", "chat model-breeze"),
            ("gen_ai.request.max_tokens", "9"),
            ("gen_ai.request.top_k", "4"),
            ("gen_ai.request.stop_sequences", r#"["."]"#),
            ("gen_ai.response.id", "m1"),
            ("gen_ai.response.model", "model-breeze-2"),
            ("gen_ai.response.finish_reasons", r#"["end_turn"]"#),
            ("gen_ai.usage.input_tokens", "123"),
            ("gen_ai.usage.output_tokens", "1"),
            ("gen_ai.usage.cache_read.input_tokens", "20"),
        ],
    );
    assert_fields(
        &spans[1],
        &[
            ("gen_ai.response.id", "m2"),
            ("gen_ai.response.finish_reasons", r#"["tool_use"]"#),
            ("gen_ai.usage.input_tokens", "123"),
            ("gen_ai.usage.output_tokens", "7"),
        ],
    );
}

#[tokio::test]
async fn failure_is_recorded_by_its_kind() {
    let spans = Spans::default();
    let listening = spans.listen();
    let server = Server::start([Script::whole(429, &[("x-should-retry", "false")], "{}")]).await;
    client_with_events(&server).call(chat_call()).await.unwrap_err();
    drop(listening);
    assert_fields(
        &spans.only(),
        &[
            ("attempts", "1"),
            ("error.type", "rate_limit"),
            ("otel.status_code", "ERROR"),
            ("http.response.status_code", "429"),
        ],
    );
}
