//! What a stopping gateway completes, and what it cuts off (3, 6).

use std::sync::Arc;
use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Gateway, Kind};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

use crate::callers::{End, Protocol, TEXT, text_of};
use crate::support::{KEY, events};
use crate::upstreams::{STREAM_HEAD, Scripted, Seen, Step, answer, config, upstream};
use crate::webhooks::receiver;

const ADMIN: &str = "gw-admin-canary-77";
/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// A gateway, the sender that stops it, and a task that notifies `hook`.
async fn with_task(
    hook: &str,
    grace: Duration,
    video_time: Duration,
) -> (JoinHandle<Vec<String>>, oneshot::Sender<()>, Value) {
    // Another test of this process may have installed it first.
    _ = rustls::crypto::ring::default_provider().install_default();
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        key: Some(ApiKey::new(KEY).expect("a valid key")),
        allow_private_webhooks: true,
        shutdown_grace: grace,
        video_time,
        ..Config::default()
    };
    let gateway = Gateway::bind(config).await.expect("a free port");
    let url = gateway.url();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let body = json!({
        "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p", "webhook_url": hook,
    });
    let request = Client::new().post(format!("{url}/v1/videos/generations")).bearer_auth(KEY).json(&body);
    let task: Value = request.send().await.expect("an answer").json().await.expect("JSON");
    (serving, stop, task)
}

#[tokio::test]
async fn shutdown_completes_tasks_and_sends_their_notifications() {
    let (hook, mut received) = receiver(0).await;
    let (grace, video_time) = (Duration::from_mins(1), Duration::from_millis(500));
    let (serving, stop, task) = with_task(&hook, grace, video_time).await;
    stop.send(()).expect("the gateway runs");
    let unfinished = serving.await.expect("no panic");
    assert!(unfinished.is_empty(), "{unfinished:?}");
    // It has stopped, so all notifications have been sent.
    let (_, record) = received.try_recv().expect("a notification");
    let record: Value = serde_json::from_slice(&record).expect("JSON");
    assert_eq!((&record["id"], &record["status"]), (&task["id"], &json!("completed")));
}

#[tokio::test]
async fn tasks_unfinished_after_the_grace_period_are_returned() {
    let (hook, _received) = receiver(0).await;
    let (grace, video_time) = (Duration::from_millis(200), Duration::from_hours(1));
    let (serving, stop, task) = with_task(&hook, grace, video_time).await;
    stop.send(()).expect("the gateway runs");
    let unfinished = tokio::time::timeout(Duration::from_secs(30), serving).await.expect("it did not stop");
    assert_eq!(json!(unfinished.expect("no panic")), json!([task["id"]]));
}

/// A gateway with requests in progress that all wait for their upstreams.
struct Busy {
    url: String,
    serving: JoinHandle<Vec<String>>,
    stop: Option<oneshot::Sender<()>>,
    /// Closing it lets the upstreams continue.
    gate: Arc<Semaphore>,
    upstreams: Vec<Scripted>,
    clients: Vec<Waiting>,
}

/// A client that has sent its request and received the available part of the response.
struct Waiting {
    protocol: Protocol,
    stream: bool,
    socket: TcpStream,
    got: Vec<u8>,
    /// For messages.
    here: String,
}

/// An upstream's response that waits at the gate: a stream after its first text, a document before its first byte.
fn held(seen: &Seen, gate: &Arc<Semaphore>) -> Vec<Step> {
    let spoken = match seen.path() {
        path if path.ends_with("/chat/completions") => Protocol::Chat,
        path if path.ends_with("/responses") => Protocol::Responses,
        path if path.ends_with("/messages") => Protocol::Messages,
        _ => Protocol::Native,
    };
    let gate = Step::Gate(Arc::clone(gate));
    if seen.json()["stream"] != true && !seen.line.contains("streamGenerateContent") {
        return vec![gate, Step::Write(answer(200, "application/json", &spoken.answer().to_string()))];
    }
    let whole = spoken.events();
    let first = whole.find("hel").expect("the first text");
    let (started, rest) = whole.split_at(first + whole[first..].find("\n\n").expect("its end") + 2);
    vec![Step::Write(format!("{STREAM_HEAD}{started}").into()), gate, Step::Write(rest.into()), Step::Close]
}

async fn connect(url: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(url.trim_start_matches("http://")).await
}

impl Busy {
    /// Clients of all protocols call upstreams of all protocols, for a stream and for a unary response.
    async fn start(grace: Duration, data: &std::path::Path) -> Self {
        _ = rustls::crypto::ring::default_provider().install_default();
        let gate = Arc::new(Semaphore::new(0));
        let (mut upstreams, mut settings) = (Vec::new(), Config::default());
        (settings.upstreams, settings.models) = (Vec::new(), Vec::new());
        for speaks in Protocol::ALL {
            let held_by = Arc::clone(&gate);
            let scripted = Scripted::answering(move |seen| held(seen, &held_by)).await;
            let one = config(vec![upstream(speaks.name(), speaks.kind(), &scripted.url)]);
            settings.upstreams.extend(one.upstreams);
            for mut model in one.models {
                speaks.name().clone_into(&mut model.id);
                model.translate_responses = true;
                settings.models.push(model);
            }
            upstreams.push(scripted);
        }
        let gateway = Gateway::bind(Config {
            listen: vec!["127.0.0.1:0".to_owned()],
            key: Some(ApiKey::new(KEY).expect("a valid key")),
            shutdown_grace: grace,
            data: Some(data.to_path_buf()),
            ..settings
        });
        let gateway = gateway.await.expect("a free port");
        let url = gateway.url();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(gateway.serve(async {
            _ = stopped.await;
        }));
        let (stop, clients) = (Some(stop), Vec::new());
        let mut busy = Self { url, serving, stop, gate, upstreams, clients };
        for (at, speaks) in Protocol::ALL.into_iter().enumerate() {
            for protocol in Protocol::ALL {
                for stream in [false, true] {
                    busy.ask(protocol, speaks, stream).await;
                }
            }
            let called = async {
                while busy.upstreams[at].count() < 8 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            };
            tokio::time::timeout(PATIENCE, called).await.expect("the upstream is called");
        }
        busy
    }

    async fn ask(&mut self, protocol: Protocol, speaks: Protocol, stream: bool) {
        let (path, body) = protocol.request(speaks.name(), stream);
        let body = body.to_string();
        let mut socket = connect(&self.url).await.expect("a connection");
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.expect("sent");
        let here = format!("{protocol:?} at {speaks:?}, stream: {stream}");
        let mut got = Vec::new();
        while stream && !String::from_utf8_lossy(&got).contains("hel") {
            assert!(socket.read_buf(&mut got).await.expect("bytes") > 0, "{here}");
        }
        self.clients.push(Waiting { protocol, stream, socket, got, here });
    }

    /// Stops the gateway, and waits until it accepts no more connections.
    async fn stop(&mut self) {
        self.stop.take().expect("it runs").send(()).expect("the gateway runs");
        let closed = async {
            // Whether the signal or a connection comes first is undefined.
            while connect(&self.url).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, closed).await.expect("new connections are refused");
    }
}

impl Waiting {
    /// What it has received when its connection closes.
    async fn ended(&mut self) -> String {
        let reading =
            async { while self.socket.read_buf(&mut self.got).await.is_ok_and(|count| count > 0) {} };
        tokio::time::timeout(PATIENCE, reading).await.expect("the connection ends");
        String::from_utf8(std::mem::take(&mut self.got)).expect("text")
    }
}

/// The events of a chunked body, complete or not.
fn data(body: &str) -> String {
    let (mut data, mut body) = (String::new(), body);
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a size");
        data += &rest[..size];
        body = rest[size..].strip_prefix("\r\n").expect("the end of a chunk");
    }
    data
}

#[tokio::test]
async fn shutdown_completes_requests_and_streams_in_progress() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut busy = Busy::start(Duration::from_mins(5), folder.path()).await;
    // An idle keep-alive client.
    let mut idle = connect(&busy.url).await.expect("a connection");
    idle.write_all(b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("sent");
    assert!(idle.read(&mut [0; 4096]).await.expect("an answer") > 0);
    busy.stop().await;
    let count =
        tokio::time::timeout(PATIENCE, idle.read(&mut [0; 16])).await.expect("the idle connection is closed");
    assert_eq!(count.expect("an end"), 0);
    assert!(!busy.serving.is_finished(), "it waits for what is under way");
    busy.gate.close();
    for client in &mut busy.clients {
        let (protocol, here) = (client.protocol, client.here.clone());
        let text = client.ended().await;
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{here}: {text}"));
        assert!(head.starts_with("HTTP/1.1 200 "), "{here}: {text}");
        if client.stream {
            assert!(body.ends_with("\r\n0\r\n\r\n"), "{here}: {text}");
            let sent = data(body);
            assert_eq!(protocol.end(&sent), End::Success, "{here}: {sent}");
            assert_eq!(text_of(protocol, &events(&sent)), TEXT, "{here}: {sent}");
        } else {
            let document: Value = serde_json::from_str(body).expect("a whole document");
            assert_eq!(protocol.text(&document), Some(TEXT), "{here}: {text}");
        }
    }
    let unfinished = tokio::time::timeout(PATIENCE, busy.serving).await.expect("nothing is left to wait for");
    assert!(unfinished.expect("no panic").is_empty());
}

#[tokio::test]
async fn requests_beyond_the_grace_period_are_cut_visibly_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut busy = Busy::start(Duration::from_millis(100), folder.path()).await;
    let requests = busy.clients.len();
    busy.stop().await;
    let unfinished = tokio::time::timeout(PATIENCE, busy.serving).await.expect("it stops");
    assert!(unfinished.expect("no panic").is_empty());
    for client in &mut busy.clients {
        let (protocol, here) = (client.protocol, client.here.clone());
        let text = client.ended().await;
        if !client.stream {
            assert_eq!(text, "", "{here}");
            continue;
        }
        // The protocol has no event for this; HTTP shows that the response is incomplete.
        let (_, body) = text.split_once("\r\n\r\n").expect("a head");
        assert!(!body.ends_with("0\r\n\r\n"), "{here}: {text}");
        let sent = data(body);
        assert_eq!(protocol.end(&sent), End::Nothing, "{here}: {sent}");
        assert_eq!(text_of(protocol, &events(&sent)), "hel", "{here}: {sent}");
    }
    // The upstream connections are closed.
    for upstream in &mut busy.upstreams {
        for _ in 0..8 {
            upstream.left().await;
        }
    }
    // The usage is recorded.
    let next = Gateway::bind(Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        admin_key: Some(ApiKey::new(ADMIN).expect("a valid key")),
        data: Some(folder.path().to_path_buf()),
        ..config(vec![upstream("simulator", Kind::Simulator, "")])
    });
    let next = next.await.expect("the folder is free");
    let url = next.url();
    tokio::spawn(next.serve(std::future::pending()));
    let report = Client::new().get(format!("{url}/admin/usage")).bearer_auth(ADMIN).send();
    let report: Value = report.await.expect("an answer").json().await.expect("JSON");
    let rows = report["usage"].as_array().expect("rows");
    let sum = |name: &str| rows.iter().filter_map(|row| row[name].as_u64()).sum::<u64>();
    assert_eq!((sum("requests"), sum("complete")), (requests as u64, 0), "{report}");
    assert!(sum("input_tokens") > 0, "{report}");
}
