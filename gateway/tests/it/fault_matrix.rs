//! Each client protocol with each kind of upstream, and every upstream failure: the client gets an error
//! in its own protocol or the next upstream's answer, and never a truncated answer that looks complete.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use gatewright_gateway::{Config, ModelConfig, TargetConfig};
use serde_json::{Value, json};

use crate::callers::{End, Protocol, TEXT, text_of};
use crate::support::{Server, events, send, start_with, stride};
use crate::upstreams::{STREAM_HEAD, Scripted, Seen, Step, answer, json_answer, upstream};

/// Timeout for an upstream that hangs.
const TIMEOUT: Duration = Duration::from_millis(200);
/// Number of concurrent cases.
pub(crate) const AT_ONCE: usize = 32;
/// After each change, connections break at one position of this many.
const FEW: usize = 5;

/// Failures of an upstream before its response is complete, and the status that the client gets if no other upstream
/// takes over.
type Fault = (&'static str, Vec<Step>, u16);

fn faults(protocol: Protocol, stream: bool) -> Vec<Fault> {
    let error = json!({"error": {"message": "no"}});
    let whole = if stream { protocol.events() } else { protocol.answer().to_string() };
    let kind = if stream { "text/event-stream" } else { "application/json" };
    let head = |more: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{more}\r\n\r\n");
    let length = |length: usize| head(&format!("content-length: {length}"));
    let first_byte = whole.get(..1).expect("ASCII");
    vec![
        ("hangs", vec![Step::Hang], 504),
        ("resets", vec![Step::Reset], 502),
        ("closes", vec![Step::Close], 502),
        ("hangs after its head", vec![Step::Write(head("connection: close").into()), Step::Hang], 504),
        ("resets after its head", vec![Step::Write(head("connection: close").into()), Step::Reset], 502),
        ("429", json_answer(429, &error), 429),
        ("500", json_answer(500, &error), 500),
        ("529", json_answer(529, &error), 529),
        ("401", json_answer(401, &error), 502),
        ("HTML", vec![Step::Write(answer(200, "text/html", "<html>Welcome</html>"))], 502),
        ("HTML as an error", vec![Step::Write(answer(503, "text/html", "<html>Unavailable</html>"))], 503),
        ("HTML in disguise", vec![Step::Write(answer(200, kind, "<html>Welcome</html>")), Step::Close], 502),
        ("nothing", vec![Step::Write(length(0).into()), Step::Close], 502),
        (
            "too long a length",
            vec![Step::Write(format!("{}{first_byte}", length(100_000)).into()), Step::Close],
            502,
        ),
        ("too short a length", vec![Step::Write(format!("{}{whole}", length(7)).into()), Step::Close], 502),
        (
            "two lengths",
            vec![
                Step::Write(format!("{}{whole}", head("content-length: 9\r\ncontent-length: 8")).into()),
                Step::Close,
            ],
            502,
        ),
        (
            "cut off chunks",
            vec![
                Step::Write(format!("{}5\r\n{first_byte}", head("transfer-encoding: chunked")).into()),
                Step::Close,
            ],
            502,
        ),
        (
            "chunks of no size",
            vec![
                Step::Write(format!("{}xyz\r\n{whole}", head("transfer-encoding: chunked")).into()),
                Step::Close,
            ],
            502,
        ),
        (
            "compressed",
            vec![Step::Write(format!("{}{whole}", head("content-encoding: gzip")).into()), Step::Close],
            502,
        ),
        ("no HTTP", vec![Step::Write(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()), Step::Close], 502),
    ]
}

/// A client's model for a fault of an upstream; each case has its own model, so that its breaker affects no other.
fn model(client: Protocol, fault: usize, helped: bool) -> String {
    format!("{}-{fault}-{helped}", client.name())
}

/// A gateway with a model for each fault, alone or followed by a working upstream.
///
/// bad, good: their addresses. faults: their names.
pub(crate) async fn start(bad: &str, good: &str, speaks: Protocol, faults: &[&str]) -> Server {
    let first = upstream("bad", speaks.kind(), bad);
    // Timeouts are long except for silence: a slow machine must not time out another fault.
    let mut hasty = upstream("hasty", speaks.kind(), bad);
    (hasty.timeout, hasty.idle_timeout) = (TIMEOUT, TIMEOUT);
    let second = upstream("good", speaks.kind(), good);
    let mut models = Vec::new();
    for client in Protocol::ALL {
        for (fault, helped) in (0..faults.len()).flat_map(|fault| [(fault, false), (fault, true)]) {
            let id = model(client, fault, helped);
            let first = if faults[fault].starts_with("hangs") { "hasty" } else { "bad" };
            let mut model = ModelConfig::new(id, "family_one", TargetConfig::new(first, "theirs"));
            model.translate_responses = true;
            if helped {
                let mut target = TargetConfig::new("good", "theirs");
                target.order = 1;
                model.targets.push(target);
            }
            models.push(model);
        }
    }
    start_with(Config { upstreams: vec![first, hasty, second], models, ..Config::default() }).await
}

async fn go_through(speaks: Protocol) {
    let (bad, good) = (Scripted::start([]).await, Scripted::start([]).await);
    for stream in [false, true] {
        let names: Vec<&str> = faults(speaks, stream).iter().map(|(what, ..)| *what).collect();
        let server = start(&bad.url, &good.url, speaks, &names).await;
        for client in Protocol::ALL {
            let spoken = speaks.spoken_for(client);
            good.then(well(spoken, stream));
            for (number, (what, steps, expected)) in faults(spoken, stream).into_iter().enumerate() {
                bad.then(steps);
                let here = format!("{client:?} at {speaks:?}, stream: {stream}, upstream: {what}");
                assert_error(&server, client, stream, number, expected, &here).await;
                assert_failover(&server, client, stream, number, &here).await;
            }
        }
    }
}

/// A correct response of an upstream.
pub(crate) fn well(spoken: Protocol, stream: bool) -> Vec<Step> {
    if stream {
        vec![Step::Write(format!("{STREAM_HEAD}{}", spoken.events()).into()), Step::Close]
    } else {
        json_answer(200, &spoken.answer())
    }
}

/// Without another upstream, the client gets an error in its protocol.
pub(crate) async fn assert_error(
    server: &Server,
    client: Protocol,
    stream: bool,
    fault: usize,
    expected: u16,
    here: &str,
) {
    let (path, body) = client.request(&model(client, fault, false), stream);
    let response = send(server.post(&path, &body)).await;
    let status = response.status().as_u16();
    let error: Value = response.json().await.unwrap_or_else(|error| panic!("{here}: {error}"));
    // The native protocol has no 502.
    let expected = if client == Protocol::Native && expected == 502 { 503 } else { expected };
    assert_eq!(status, expected, "{here}: {error}");
    assert!(client.is_error(&error), "{here}: {error}");
}

/// With another working upstream, the client gets its answer.
pub(crate) async fn assert_failover(
    server: &Server,
    client: Protocol,
    stream: bool,
    fault: usize,
    here: &str,
) {
    let (path, body) = client.request(&model(client, fault, true), stream);
    let response = send(server.post(&path, &body)).await;
    assert_eq!(response.status(), 200, "{here}: no other upstream helped");
    assert_eq!(response.headers()["x-gatewright-upstream"], "good", "{here}");
    let text = response.text().await.expect("a body");
    let text_received = if stream {
        assert_eq!(client.end(&text), End::Success, "{here}: {text}");
        text_of(client, &events(&text))
    } else {
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        client.text(&answer).unwrap_or_default().to_owned()
    };
    assert_eq!(text_received, TEXT, "{here}: {text}");
}

#[tokio::test]
async fn chat_upstream_faults_are_reported_or_failed_over() {
    go_through(Protocol::Chat).await;
}

#[tokio::test]
async fn responses_upstream_faults_are_reported_or_failed_over() {
    go_through(Protocol::Responses).await;
}

#[tokio::test]
async fn messages_upstream_faults_are_reported_or_failed_over() {
    go_through(Protocol::Messages).await;
}

#[tokio::test]
async fn native_upstream_faults_are_reported_or_failed_over() {
    go_through(Protocol::Native).await;
}

/// How an upstream marks the end of its response.
#[derive(Debug, Clone, Copy)]
enum Framing {
    Length,
    Chunks,
    /// The response ends with the connection.
    Close,
}

impl Framing {
    /// Each byte that an upstream sends with the number of body bytes up to it; and the length of the head.
    fn wire(self, media_type: &str, body: &str) -> (Vec<(u8, usize)>, usize) {
        let head = match self {
            Self::Length => format!("content-length: {}\r\n\r\n", body.len()),
            Self::Chunks => "transfer-encoding: chunked\r\n\r\n".to_owned(),
            Self::Close => "\r\n".to_owned(),
        };
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\nconnection: close\r\n{head}");
        let (mut wire, mut body_bytes) = (Vec::new(), 0);
        let mut send = |text: &str, is_body: bool| {
            for byte in text.bytes() {
                body_bytes += usize::from(is_body);
                wire.push((byte, body_bytes));
            }
        };
        send(&head, false);
        let is_chunked = matches!(self, Self::Chunks);
        // Chunks end within events.
        for piece in body.as_bytes().chunks(97) {
            let piece = std::str::from_utf8(piece).expect("ASCII");
            if is_chunked {
                send(&format!("{:x}\r\n", piece.len()), false);
            }
            send(piece, true);
            if is_chunked {
                send("\r\n", false);
            }
        }
        if is_chunked {
            send("0\r\n\r\n", false);
        }
        (wire, head.len())
    }
}

/// The ways in which an upstream's connection breaks.
const WAYS: [(Framing, Step); 6] = [
    (Framing::Length, Step::Close),
    (Framing::Length, Step::Reset),
    (Framing::Close, Step::Close),
    (Framing::Close, Step::Reset),
    (Framing::Chunks, Step::Close),
    (Framing::Chunks, Step::Reset),
];

/// The ways in which an upstream goes silent permanently.
const SILENCES: [(Framing, Step); 3] =
    [(Framing::Length, Step::Hang), (Framing::Close, Step::Hang), (Framing::Chunks, Step::Hang)];

/// Where an upstream breaks or goes silent, and how its client must interpret that.
struct Death {
    sends: Vec<u8>,
    by: Step,
    /// Number of body bytes before it.
    body_sent: usize,
    /// The head was incomplete.
    is_headless: bool,
    /// The whole response has arrived, though perhaps not all bytes.
    is_end: bool,
    here: String,
}

/// Breaks after each byte of head and body, including before the first and after the last.
fn deaths(spoken: Protocol, form: Form, framing: Framing, by: &Step) -> Vec<Death> {
    let (media_type, body) = form.body(spoken);
    let (wire, head) = framing.wire(media_type, &body);
    let (whole_from, ended_from) = form.ends(spoken);
    let death = |at: usize| {
        let body_sent = if at == 0 { 0 } else { wire[at - 1].1 };
        // Whether HTTP treats the end of the connection as the end of the response, or the response has ended before.
        let may_end = match framing {
            Framing::Close => matches!(by, Step::Close) && at >= head,
            Framing::Length | Framing::Chunks => at == wire.len(),
        };
        Death {
            sends: wire[..at].iter().map(|(byte, _)| *byte).collect(),
            by: by.clone(),
            body_sent,
            is_headless: at < head,
            is_end: (may_end && body_sent >= whole_from) || body_sent >= ended_from,
            here: format!("{framing:?}, {by:?} behind {at} of {} bytes, {head} of them the head", wire.len()),
        }
    };
    (0..=wire.len()).map(death).collect()
}

/// The form in which the client reads its response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Events,
    /// A stream as one JSON array of the native protocol.
    Array,
    /// A unary response.
    Document,
}

impl Form {
    /// An upstream's response and its content type.
    fn body(self, spoken: Protocol) -> (&'static str, String) {
        match self {
            Self::Events | Self::Array => ("text/event-stream", spoken.events()),
            Self::Document => ("application/json", spoken.answer().to_string()),
        }
    }

    /// The positions in this body after which the response is complete, and after which nothing more can follow, however the
    /// connection ends.
    fn ends(self, spoken: Protocol) -> (usize, usize) {
        match self {
            Self::Events | Self::Array => (spoken.whole_from(), ended_from(spoken)),
            Self::Document => (self.body(spoken).1.len(), usize::MAX),
        }
    }

    pub(crate) fn path(self, path: &str) -> &str {
        match self {
            Self::Events | Self::Document => path,
            Self::Array => path.strip_suffix("?alt=sse").expect("the native protocol"),
        }
    }

    /// How a stream ended, and its text.
    pub(crate) fn read(self, client: Protocol, text: &str) -> (End, String) {
        if self == Self::Events {
            return (client.end(text), text_of(client, &events(text)));
        }
        if self == Self::Document {
            let answer: Value = serde_json::from_str(text).unwrap_or_default();
            let text = client.text(&answer).map(str::to_owned);
            return (if text.is_some() { End::Success } else { End::Nothing }, text.unwrap_or_default());
        }
        // An unclosed array is no success for any client, but an end without an error.
        let Ok(documents) = serde_json::from_str::<Vec<Value>>(text) else {
            return (End::Nothing, String::new());
        };
        let text = documents.iter().filter_map(|document| client.text(document)).collect();
        let last = documents.last().unwrap_or(&Value::Null);
        let end = match (last["candidates"][0]["finishReason"].is_string(), client.is_error(last)) {
            (true, false) => End::Success,
            (false, true) => End::Failure,
            _ => End::Nothing,
        };
        (end, text)
    }
}

/// A client calls an upstream that breaks, once per case.
async fn die_again_and_again(client: Protocol, form: Form, speaks: Protocol, deaths: Vec<Death>) {
    let deaths = Arc::new(deaths);
    let number = |seen: &Seen| -> usize {
        let text = format!("{} {}", seen.line, seen.body);
        let (_, rest) = text.split_once("death-").expect("the name of a model");
        rest.split(|byte: char| !byte.is_ascii_digit())
            .next()
            .and_then(|at| at.parse().ok())
            .expect("its number")
    };
    let all = Arc::clone(&deaths);
    let scripted = Scripted::answering(move |seen| {
        let death = &all[number(seen)];
        let mut steps = vec![Step::Write(death.sends.clone()), death.by.clone()];
        if matches!(death.by, Step::Reset) {
            // A reset discards unread data.
            steps.insert(1, Step::Pause(Duration::from_millis(3)));
        }
        steps
    })
    .await;
    let models = deaths.iter().enumerate().map(|(number, death)| {
        let upstream = if death.is_headless { "headless" } else { "one" };
        // Its own model, so that its breaker affects no other case.
        let target = TargetConfig::new(upstream, format!("death-{number}"));
        let mut model = ModelConfig::new(format!("at-{number}"), "family_one", target);
        model.translate_responses = true;
        model
    });
    let [mut one, mut headless] =
        ["one", "headless"].map(|name| upstream(name, speaks.kind(), &scripted.url));
    let is_silent = matches!(deaths[0].by, Step::Hang);
    if is_silent {
        // Only without a head does the gateway wait for one: on a busy machine, others may come late.
        headless.timeout = TIMEOUT;
        one.idle_timeout = TIMEOUT;
    }
    let upstreams = vec![one, headless];
    let server = start_with(Config { upstreams, models: models.collect(), ..Config::default() }).await;
    let requests = deaths.iter().enumerate().map(async |(number, death)| {
        let here = format!("{client:?} ({form:?}) at {speaks:?}: {}", death.here);
        let (path, body) = client.request(&format!("at-{number}"), form != Form::Document);
        let response = send(server.post(form.path(&path), &body)).await;
        let status = response.status().as_u16();
        let text = response.text().await.unwrap_or_else(|error| panic!("{here}: {error}"));
        if status != 200 {
            // Nothing was sent. The native protocol has no 502.
            let expected = match (is_silent, client) {
                (true, _) => 504,
                (false, Protocol::Native) => 503,
                (false, _) => 502,
            };
            assert_eq!(status, expected, "{here}: {text}");
            assert!(!death.is_end, "{here}: {text}");
            let error: Value = serde_json::from_str(&text).expect("JSON");
            assert!(client.is_error(&error), "{here}: {text}");
            return;
        }
        assert!(!death.is_headless, "{here}: {text}");
        let expected = if death.is_end { End::Success } else { End::Failure };
        let (end, text_received) = form.read(client, &text);
        assert_eq!(end, expected, "{here}: {text}");
        if death.is_end {
            assert_eq!(text_received, TEXT, "{here}: {text}");
        }
    });
    stream::iter(requests).for_each_concurrent(AT_ONCE, |request| request).await;
    assert_eq!(scripted.count(), deaths.len(), "each case ran once");
}

/// An upstream breaks after each byte of its head and response, or after each one of a step width, in alternating
/// ways (see [`stride`]); near the end of the response, after each byte in each way.
async fn die_everywhere(speaks: Protocol, ways: &[(Framing, Step)], step: usize) {
    let step = step * stride(FEW);
    let forms = Protocol::ALL.map(|client| [(client, Form::Events), (client, Form::Document)]);
    for (client, form) in forms.into_iter().flatten().chain([(Protocol::Native, Form::Array)]) {
        let spoken = speaks.spoken_for(client);
        let ends = [form.ends(spoken).0, form.body(spoken).1.len()];
        let here = ways.iter().enumerate().flat_map(|(way, (framing, by))| {
            deaths(spoken, form, *framing, by).into_iter().filter(move |death| {
                let at = if death.is_headless { death.sends.len() } else { death.body_sent };
                at % (ways.len() * step) == way * step
                    || ends.iter().any(|end| end.abs_diff(death.body_sent) <= 8)
            })
        });
        die_again_and_again(client, form, speaks, here.collect()).await;
    }
}

#[tokio::test]
async fn chat_stream_cut_at_any_byte_is_never_a_success() {
    let all = WAYS.iter().flat_map(|(framing, by)| {
        deaths(Protocol::Chat, Form::Events, *framing, by).into_iter().step_by(stride(FEW))
    });
    die_again_and_again(Protocol::Chat, Form::Events, Protocol::Chat, all.collect()).await;
}

#[tokio::test]
async fn native_array_cut_at_any_byte_is_never_a_success() {
    let all = WAYS.iter().flat_map(|(framing, by)| {
        deaths(Protocol::Native, Form::Array, *framing, by).into_iter().step_by(stride(FEW))
    });
    die_again_and_again(Protocol::Native, Form::Array, Protocol::Native, all.collect()).await;
}

/// The position in a stream after which nothing more can follow: after its last event, however the connection ends.
pub(crate) fn ended_from(speaks: Protocol) -> usize {
    match speaks {
        Protocol::Chat => speaks.events().len(),
        Protocol::Responses | Protocol::Messages => speaks.whole_from() + 2,
        // It has no terminal event.
        Protocol::Native => usize::MAX,
    }
}

#[tokio::test]
async fn chat_upstream_cut_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Chat, &WAYS, 1).await;
}

#[tokio::test]
async fn responses_upstream_cut_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Responses, &WAYS, 1).await;
}

#[tokio::test]
async fn messages_upstream_cut_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Messages, &WAYS, 1).await;
}

#[tokio::test]
async fn native_upstream_cut_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Native, &WAYS, 1).await;
}

#[tokio::test]
async fn chat_upstream_stalled_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Chat, &SILENCES, 7).await;
}

#[tokio::test]
async fn responses_upstream_stalled_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Responses, &SILENCES, 7).await;
}

#[tokio::test]
async fn messages_upstream_stalled_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Messages, &SILENCES, 7).await;
}

#[tokio::test]
async fn native_upstream_stalled_at_any_byte_is_no_success_for_any_client() {
    die_everywhere(Protocol::Native, &SILENCES, 7).await;
}
