//! Scripted upstreams on real sockets, and gateways in front of them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Kind, ModelConfig, TargetConfig, UpstreamConfig};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};

/// The key of the upstreams; no client may see it.
pub(crate) const UPSTREAM_KEY: &str = "sk-upstream-canary-77";

/// What a scripted upstream does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Writes these bytes.
    Write(Vec<u8>),
    /// Writes these bytes repeatedly until the gateway closes the connection.
    Endless(Vec<u8>),
    Pause(Duration),
    /// Waits until the test closes the gate.
    Gate(Arc<Semaphore>),
    /// Resets the connection.
    Reset,
    /// Closes the connection.
    Close,
    /// Does nothing until the connection ends.
    Hang,
}

/// A request as the upstream received it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).expect("a path")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// How requests are answered.
type Script = Arc<dyn Fn(&Seen) -> Vec<Step> + Send + Sync>;

/// An upstream that answers each request with its next script, and later ones with the last script.
pub(crate) struct Scripted {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    next: Arc<Mutex<VecDeque<Vec<Step>>>>,
    /// When the gateway closed connections on which it hung.
    left: mpsc::UnboundedReceiver<Instant>,
}

impl Scripted {
    pub(crate) async fn start(script: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let next: Arc<Mutex<VecDeque<Vec<Step>>>> = Arc::new(Mutex::new(script.into_iter().collect()));
        let scripts = Arc::clone(&next);
        let scripted = Self::answering(move |_| {
            let mut scripts = scripts.lock().expect("no panic");
            let steps = if scripts.len() > 1 { scripts.pop_front() } else { scripts.front().cloned() };
            steps.unwrap_or_default()
        });
        Self { next, ..scripted.await }
    }

    /// An upstream whose answer depends on the request, so that concurrent requests are possible.
    pub(crate) async fn answering(script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let script: Script = Arc::new(script);
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (leaving, left) = mpsc::unbounded_channel();
        let requests = Arc::clone(&seen);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (script, requests, leaving) =
                    (Arc::clone(&script), Arc::clone(&requests), leaving.clone());
                tokio::spawn(serve(socket, script, requests, leaving));
            }
        });
        Self { url, seen, next: Arc::default(), left }
    }

    /// The requests received so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().expect("no panic").len()
    }

    /// Appends a script.
    pub(crate) fn then(&self, steps: Vec<Step>) {
        let mut next = self.next.lock().expect("no panic");
        next.clear();
        next.push_back(steps);
    }

    /// When the gateway abandoned a connection.
    pub(crate) async fn left(&mut self) -> Instant {
        let left = tokio::time::timeout(Duration::from_secs(5), self.left.recv()).await;
        left.expect("the upstream was not cancelled").expect("it runs")
    }
}

async fn serve(
    mut socket: TcpStream,
    script: Script,
    seen: Arc<Mutex<Vec<Seen>>>,
    left: mpsc::UnboundedSender<Instant>,
) {
    socket.set_nodelay(true).expect("set");
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut socket, &mut buffer).await {
        let steps = script(&request);
        seen.lock().expect("no panic").push(request);
        for step in steps {
            match step {
                Step::Write(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        _ = left.send(Instant::now());
                        return;
                    }
                }
                Step::Endless(bytes) => {
                    while socket.write_all(&bytes).await.is_ok() {}
                    _ = left.send(Instant::now());
                    return;
                }
                Step::Pause(time) => {
                    let mut scrap = [0; 1];
                    tokio::select! {
                        () = tokio::time::sleep(time) => {}
                        _ = socket.read(&mut scrap) => {
                            _ = left.send(Instant::now());
                            return;
                        }
                    }
                }
                Step::Gate(gate) => {
                    let mut scrap = [0; 1];
                    tokio::select! {
                        _ = gate.acquire() => {}
                        _ = socket.read(&mut scrap) => {
                            _ = left.send(Instant::now());
                            return;
                        }
                    }
                }
                Step::Reset => {
                    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("set");
                    return;
                }
                Step::Close => return,
                Step::Hang => {
                    // The gateway sends nothing more: this returns when the connection closes.
                    _ = socket.read(&mut [0; 1]).await;
                    _ = left.send(Instant::now());
                    return;
                }
            }
        }
    }
}

pub(crate) async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(buffer[..head].to_vec()).expect("ASCII");
    let mut lines = text.lines();
    let line = lines.next().expect("a request line").to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length").map(|(_, value)| value.parse());
    let end = head + 4 + length.and_then(Result::ok).unwrap_or(0);
    while buffer.len() < end {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(buffer[head + 4..end].to_vec()).expect("text");
    buffer.drain(..end);
    Some(Seen { line, headers, body })
}

/// A response with a body of this type.
pub(crate) fn answer(status: u16, media_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}")
        .into()
}

pub(crate) fn json_answer(status: u16, body: &Value) -> Vec<Step> {
    vec![Step::Write(answer(status, "application/json", &body.to_string()))]
}

/// The head of a stream delimited by the end of the connection.
pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// A complete stream, after which the connection closes.
pub(crate) fn stream(events: &str) -> Vec<Step> {
    vec![Step::Write(format!("{STREAM_HEAD}{events}").into()), Step::Close]
}

/// A response of the messages protocol.
pub(crate) fn message() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-1", "stop_reason": "end_turn",
        "stop_sequence": null, "content": [{ "type": "text", "text": "hello" }],
        "usage": { "input_tokens": 3, "output_tokens": 2 },
    })
}

/// The same response as events.
pub(crate) fn message_events() -> Vec<Value> {
    let mut started = message();
    started["content"] = json!([]);
    started["stop_reason"] = Value::Null;
    vec![
        json!({ "type": "message_start", "message": started }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "hello" } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null },
            "usage": { "output_tokens": 2 } }),
        json!({ "type": "message_stop" }),
    ]
}

/// A chat completion of the model that the upstream calls `theirs`.
pub(crate) fn completion(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "theirs", "future": {"a": [1e0]},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "refusal": null},
            "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    })
}

/// The same completion as the events of a stream, with usage.
pub(crate) fn chunks(texts: &[&str]) -> String {
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "theirs",
            "choices": choices, "usage": usage, "future": 1});
        format!("data: {chunk}\n\n")
    };
    let mut events: String = texts
        .iter()
        .map(|text| {
            chunk(json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]), Value::Null)
        })
        .collect();
    events += &chunk(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]), Value::Null);
    events += &chunk(json!([]), json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}));
    events + "data: [DONE]\n\n"
}

pub(crate) fn upstream(name: &str, kind: Kind, url: &str) -> UpstreamConfig {
    let mut upstream = UpstreamConfig::new(name, kind, url);
    upstream.keys = vec![ApiKey::new(UPSTREAM_KEY).expect("a key")];
    upstream
}

/// A configuration with the model `mine` at these upstreams, tried in this order.
pub(crate) fn config(upstreams: Vec<UpstreamConfig>) -> Config {
    let mut model =
        ModelConfig::new("mine", "family_one", TargetConfig::new(upstreams[0].name.clone(), "theirs"));
    model.targets = (0..)
        .zip(&upstreams)
        .map(|(order, upstream)| {
            let mut target = TargetConfig::new(upstream.name.clone(), "theirs");
            target.order = order;
            target
        })
        .collect();
    Config { upstreams, models: vec![model], ..Config::default() }
}

/// A chat request.
pub(crate) fn question(stream: bool) -> Value {
    json!({"model": "mine", "messages": [{"role": "user", "content": "hi"}], "stream": stream})
}
