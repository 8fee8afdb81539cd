//! A gateway on a free port, and a plain HTTP client instead of our own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Gateway};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::operator_api;

/// The key of every gateway in these tests; no response may contain it.
pub(crate) const KEY: &str = "gw-canary-4f2a";

/// Step width of exhaustive tests: 1 if `GATEWRIGHT_EVERY_STEP` is set, as in the nightly run, or else `few`.
pub(crate) fn stride(few: usize) -> usize {
    if std::env::var_os("GATEWRIGHT_EVERY_STEP").is_some() { 1 } else { few }
}

/// A running gateway; it stops when dropped.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) webhook_secret: String,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

/// Starts a gateway with the defaults, except for fast videos.
pub(crate) async fn start() -> Server {
    start_with(Config::default()).await
}

pub(crate) async fn start_with(config: Config) -> Server {
    start_as(Config { video_time: Duration::from_millis(300), ..config }).await
}

/// Like [`start_with`], but with the configured video time.
pub(crate) async fn start_as(config: Config) -> Server {
    // Another test of this process may have installed it first.
    _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        ..config
    };
    let gateway = Gateway::bind(config).await.expect("a free port");
    let url = gateway.url();
    let webhook_secret = gateway.webhook_secret().expose();
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    Server { url, webhook_secret, client, _stop: stop }
}

impl Server {
    /// A request without a key.
    pub(crate) fn bare(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.url))
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.bare(Method::GET, path).bearer_auth(KEY)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> RequestBuilder {
        self.bare(Method::POST, path).bearer_auth(KEY).json(body)
    }

    /// Posts and expects success.
    pub(crate) async fn ask(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = read(self.post(path, body)).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Posts and returns status and body.
    pub(crate) async fn refused(&self, path: &str, body: &Value) -> (u16, Value) {
        read(self.post(path, body)).await
    }

    /// Posts and reads the events to the end.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Vec<Event> {
        let response = send(self.post(path, body)).await;
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().expect("ASCII").to_owned();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        events(&response.text().await.expect("a whole body"))
    }
}

pub(crate) async fn send(request: RequestBuilder) -> Response {
    request.send().await.expect("an answer")
}

/// Sends and reads a JSON body. No response may contain the key.
pub(crate) async fn read(request: RequestBuilder) -> (u16, Value) {
    let (client, request) = request.build_split();
    let request = request.expect("a request");
    let (method, path) = (request.method().clone(), request.url().path().to_owned());
    let response = client.execute(request).await.expect("an answer");
    let status = response.status().as_u16();
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.headers()["content-type"], "application/json");
    let body = response.text().await.expect("a body");
    assert!(!body.contains(KEY), "{body}");
    let body = serde_json::from_str(&body).expect("JSON");
    operator_api::check_response(&method, &path, status, &body);
    (status, body)
}

/// The files of a data folder, including generated files.
pub(crate) fn files_of(data: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| std::fs::read_dir(folder).expect("a folder");
    let all = entries(data).chain(entries(&data.join("files")));
    all.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_file()).collect()
}

/// One event of a stream.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) name: Option<String>,
    pub(crate) data: String,
}

impl Event {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).expect("JSON data")
    }
}

pub(crate) fn events(text: &str) -> Vec<Event> {
    assert!(text.is_empty() || text.ends_with("\n\n"), "an unterminated event");
    let field = |block: &str, name: &str| {
        block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
    };
    text.split_terminator("\n\n")
        .map(|block| Event { name: field(block, "event"), data: field(block, "data").expect("a data line") })
        .collect()
}

/// Waits up to ten seconds until a condition is true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it did not become true");
}
