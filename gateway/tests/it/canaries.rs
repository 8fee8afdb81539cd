//! Keys of clients, operators and providers, and what a provider echoes of them, appear in no error, no log line,
//! no metric, no trace, and no file of the data folder.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use gatewright_gateway::{ApiKey, Config, ModelConfig, TargetConfig, Traces};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use crate::callers::Protocol;
use crate::support::{KEY, Server, files_of, read, send, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, UPSTREAM_KEY, answer, upstream};

const ADMIN: &str = "gw-admin-canary-77";
/// A key that this gateway doesn't know.
const STRANGER: &str = "gw-stranger-canary-13";

/// Maximum number of requests to an upstream; each has its own model, so that no breaker opens.
const MOST: usize = 1500;

/// Everything that any crate logs or records in a span.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn note(&self, what: impl Fn(&mut Self)) {
        what(&mut self.clone());
    }
}

impl Visit for Log {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let mut log = self.0.lock().expect("no panic");
        writeln!(log, "{}={value:?}", field.name()).expect("written");
    }
}

impl<S: tracing::Subscriber> Layer<S> for Log {
    fn on_new_span(&self, span: &tracing::span::Attributes<'_>, _: &tracing::Id, _: Context<'_, S>) {
        self.note(|log| span.record(log));
    }

    fn on_record(&self, _: &tracing::Id, values: &tracing::span::Record<'_>, _: Context<'_, S>) {
        self.note(|log| values.record(log));
    }

    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        self.note(|log| event.record(log));
    }
}

/// Text that would reveal a key: its end, in any encoding.
fn betrays(text: &[u8]) -> Option<String> {
    for key in [KEY, UPSTREAM_KEY, ADMIN, STRANGER] {
        let mut spellings =
            vec![key.to_owned(), key.to_uppercase(), key.replace('-', "%2D"), key.replace('-', "\\u002d")];
        // In base64, without the characters that depend on the alignment.
        let in_base64 = base64(key);
        spellings.push(in_base64[..in_base64.len() - 2].to_owned());
        for spelling in spellings {
            // Without the prefix, which reveals nothing.
            let inner = spelling.trim_start_matches("gw-").trim_start_matches("sk-").as_bytes();
            if let Some(at) = memchr::memmem::find(text, inner) {
                let around = &text[at.saturating_sub(80)..(at + 80).min(text.len())];
                return Some(format!("{spelling}: {}", String::from_utf8_lossy(around)));
            }
        }
    }
    None
}

fn base64(text: &str) -> String {
    use base64::Engine as _;

    base64::engine::general_purpose::STANDARD.encode(text)
}

/// Ways in which an upstream could pass the gateway's key to the client; each contains the key.
fn echoes(protocol: Protocol, stream: bool) -> Vec<Vec<Step>> {
    let key = UPSTREAM_KEY;
    let mut escaped = String::new();
    for letter in key.chars() {
        write!(escaped, "\\u{:04x}", u32::from(letter)).expect("written");
    }
    let percent = key.replace('-', "%2D");
    let in_base64 = base64(key);
    let mut echoes = Vec::new();
    let mut errors = Vec::new();
    for text in [key, &percent, &in_base64, &format!("Bearer {key}"), &format!("{key}\n\u{1b}[31m{key}")] {
        errors.push(
            json!({"error": {"message": text, "type": text, "code": text, "param": text, "status": text}})
                .to_string(),
        );
        errors.push(
            json!({"type": "error", "error": {"type": text, "message": text}, "request_id": text})
                .to_string(),
        );
        errors.push(
            json!({"error": {"code": 400, "message": text, "status": text, "details": [{"reason": text}]}})
                .to_string(),
        );
        errors.push(json!({"message": text, "detail": text, "errors": [text]}).to_string());
        errors.push(json!(text).to_string());
        errors.push(format!("<html>{text}</html>"));
    }
    errors.push(format!(r#"{{"error": {{"message": "{escaped}", "code": "{escaped}"}}}}"#));
    for status in [302, 400, 401, 403, 404, 429, 500, 503] {
        for error in &errors {
            let length = error.len();
            let head = format!(
                "HTTP/1.1 {status} {key}\r\ncontent-type: application/json\r\nlocation: http://127.0.0.1:1/{key}\r\n\
                 retry-after: {key}\r\nx-request-id: {key}\r\nset-cookie: key={key}\r\nwww-authenticate: {key}\r\n\
                 content-length: {length}\r\n\r\n{error}"
            );
            echoes.push(vec![Step::Write(head.into())]);
        }
    }
    // Invalid responses that contain the key.
    echoes.push(vec![Step::Write(answer(200, key, key))]);
    echoes.push(vec![Step::Write(answer(200, "application/json", &format!("{{\"{key}\": {key}")))]);
    echoes.push(vec![Step::Write(format!("HTTP/1.1 200 OK\r\n{key}\r\n\r\n").into()), Step::Close]);
    echoes.push(vec![Step::Write(format!("{key} 200 OK\r\n\r\n").into()), Step::Close]);
    echoes.push(vec![
        Step::Write(format!("HTTP/1.1 200 OK\r\ncontent-encoding: {key}\r\n\r\n{key}").into()),
        Step::Close,
    ]);
    if stream {
        // At the beginning of a stream, and in the middle.
        let events = protocol.events();
        let ends: Vec<usize> = events.match_indices("\n\n").map(|(at, _)| at + 2).collect();
        let cut = ends[(ends.len() - 1) / 2];
        for error in errors.iter().filter(|error| error.contains("\"error\"")) {
            for started in ["", &events[..cut]] {
                for name in ["", "event: error\n", "event: response.failed\n"] {
                    let text = format!("{STREAM_HEAD}{started}{name}data: {error}\n\n");
                    echoes.push(vec![Step::Write(text.into()), Step::Close]);
                }
            }
        }
    }
    echoes
}

/// Sends a request; neither head nor body of the response may reveal a key.
async fn harmless(request: RequestBuilder, here: &str) -> u16 {
    let response = send(request).await;
    let status = response.status().as_u16();
    let head = format!("{:?}", response.headers());
    let body = response.bytes().await.expect("a body");
    for text in [head.as_bytes(), &body] {
        assert_eq!(betrays(text), None, "{here}: {status}");
    }
    status
}

/// A trace collector that keeps what is exported to it.
async fn collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let received: Arc<Mutex<Vec<u8>>> = Arc::default();
    let recorder = Arc::clone(&received);
    let app = Router::new().fallback(move |body: Bytes| {
        let recorder = Arc::clone(&recorder);
        async move { recorder.lock().expect("no panic").extend_from_slice(&body) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (url, received)
}

async fn start(folder: &std::path::Path, scripted: &Scripted) -> Server {
    let mut config = Config {
        data: Some(folder.to_path_buf()),
        admin_key: Some(ApiKey::new(ADMIN).expect("a key")),
        open_metrics: true,
        upstreams: Vec::new(),
        models: Vec::new(),
        ..Config::default()
    };
    for protocol in Protocol::ALL {
        config.upstreams.push(upstream(protocol.name(), protocol.kind(), &scripted.url));
    }
    for number in 0..MOST {
        for protocol in Protocol::ALL {
            let id = format!("{}-{number}", protocol.name());
            let mut model = ModelConfig::new(id, "family_one", TargetConfig::new(protocol.name(), "theirs"));
            model.translate_responses = true;
            config.models.push(model);
        }
    }
    start_with(config).await
}

/// Every client calls every upstream, which echoes the key in every way.
async fn provoke(server: &Server, scripted: &Scripted) {
    for speaks in Protocol::ALL {
        let mut number = 0;
        for client in Protocol::ALL {
            for stream in [false, true] {
                // Clients of other protocols get these errors through the same code, so some of them suffice.
                let step = if client == speaks { 1 } else { 7 };
                for steps in echoes(speaks.spoken_for(client), stream).into_iter().step_by(step) {
                    let here = format!("{client:?} at {speaks:?}, stream: {stream}, way {number}");
                    scripted.then(steps);
                    let (path, body) = client.request(&format!("{}-{number}", speaks.name()), stream);
                    harmless(server.post(&path, &body), &here).await;
                    number += 1;
                    assert!(number < MOST);
                }
            }
        }
    }
}

/// Input of clients and unauthenticated callers is not echoed either.
async fn present_keys(server: &Server) {
    for key in [STRANGER, UPSTREAM_KEY, ADMIN] {
        for path in ["/v1/models", "/v1beta/models", "/admin/keys", "/nothing", "/v1/messages"] {
            for name in ["authorization", "x-api-key", "x-goog-api-key"] {
                let value = if name == "authorization" { format!("Bearer {key}") } else { key.to_owned() };
                harmless(server.bare(Method::GET, path).header(name, value), path).await;
            }
            harmless(server.bare(Method::GET, &format!("{path}?key={key}")), path).await;
        }
    }
    for path in [format!("/v1beta/models?key={KEY}"), format!("/v1/models?key={KEY}")] {
        assert_eq!(harmless(server.bare(Method::GET, &path), &path).await, 200);
    }
}

#[tokio::test]
async fn no_key_leaks_into_errors_logs_metrics_traces_or_files() {
    let (collector, exported) = collector().await;
    let traces = tokio::task::spawn_blocking(move || Traces::to(&collector).expect("an exporter"));
    let traces = traces.await.expect("no panic");
    let log = Log::default();
    let subscriber = tracing_subscriber::registry().with(log.clone()).with(traces.layer());
    tracing::subscriber::set_global_default(subscriber).expect("the only log of the process");

    let folder = tempfile::tempdir().expect("a folder");
    let scripted = Scripted::start([]).await;
    let server = start(folder.path(), &scripted).await;
    let new = json!({"name": "ci"});
    let (_, issued) = read(server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new)).await;
    let secret = issued["secret"].as_str().expect("a secret").to_owned();
    assert_eq!(send(server.bare(Method::GET, "/v1/models").bearer_auth(&secret)).await.status(), 200);
    provoke(&server, &scripted).await;
    present_keys(&server).await;
    for path in ["/metrics", "/admin/upstreams", "/admin/usage", "/admin/keys"] {
        let request = server.bare(Method::GET, path).bearer_auth(ADMIN);
        assert_eq!(harmless(request, path).await, 200, "{path}");
    }
    // The upstream did receive its key, and the gateway did log.
    let seen = scripted.seen();
    assert!(seen.len() > 1000 && seen.iter().any(|seen| format!("{seen:?}").contains(UPSTREAM_KEY)));
    assert!(!seen.iter().any(|seen| format!("{seen:?}").contains(KEY)), "an upstream got a client's key");
    let logged = std::mem::take(&mut *log.0.lock().expect("no panic"));
    assert!(logged.contains("answered") && logged.contains("an attempt failed"));
    assert_eq!(betrays(logged.as_bytes()), None, "in the log");
    assert!(!logged.contains(&secret), "an issued key is in the log");

    drop(server);
    tokio::task::spawn_blocking(move || traces.end()).await.expect("no panic");
    let exported = exported.lock().expect("no panic");
    let has = |text: &str| exported.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("gen_ai.request.model") && has("gatewright.upstream"), "nothing was exported");
    assert_eq!(betrays(&exported), None, "in the traces");
    assert!(!has(&secret), "an issued key is in the traces");
    for file in files_of(folder.path()) {
        let bytes = std::fs::read(&file).expect("a file");
        assert_eq!(betrays(&bytes), None, "in {file:?}");
        assert!(!bytes.windows(secret.len()).any(|part| part == secret.as_bytes()), "{file:?}");
    }
}

#[test]
fn leak_search_finds_a_key_in_each_encoding() {
    for text in [KEY.to_owned(), UPSTREAM_KEY.to_uppercase(), format!("x{}y", base64(ADMIN))] {
        assert!(betrays(text.as_bytes()).is_some(), "{text}");
    }
    let harmless: Value = json!({"error": {"message": "[redacted] is used up"}});
    assert_eq!(betrays(harmless.to_string().as_bytes()), None);
}
