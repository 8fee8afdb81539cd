//! Traces over OTLP: the spans of requests, as a collector receives them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use gatewright_gateway::{ApiKey, Config, Kind, Traces};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tracing_subscriber::layer::SubscriberExt as _;

use crate::callers::Protocol;
use crate::fault_matrix::well;
use crate::support::{KEY, Server, send, start_with};
use crate::upstreams::{
    STREAM_HEAD, Scripted, Step, chunks, completion, config, json_answer, question, stream, upstream,
};

/// Status `code` of a failed span.
const ERROR: u64 = 2;
/// Span `kind` of a server, and of a client.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// A trace and a span of a client of the gateway.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// An exported span.
#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    kind: u64,
    status: u64,
    attributes: BTreeMap<String, Value>,
}

/// A field of a protobuf message.
#[derive(Debug, Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { panic!("{self:?}") }
    }

    fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { panic!("{self:?}") }
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).expect("text")
    }
}

/// The fields of a protobuf message with their numbers.
fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(message: &mut &[u8]) -> u64 {
        let end = message.iter().position(|byte| byte & 0x80 == 0).expect("an end");
        let (digits, rest) = message.split_at(end + 1);
        *message = rest;
        digits.iter().rev().fold(0, |number, digit| number << 7 | u64::from(digit & 0x7f))
    }
    let mut fields = Vec::new();
    while !message.is_empty() {
        let tag = varint(&mut message);
        let length = match tag & 7 {
            0 => {
                fields.push((tag >> 3, Field::Number(varint(&mut message))));
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)).expect("a length"),
            5 => 4,
            other => panic!("wire type {other}"),
        };
        let (bytes, rest) = message.split_at(length);
        message = rest;
        fields.push((tag >> 3, Field::Bytes(bytes)));
    }
    fields
}

/// The values of a field.
fn all(message: &[u8], number: u64) -> impl Iterator<Item = Field<'_>> {
    fields(message).into_iter().filter_map(move |(own, field)| (own == number).then_some(field))
}

/// An `AnyValue` of the protocol.
fn any_value(message: &[u8]) -> Value {
    let [(number, field)] = fields(message)[..] else { panic!("one value") };
    match number {
        1 => json!(field.text()),
        2 => json!(field.number() != 0),
        3 => json!(field.number().cast_signed()),
        4 => json!(f64::from_le_bytes(field.bytes().try_into().expect("eight bytes"))),
        5 => all(field.bytes(), 1).map(|value| any_value(value.bytes())).collect(),
        other => panic!("a value of kind {other}"),
    }
}

/// The spans of an `ExportTraceServiceRequest`.
fn spans(request: &[u8]) -> Vec<Span> {
    let scopes = all(request, 1).flat_map(|resource| all(resource.bytes(), 2).collect::<Vec<_>>());
    let spans = scopes.flat_map(|scope| all(scope.bytes(), 2).collect::<Vec<_>>());
    let span = |span: Field<'_>| {
        let span = span.bytes();
        let attribute = |attribute: Field<'_>| {
            let [name, value] = [1, 2].map(|number| all(attribute.bytes(), number).next().expect("a field"));
            (name.text(), any_value(value.bytes()))
        };
        let attributes: Vec<_> = all(span, 9).map(attribute).collect();
        let count = attributes.len();
        let attributes = BTreeMap::from_iter(attributes);
        assert_eq!(attributes.len(), count, "duplicate attribute: {attributes:?}");
        let status = all(span, 15).find_map(|status| all(status.bytes(), 3).next());
        let hex = |number| {
            let bytes = all(span, number).next().map_or_else(Vec::new, |id| id.bytes().to_vec());
            bytes
                .iter()
                .flat_map(|byte| [byte >> 4, byte & 15])
                .filter_map(|digit| char::from_digit(digit.into(), 16))
                .collect()
        };
        Span {
            trace: hex(1),
            id: hex(2),
            parent: hex(4),
            name: all(span, 5).next().expect("a name").text(),
            kind: all(span, 6).next().expect("a kind").number(),
            status: status.map_or(0, Field::number),
            attributes,
        }
    };
    spans.map(span).collect()
}

impl Span {
    /// Asserts that attributes have these values; null means absent.
    fn has_attributes(&self, expected: &Value) {
        for (name, value) in expected.as_object().expect("attributes") {
            assert_eq!(self.attributes.get(name).unwrap_or(&Value::Null), value, "{name} of {self:#?}");
        }
    }
}

/// A gateway in front of an upstream, which exports traces to a collector.
struct Traced {
    server: Server,
    traces: Traces,
    exported: Arc<Mutex<Vec<Span>>>,
    /// While it is alive, this thread records traces; the gateway runs on this thread only.
    _subscriber: tracing::subscriber::DefaultGuard,
}

impl Traced {
    async fn start(upstream_url: &str) -> Self {
        Self::with(config(vec![upstream("one", Kind::Chat, upstream_url)])).await
    }

    async fn with(config: Config) -> Self {
        let exported: Arc<Mutex<Vec<Span>>> = Arc::default();
        let keeps = Arc::clone(&exported);
        let collector = Router::new().fallback(move |body: Bytes| {
            let keeps = Arc::clone(&keeps);
            async move { keeps.lock().expect("no panic").extend(spans(&body)) }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, collector).await });
        let traces = tokio::task::spawn_blocking(move || Traces::to(&url).expect("an exporter"));
        let traces = traces.await.expect("no panic");
        let subscriber = tracing_subscriber::registry().with(traces.layer());
        let subscriber = tracing::subscriber::set_default(subscriber);
        let server = start_with(config).await;
        Self { server, traces, exported, _subscriber: subscriber }
    }

    /// Requests a chat completion and reads the response to the end.
    async fn ask(&self, body: &Value) -> (u16, String) {
        let response = send(self.server.post("/v1/chat/completions", body)).await;
        (response.status().as_u16(), response.text().await.expect("a body"))
    }

    /// Sends a request as a client with its own trace.
    async fn ask_in_a_trace(&self, client: Protocol, stream: bool) {
        let (path, body) = client.request("mine", stream);
        let request = self.server.post(&path, &body).header("traceparent", format!("00-{TRACE}-{CALLER}-01"));
        let response = send(request).await;
        assert_eq!(response.status(), 200, "{client:?}");
        response.text().await.expect("a body");
    }

    /// The server spans of all requests, in order.
    async fn requests(self) -> Vec<Span> {
        self.end().await.into_iter().filter(|span| span.kind == SERVER).collect()
    }

    /// All spans, ordered by their end.
    async fn end(self) -> Vec<Span> {
        drop(self.server);
        tokio::task::spawn_blocking(move || self.traces.end()).await.expect("no panic");
        std::mem::take(&mut self.exported.lock().expect("no panic"))
    }
}

#[tokio::test]
async fn span_of_an_answer_has_provider_model_and_finish_reason() {
    let scripted = Scripted::start([json_answer(200, &completion("well"))]).await;
    let traced = Traced::start(&scripted.url).await;
    let mut body = question(false);
    (body["max_tokens"], body["temperature"], body["n"]) = (json!(9), json!(1), json!(1));
    body["response_format"] = json!({"type": "json_object"});
    assert_eq!(traced.ask(&body).await.0, 200);
    let [span] = &traced.requests().await[..] else { panic!("one span") };
    assert_eq!((&*span.name, span.kind, span.status), ("chat mine", SERVER, 0));
    span.has_attributes(&json!({
        "http.request.method": "POST",
        "http.route": "/v1/chat/completions",
        "http.response.status_code": 200,
        "url.path": "/v1/chat/completions",
        "url.scheme": "http",
        "server.address": "127.0.0.1",
        "server.port": url::Url::parse(&scripted.url).expect("a URL").port(),
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "one",
        "gen_ai.request.model": "mine",
        "gen_ai.request.stream": null,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 1.0,
        "gen_ai.request.choice.count": null,
        "gen_ai.output.type": "json",
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.model": "theirs",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": null,
        "gen_ai.usage.input_tokens": 3,
        "gen_ai.usage.output_tokens": 2,
        "gen_ai.usage.cache_read.input_tokens": null,
        "gatewright.upstream": "one",
        "gatewright.outcome": "complete",
        "error.type": null,
    }));
}

#[tokio::test]
async fn span_of_a_stream_has_its_time_to_first_chunk() {
    let scripted = Scripted::start([stream(&chunks(&["we", "ll"]))]).await;
    let traced = Traced::start(&scripted.url).await;
    assert_eq!(traced.ask(&question(true)).await.0, 200);
    let [span] = &traced.requests().await[..] else { panic!("one span") };
    assert_eq!((&*span.name, span.status), ("chat mine", 0));
    span.has_attributes(&json!({
        "gen_ai.provider.name": "one",
        "gen_ai.request.stream": true,
        "gen_ai.output.type": null,
        "gen_ai.response.id": "chatcmpl-1",
        "gen_ai.response.finish_reasons": ["stop"],
        "error.type": null,
    }));
    let waited = span.attributes["gen_ai.response.time_to_first_chunk"].as_f64().expect("seconds");
    assert!((0.0..30.0).contains(&waited), "{waited}");
}

#[tokio::test]
async fn span_of_a_failure_has_its_error_type_even_mid_stream() {
    let started = chunks(&["we", "ll"]);
    let started = &started[..started.match_indices("data: ").nth(1).expect("a second event").0];
    let scripted = Scripted::start([
        vec![Step::Write(format!("{STREAM_HEAD}{started}").into()), Step::Reset],
        json_answer(500, &json!({"error": {"message": "broken", "code": "a-code-of-theirs"}})),
    ])
    .await;
    let traced = Traced::start(&scripted.url).await;
    let (status, broken) = traced.ask(&question(true)).await;
    assert_eq!(status, 200, "{broken}");
    let (failed, answer) = traced.ask(&question(false)).await;
    assert_eq!(failed, 500, "{answer}");
    let (refused, answer) = traced.ask(&json!({"model": "mine"})).await;
    assert_eq!(refused, 400, "{answer}");
    let [stream, failure, refusal] = &traced.requests().await[..] else { panic!("three spans") };
    assert_eq!([stream.status, failure.status, refusal.status], [ERROR, ERROR, 0]);
    stream.has_attributes(&json!({
        "http.response.status_code": 200,
        "gen_ai.request.stream": true,
        "gen_ai.provider.name": "one",
        "error.type": "upstream_error",
    }));
    // An arbitrary upstream code is not used as an error type.
    failure.has_attributes(&json!({
        "http.response.status_code": 500,
        "gen_ai.provider.name": "one",
        "gen_ai.request.model": "mine",
        "server.address": "127.0.0.1",
        "error.type": "500",
    }));
    refusal.has_attributes(&json!({ "http.response.status_code": 400, "error.type": "invalid_value" }));
}

/// An upstream that answers in the protocol of the request.
async fn answering() -> Scripted {
    Scripted::answering(|seen| {
        let stream = seen.header("accept") == Some("text/event-stream");
        well(Protocol::of(seen), stream)
    })
    .await
}

#[tokio::test]
async fn each_attempt_is_a_client_span_propagated_if_configured() {
    for client in Protocol::ALL {
        for stream in [false, true] {
            let failing = Scripted::start([json_answer(500, &json!({"error": {"message": "no"}}))]).await;
            let working = answering().await;
            let mut upstreams = ["one", "two"].map(|name| {
                let url = if name == "one" { &failing.url } else { &working.url };
                upstream(name, client.kind(), url)
            });
            upstreams[1].traceparent = Some(true);
            let traced = Traced::with(config(upstreams.to_vec())).await;
            traced.ask_in_a_trace(client, stream).await;
            let spans = traced.end().await;
            let here = format!("{client:?}, stream: {stream}: {spans:#?}");
            let [failed, helped, request] = &spans[..] else { panic!("three spans: {here}") };
            assert_eq!((request.kind, &*request.parent), (SERVER, CALLER), "{here}");
            let operation = request.attributes["gen_ai.operation.name"].as_str().expect("a name");
            for (attempt, name, status) in [(failed, "one", ERROR), (helped, "two", 0)] {
                assert_eq!((attempt.kind, attempt.status), (CLIENT, status), "{here}");
                assert_eq!(attempt.name, format!("{operation} theirs"), "{here}");
                assert_eq!((&*attempt.trace, &attempt.parent), (TRACE, &request.id), "{here}");
                attempt.has_attributes(&json!({
                    "gen_ai.operation.name": operation,
                    "gen_ai.provider.name": name,
                    "gen_ai.request.model": "theirs",
                    "gen_ai.request.stream": stream.then_some(true),
                    "gatewright.upstream": name,
                    "server.address": "127.0.0.1",
                }));
            }
            failed
                .has_attributes(&json!({ "error.type": "upstream_error", "http.response.status_code": 500 }));
            helped.has_attributes(&json!({
                "error.type": null,
                "gen_ai.usage.input_tokens": 3,
                "gen_ai.usage.output_tokens": 2,
            }));
            let (unaware, aware) = (&failing.seen()[0], &working.seen()[0]);
            assert_eq!(unaware.header("traceparent"), None, "{here}");
            let parent = format!("00-{TRACE}-{}-01", helped.id);
            assert_eq!(aware.header("traceparent"), Some(&*parent), "{here}");
        }
    }
}

#[tokio::test]
async fn chained_gateways_share_one_trace() {
    for client in Protocol::ALL {
        let provider = answering().await;
        let mut inner = config(vec![upstream("provider", Kind::Chat, &provider.url)]);
        inner.models[0].id = "theirs".to_owned();
        inner.models[0].translate_responses = true;
        let inner = start_with(inner).await;
        let mut gateway = upstream("inner", Kind::Gatewright, &inner.url);
        gateway.keys = vec![ApiKey::new(KEY).expect("a key")];
        let traced = Traced::with(config(vec![gateway])).await;
        traced.ask_in_a_trace(client, false).await;
        traced.ask_in_a_trace(client, true).await;
        let spans = traced.end().await;
        assert_eq!(spans.len(), 8, "{client:?}: {spans:#?}");
        let child = |parent: &str| spans.iter().filter(|span| span.parent == parent).collect::<Vec<_>>();
        let requests = child(CALLER);
        assert_eq!(requests.len(), 2, "{client:?}: {spans:#?}");
        for request in requests {
            let (mut at, mut chain) = (request, vec![request.kind]);
            while let [next] = child(&at.id)[..] {
                at = next;
                chain.push(at.kind);
            }
            assert_eq!(chain, [SERVER, CLIENT, SERVER, CLIENT], "{client:?}: {spans:#?}");
        }
        assert!(spans.iter().all(|span| span.trace == TRACE), "{client:?}: {spans:#?}");
        // A provider gets no trace headers.
        assert!(provider.seen().iter().all(|seen| seen.header("traceparent").is_none()));
    }
}

#[tokio::test]
async fn traceparent_is_not_forwarded_without_tracing() {
    let working = answering().await;
    let mut provider = upstream("one", Kind::Gatewright, &working.url);
    provider.traceparent = Some(true);
    let server = start_with(config(vec![provider])).await;
    for client in Protocol::ALL {
        let (path, body) = client.request("mine", true);
        let request = server.post(&path, &body).header("traceparent", format!("00-{TRACE}-{CALLER}-01"));
        assert_eq!(send(request).await.status(), 200);
    }
    for seen in working.seen() {
        assert_eq!((seen.header("traceparent"), seen.header("tracestate")), (None, None));
    }
}
