//! Clients that disconnect at every stage of a request: the upstream is cancelled and the usage recorded.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gatewright_gateway::{ApiKey, Config, Kind, ModelConfig, ModelKind, TargetConfig};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::callers::Protocol;
use crate::fault_matrix::Form;
use crate::support::{KEY, Server, read, send, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, upstream};

const ADMIN: &str = "gw-admin-canary-77";
/// Maximum delay between a disconnect and the cancellation upstream on a busy machine: far below every timeout of the gateway,
/// so that none of them can have ended the request.
const MAX_DELAY: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);

fn config(speaks: Kind, url: &str) -> Config {
    let mut model = ModelConfig::new("mine", "family_one", TargetConfig::new("one", "theirs"));
    model.translate_responses = true;
    Config {
        upstreams: vec![upstream("one", speaks, url)],
        models: vec![model],
        admin_key: Some(ApiKey::new(ADMIN).expect("a key")),
        open_metrics: true,
        ..Config::default()
    }
}

async fn start(speaks: Protocol, url: &str) -> Server {
    start_with(config(speaks.kind(), url)).await
}

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection")
}

fn request(client: Protocol, stream: bool) -> String {
    let (path, body) = client.request("mine", stream);
    posted(&path, &body)
}

/// A request in wire format.
pub(crate) fn posted(path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Disconnects by a close or a reset.
pub(crate) fn leave(socket: TcpStream, resets: bool) -> Instant {
    if resets {
        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).expect("set");
    }
    let leaving = Instant::now();
    drop(socket);
    leaving
}

/// Asserts that an upstream is cancelled by its client's disconnect, and not by a timeout.
///
/// `leaves`: returns how long the upstream kept working after the disconnect.
pub(crate) async fn is_given_up(here: &str, mut leaves: impl AsyncFnMut() -> Duration) {
    let took = leaves().await;
    assert!(took <= MAX_DELAY, "{here}: given up after {took:?}");
}

/// Polls until there is a result.
async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = poll().await {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn gauge(server: &Server, name: &str) -> f64 {
    let text = send(server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
}

async fn usage(server: &Server) -> Value {
    let (status, report) = read(server.bare(Method::GET, "/admin/usage").bearer_auth(ADMIN)).await;
    assert_eq!(status, 200, "{report}");
    report["usage"][0].clone()
}

#[tokio::test]
async fn disconnect_before_the_request_is_complete_costs_nothing() {
    let scripted = Scripted::start([vec![Step::Hang]]).await;
    let server = start(Protocol::Chat, &scripted.url).await;
    let whole = request(Protocol::Chat, false);
    let body = whole.find("\r\n\r\n").expect("a head") + 4;
    // Before the head, in the request line, in a header, before the body, in it, and before its last byte.
    for at in [0, 9, 40, body - 2, body, body + 1, body + 20, whole.len() - 1] {
        for resets in [false, true] {
            let mut socket = connect(&server).await;
            socket.write_all(&whole.as_bytes()[..at]).await.expect("sent");
            // The gateway has accepted the connection.
            until("not connected", async || {
                (gauge(&server, "gatewright_connections").await >= 2.0).then_some(())
            })
            .await;
            leave(socket, resets);
            let alone = async || (gauge(&server, "gatewright_connections").await <= 1.0).then_some(());
            until(&format!("the connection was held after {at} bytes, reset: {resets}"), alone).await;
        }
    }
    assert_eq!((scripted.count(), usage(&server).await), (0, Value::Null));
    assert!(gauge(&server, "gatewright_requests_in_flight").await <= 1.0);
}

/// What an upstream has sent when the client disconnects, and whether the client requested a stream.
fn stages(speaks: Protocol) -> [(&'static str, bool, String); 6] {
    let events = speaks.events();
    let ends: Vec<usize> = events.match_indices("\n\n").map(|(at, _)| at + 2).collect();
    let cut = ends[(ends.len() - 1) / 2];
    let whole = speaks.answer().to_string();
    let document = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", whole.len(), &whole[..9]);
    [
        ("before the first byte", false, String::new()),
        ("before the first byte of a stream", true, String::new()),
        ("before the first event", true, STREAM_HEAD.to_owned()),
        ("in mid-stream", true, format!("{STREAM_HEAD}{}", &events[..cut])),
        ("within an event", true, format!("{STREAM_HEAD}{}", &events[..cut + 9])),
        ("within a whole answer", false, document),
    ]
}

/// A client that disconnects.
struct Leaver<'l> {
    request: String,
    /// What the upstream has sent by then.
    started: &'l str,
    /// Whether the client has received some of it.
    expects_data: bool,
    resets: bool,
}

impl Leaver<'_> {
    /// How long the upstream and the gateway kept working after the disconnect.
    async fn leaves(&self, config: &dyn Fn(&str) -> Config) -> (Duration, Server) {
        let mut steps = vec![Step::Hang];
        if !self.started.is_empty() {
            steps.insert(0, Step::Write(self.started.into()));
        }
        let mut scripted = Scripted::start([steps]).await;
        let server = start_with(config(&scripted.url)).await;
        let mut socket = connect(&server).await;
        socket.write_all(self.request.as_bytes()).await.expect("sent");
        until("the upstream was not called", async || (scripted.count() > 0).then_some(())).await;
        if self.expects_data {
            assert!(socket.read(&mut [0; 4096]).await.expect("an event") > 0);
        }
        let left = leave(socket, self.resets);
        (scripted.left().await.saturating_duration_since(left), server)
    }
}

/// A client of one protocol disconnects while an upstream of another is working.
async fn leave_at_each_stage(client: Protocol, form: Form, speaks: Protocol) {
    for (what, stream, started) in &stages(speaks.spoken_for(client)) {
        if form == Form::Array && !stream {
            continue;
        }
        let (path, body) = client.request("mine", *stream);
        for resets in [false, true] {
            let here = format!("{client:?} ({form:?}) at {speaks:?}, {what}, reset: {resets}");
            let path = if *stream { form.path(&path) } else { &path };
            let expects_data = what.contains("mid-stream") || what.contains("within an event");
            let leaver = Leaver { request: posted(path, &body), started, expects_data, resets };
            let mut last = None;
            is_given_up(&here, async || {
                let (took, server) = leaver.leaves(&|url| config(speaks.kind(), url)).await;
                last = Some(server);
                took
            })
            .await;
            if resets {
                continue;
            }
            let server = last.expect("a gateway");
            let row =
                until("no usage", async || Some(usage(&server).await).filter(|row| !row.is_null())).await;
            let counts = ["requests", "complete", "estimated"].map(|name| row[name].as_u64());
            assert_eq!(counts, [Some(1), Some(0), Some(1)], "{here}: {row}");
            assert!(row["input_tokens"].as_u64() > Some(0), "{row}");
        }
    }
}

/// Clients of all protocols disconnect while an upstream of one is working.
async fn leave_while_it_works(speaks: Protocol) {
    let forms = Protocol::ALL.map(|client| (client, Form::Events)).into_iter();
    let forms = forms.chain([(Protocol::Native, Form::Array)]);
    join_all(forms.map(|(client, form)| leave_at_each_stage(client, form, speaks))).await;
}

#[tokio::test]
async fn chat_upstream_is_cancelled_at_each_stage_for_each_client() {
    leave_while_it_works(Protocol::Chat).await;
}

#[tokio::test]
async fn responses_upstream_is_cancelled_at_each_stage_for_each_client() {
    leave_while_it_works(Protocol::Responses).await;
}

#[tokio::test]
async fn messages_upstream_is_cancelled_at_each_stage_for_each_client() {
    leave_while_it_works(Protocol::Messages).await;
}

#[tokio::test]
async fn native_upstream_is_cancelled_at_each_stage_for_each_client() {
    leave_while_it_works(Protocol::Native).await;
}

/// Operations that don't answer a message: token counting, compaction, plain operations, images.
#[tokio::test]
async fn counting_compaction_plain_and_image_requests_are_cancelled() {
    let messages = json!({"model": "mine", "messages": [{"role": "user", "content": "hi"}]});
    let contents = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let compact = json!({"model": "mine", "input": [{"role": "user", "content": "hi"}]});
    let picture = json!({"model": "mine", "prompt": "a lighthouse"});
    let texts = json!({"model": "mine", "input": ["a lighthouse"]});
    let documents = json!({"model": "mine", "query": "a lighthouse", "documents": ["a lighthouse"]});
    let speech = json!({"model": "mine", "input": "a lighthouse", "voice": "alloy"});
    let (count_messages, count_native) = ("/v1/messages/count_tokens", "/v1beta/models/mine:countTokens");
    let (shorten, draw, embed) = ("/v1/responses/compact", "/v1/images/generations", "/v1/embeddings");
    let requests = [
        (count_messages, &messages, Kind::Messages, ModelKind::Text),
        (count_messages, &messages, Kind::Gatewright, ModelKind::Text),
        (count_native, &contents, Kind::Native, ModelKind::Text),
        (shorten, &compact, Kind::Responses, ModelKind::Text),
        (shorten, &compact, Kind::Chat, ModelKind::Text),
        (shorten, &compact, Kind::Messages, ModelKind::Text),
        (embed, &texts, Kind::Chat, ModelKind::Embedding),
        (embed, &texts, Kind::Native, ModelKind::Embedding),
        ("/v1/rerank", &documents, Kind::Chat, ModelKind::Rerank),
        ("/v1/moderations", &texts, Kind::Gatewright, ModelKind::Moderation),
        ("/v1/audio/speech", &speech, Kind::Chat, ModelKind::Speech),
        (draw, &picture, Kind::Chat, ModelKind::Image),
        (draw, &picture, Kind::Gatewright, ModelKind::Image),
    ];
    let started =
        ["", "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"id\""];
    join_all(requests.map(async |(path, body, speaks, kind)| {
        let settings = |url: &str| {
            let mut config = config(speaks, url);
            config.models[0].kind = kind;
            config
        };
        for (started, resets) in started.into_iter().flat_map(|started| [(started, false), (started, true)]) {
            let here = format!("{path} at {speaks:?} after {started:?}, reset: {resets}");
            let leaver = Leaver { request: posted(path, body), started, expects_data: false, resets };
            is_given_up(&here, async || leaver.leaves(&settings).await.0).await;
        }
    }))
    .await;
}

#[tokio::test]
async fn disconnect_after_the_last_byte_counts_the_whole_answer() {
    for speaks in Protocol::ALL {
        for client in Protocol::ALL {
            let events = speaks.spoken_for(client).events();
            let answer = Step::Write(format!("{STREAM_HEAD}{events}").into());
            let scripted = Scripted::start([vec![answer, Step::Close]]).await;
            let server = start(speaks, &scripted.url).await;
            let mut socket = connect(&server).await;
            socket.write_all(request(client, true).as_bytes()).await.expect("sent");
            // The end of a chunked body.
            let mut got = Vec::new();
            while !got.ends_with(b"0\r\n\r\n") {
                let read = tokio::time::timeout(PATIENCE, socket.read_buf(&mut got)).await.expect("more");
                assert!(read.expect("bytes") > 0, "{}", String::from_utf8_lossy(&got));
            }
            leave(socket, true);
            let row =
                until("no usage", async || Some(usage(&server).await).filter(|row| !row.is_null())).await;
            let counts =
                ["requests", "complete", "estimated", "input_tokens", "output_tokens"].map(|name| &row[name]);
            assert_eq!(
                counts.map(Value::as_u64),
                [1, 1, 0, 3, 2].map(Some),
                "{client:?} at {speaks:?}: {row}"
            );
        }
    }
}
