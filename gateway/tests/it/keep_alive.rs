//! Keep-alives that a client of a stream gets while its upstream is silent, at the real interval: the test's
//! clock jumps when nothing else is left to do.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::callers::{End, Protocol, TEXT, text_of};
use crate::client_disconnects::{is_given_up, leave};
use crate::support::{KEY, Server, events, send, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, config, json_answer, stream, upstream};

/// The interval, and how far other timers may let the clock jump beyond it.
const INTERVAL: Duration = Duration::from_secs(15);
const SLACK: Duration = Duration::from_secs(1);

/// The form of a client's stream.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Events,
    /// One JSON array of the native protocol, which has no place for comments.
    Array,
}

impl Form {
    /// The keep-alive as an HTTP chunk.
    fn sign(self) -> &'static str {
        match self {
            Self::Events => "8\r\n: ping\n\n\r\n",
            Self::Array => "1\r\n\n\r\n",
        }
    }

    /// Checks that a stream of [`TEXT`] is complete, ignoring keep-alives.
    fn check(self, client: Protocol, text: &str, here: &str) {
        match self {
            Self::Events => {
                let without_pings = text.replace(": ping\n\n", "");
                assert_eq!(client.end(&without_pings), End::Success, "{here}: {text}");
                assert_eq!(text_of(client, &events(&without_pings)), TEXT, "{here}: {text}");
            }
            Self::Array => {
                let documents: Vec<Value> = serde_json::from_str(text).expect("an array");
                let text_received: String =
                    documents.iter().filter_map(|document| client.text(document)).collect();
                assert_eq!(text_received, TEXT, "{here}: {text}");
            }
        }
    }
}

async fn read(socket: &mut TcpStream, got: &mut String) {
    let mut buffer = [0; 4096];
    let count = socket.read(&mut buffer).await.expect("bytes");
    assert!(count > 0, "{got}");
    *got += std::str::from_utf8(&buffer[..count]).expect("ASCII");
}

/// The data of a complete chunked body.
fn data(mut body: &str) -> String {
    let mut data = String::new();
    loop {
        let (size, rest) = body.split_once("\r\n").expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a number");
        if size == 0 {
            return data;
        }
        data += &rest[..size];
        body = &rest[size + 2..];
    }
}

/// Where an upstream goes silent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Silent {
    BeforeHead,
    BeforeEvent,
    Midway,
}

impl Silent {
    const ALL: [Self; 3] = [Self::BeforeHead, Self::BeforeEvent, Self::Midway];

    /// The response of an upstream that is silent until the gate closes.
    fn steps(self, speaks: Protocol, gate: &Arc<Semaphore>) -> Vec<Step> {
        let whole = STREAM_HEAD.to_owned() + &speaks.events();
        let text = whole.find("hel").expect("the first text");
        let at = match self {
            Self::BeforeHead => 0,
            Self::BeforeEvent => STREAM_HEAD.len(),
            Self::Midway => text + whole[text..].find("\n\n").expect("its end") + 2,
        };
        vec![
            Step::Write(whole[..at].into()),
            Step::Gate(Arc::clone(gate)),
            Step::Write(whole[at..].into()),
            Step::Close,
        ]
    }
}

/// A gateway whose model is tried at these upstreams in order.
async fn start(speaks: Protocol, upstreams: &[&Scripted]) -> Server {
    let named = (0..).zip(upstreams).map(|(number, scripted)| {
        let mut upstream = upstream(&format!("up-{number}"), speaks.kind(), &scripted.url);
        // The test's clock jumps while other tasks still wait for a socket.
        (upstream.timeout, upstream.idle_timeout) = (Duration::from_hours(1), Duration::from_hours(1));
        upstream
    });
    let mut settings = config(named.collect());
    settings.models[0].translate_responses = true;
    settings.open_metrics = true;
    start_with(settings).await
}

/// Requests a stream.
async fn ask(server: &Server, client: Protocol, form: Form, more: &[(&str, Value)]) -> TcpStream {
    let mut socket =
        TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection");
    let (path, mut body) = client.request("mine", true);
    for (name, value) in more {
        body[*name] = value.clone();
    }
    let path = if form == Form::Array { path.trim_end_matches("?alt=sse") } else { &path };
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    socket
}

async fn until_called(scripted: &Scripted) {
    while scripted.count() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Reads a response to its end and returns its data.
async fn rest(socket: &mut TcpStream, mut got: String, here: &str) -> String {
    while !got.ends_with("\r\n0\r\n\r\n") {
        read(socket, &mut got).await;
    }
    let (head, body) = got.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 "), "{here}: {head}");
    data(body)
}

/// Calls an upstream that is silent before its head, and reads the keep-alive.
async fn first_sign(
    server: &Server,
    scripted: &Scripted,
    client: Protocol,
    form: Form,
    more: &[(&str, Value)],
) -> (TcpStream, String) {
    let mut socket = ask(server, client, form, more).await;
    until_called(scripted).await;
    tokio::time::pause();
    let mut got = String::new();
    while !got.ends_with(form.sign()) {
        read(&mut socket, &mut got).await;
    }
    tokio::time::resume();
    (socket, got)
}

/// Each client protocol, and both forms of the native one.
fn forms() -> impl Iterator<Item = (Protocol, Form)> {
    let events = Protocol::ALL.into_iter().map(|client| (client, Form::Events));
    events.chain([(Protocol::Native, Form::Array)])
}

/// An upstream is silent for three intervals and then continues.
async fn fall_silent(client: Protocol, form: Form, speaks: Protocol, silent: Silent) {
    let here = format!("{client:?} ({form:?}) at {speaks:?}, {silent:?}");
    let gate = Arc::new(Semaphore::new(0));
    let scripted = Scripted::start([silent.steps(speaks, &gate)]).await;
    let server = start(speaks, &[&scripted]).await;
    let mut socket = ask(&server, client, form, &[]).await;
    let mut got = String::new();
    while silent == Silent::Midway && !got.contains("hel") {
        read(&mut socket, &mut got).await;
    }
    until_called(&scripted).await;
    // From here on, time passes only while all tasks wait.
    tokio::time::pause();
    let mut since = Instant::now();
    for number in 0..3 {
        let mut line = String::new();
        while !line.ends_with(form.sign()) {
            read(&mut socket, &mut line).await;
        }
        let silence = since.elapsed();
        since = Instant::now();
        assert!(silence + SLACK >= INTERVAL && silence <= INTERVAL + SLACK, "{here}: {silence:?}");
        // The head arrives with the first keep-alive, before the upstream's response.
        let is_first = silent != Silent::Midway && number == 0;
        let head = if is_first { line.find("\r\n\r\n").expect("a head") + 4 } else { 0 };
        assert_eq!(&line[head..], form.sign(), "{here}");
        got += &line;
    }
    tokio::time::resume();
    gate.close();
    form.check(client, &rest(&mut socket, got, &here).await, &here);
}

/// A client of an upstream that goes silent, relayed and translated.
async fn fall_silent_everywhere(client: Protocol, form: Form) {
    let other = if client == Protocol::Chat { Protocol::Messages } else { Protocol::Chat };
    for speaks in [client, other] {
        for silent in Silent::ALL {
            fall_silent(client, form, speaks, silent).await;
        }
    }
}

#[tokio::test]
async fn event_stream_silence_is_broken_by_a_comment_every_15_seconds() {
    for client in Protocol::ALL {
        fall_silent_everywhere(client, Form::Events).await;
    }
}

#[tokio::test]
async fn array_silence_is_broken_by_whitespace_every_15_seconds() {
    fall_silent_everywhere(Protocol::Native, Form::Array).await;
}

#[tokio::test]
async fn failover_works_after_a_keep_alive() {
    for (client, form) in forms() {
        for silent in [Silent::BeforeHead, Silent::BeforeEvent] {
            let here = format!("{client:?} ({form:?}), {silent:?}");
            let gate = Arc::new(Semaphore::new(0));
            let mut steps = silent.steps(client, &gate);
            // It closes the connection after the silence.
            steps.truncate(2);
            steps.push(Step::Close);
            let (one, two) =
                (Scripted::start([steps]).await, Scripted::start([stream(&client.events())]).await);
            let server = start(client, &[&one, &two]).await;
            let (mut socket, got) = first_sign(&server, &one, client, form, &[]).await;
            gate.close();
            form.check(client, &rest(&mut socket, got, &here).await, &here);
            assert_eq!(two.count(), 1, "{here}");
        }
    }
}

#[tokio::test]
async fn dropped_members_are_reported_in_a_comment_after_a_keep_alive() {
    for (client, form) in
        [(Protocol::Chat, Form::Events), (Protocol::Native, Form::Events), (Protocol::Native, Form::Array)]
    {
        let here = format!("{client:?} ({form:?})");
        let gate = Arc::new(Semaphore::new(0));
        let upstream = Scripted::start([Silent::BeforeHead.steps(Protocol::Messages, &gate)]).await;
        let server = start(Protocol::Messages, &[&upstream]).await;
        // Such a name would end the comment, and many would make it long.
        let names: Vec<String> = (0..200).map(|number| format!("future-{number}\n\ndata: x")).collect();
        let more: Vec<(&str, Value)> = names.iter().map(|name| (name.as_str(), Value::Bool(true))).collect();
        let (mut socket, got) = first_sign(&server, &upstream, client, form, &more).await;
        gate.close();
        let body = rest(&mut socket, got, &here).await;
        let comments: Vec<&str> = body.lines().filter(|line| line.starts_with(": dropped ")).collect();
        if form == Form::Array {
            assert!(comments.is_empty(), "{here}: {body}");
            form.check(client, &body, &here);
            continue;
        }
        let [comment] = comments[..] else { panic!("{here}: {body}") };
        let is_plain =
            comment.starts_with(": dropped /future-") && comment.contains("%0A%0Adata:%20x, /future-");
        assert!(is_plain, "{here}: {comment}");
        assert!(comment.ends_with(" more") && comment.len() < 2100, "{here}: {comment}");
        // Before the first event.
        assert!(body.starts_with(&format!(": ping\n\n{comment}\n\n")), "{here}: {body}");
        form.check(client, &body.replace(&format!("{comment}\n\n"), ""), &here);
    }
}

#[tokio::test]
async fn error_after_a_keep_alive_is_sent_in_the_stream() {
    for (client, form) in forms() {
        for (status, code) in [(500, "upstream_error"), (400, "invalid_value"), (429, "rate_limit_exceeded")]
        {
            let here = format!("{client:?} ({form:?}), {status}");
            let gate = Arc::new(Semaphore::new(0));
            let mut steps = vec![Step::Gate(Arc::clone(&gate))];
            steps.extend(json_answer(status, &serde_json::json!({"error": {"message": "overloaded"}})));
            let one = Scripted::start([steps]).await;
            let server = start(client, &[&one]).await;
            let (mut socket, got) = first_sign(&server, &one, client, form, &[]).await;
            gate.close();
            let body = rest(&mut socket, got, &here).await;
            assert!(body.contains("overloaded"), "{here}: {body}");
            if matches!(client, Protocol::Chat | Protocol::Responses) {
                assert!(body.contains(code), "{here}: {body}");
            }
            match form {
                Form::Events => {
                    assert_eq!(client.end(&body.replace(": ping\n\n", "")), End::Failure, "{here}: {body}");
                }
                Form::Array => {
                    let documents: Vec<Value> = serde_json::from_str(&body).expect("an array");
                    assert!(client.is_error(&documents[0]), "{here}: {body}");
                }
            }
        }
    }
}

#[tokio::test]
async fn silent_upstream_is_cancelled_when_the_client_disconnects() {
    for (client, form) in forms() {
        for resets in [false, true] {
            is_given_up(&format!("{client:?} ({form:?}), reset: {resets}"), async || {
                let mut one = Scripted::start([vec![Step::Hang]]).await;
                let server = start(client, &[&one]).await;
                let (socket, _) = first_sign(&server, &one, client, form, &[]).await;
                let left = leave(socket, resets);
                one.left().await.saturating_duration_since(left)
            })
            .await;
        }
    }
}

#[tokio::test]
async fn keep_alive_does_not_count_as_the_first_byte() {
    for (client, form) in forms() {
        let gate = Arc::new(Semaphore::new(0));
        let one = Scripted::start([Silent::BeforeHead.steps(client, &gate)]).await;
        let server = start(client, &[&one]).await;
        let started = async || {
            let text = send(server.bare(Method::GET, "/metrics")).await.text().await.expect("a text");
            let counts = text.lines().filter(|line| {
                line.starts_with("gatewright_time_to_first_byte_seconds_count") && !line.contains("\"none\"")
            });
            counts.filter(|line| !line.ends_with(" 0")).count()
        };
        let here = format!("{client:?} ({form:?})");
        let (mut socket, got) = first_sign(&server, &one, client, form, &[]).await;
        assert_eq!(started().await, 0, "{here}: the head and a sign of life have come");
        gate.close();
        rest(&mut socket, got, &here).await;
        assert_eq!(started().await, 1, "{here}");
    }
}
