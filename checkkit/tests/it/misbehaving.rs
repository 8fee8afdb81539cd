//! Whatever a service does, the result is a valid report, and no secret appears in it, in the evidence or in the run's progress
//! events: random behaviors, with a key that is searched for in every form in which it was echoed.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use gatewright::report::Profile;
use gatewright_checkkit::{CancellationToken, CheckKit, Options};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::scenario::{fill, good_document, good_events, written};
use crate::server::{Canned, End, Request, Route, Server};
use crate::{CANARY, key, valid_document};

/// Runs of the kit; each sends up to four requests.
const CASES: u32 = 96;

fn spelled(form: impl Fn(char) -> String) -> String {
    let letters: Vec<String> = CANARY.chars().map(form).collect();
    letters.concat()
}

/// Forms in which services echo a key.
pub(crate) fn forms() -> Vec<String> {
    vec![
        CANARY.to_owned(),
        CANARY.to_uppercase(),
        format!("Bearer {CANARY}"),
        utf8_percent_encode(CANARY, NON_ALPHANUMERIC).to_string(),
        spelled(|letter| format!("%{:02x}", u32::from(letter))),
        BASE64_STANDARD.encode(CANARY),
        format!("Basic {}", BASE64_URL_SAFE_NO_PAD.encode(format!("user:{CANARY}"))),
        spelled(|letter| format!("\\u{:04x}", u32::from(letter))),
        CANARY.replace('/', "\\/"),
        spelled(|letter| format!("&#{};", u32::from(letter))),
        spelled(|letter| format!("{:02x}", u32::from(letter))),
        format!("https://user:{CANARY}@host/?key={CANARY}"),
        format!("{}\u{200b}{}", &CANARY[..5], &CANARY[5..]),
    ]
}

/// How one request is answered.
#[derive(Debug, Clone)]
struct Behavior {
    status: u16,
    headers: Vec<(String, String)>,
    body: Body,
    /// How the connection ends: 0 hangs, 1 and 2 reset it, anything else closes it.
    end: u8,
    lies_about_length: bool,
}

#[derive(Debug, Clone)]
enum Body {
    /// A valid response, except at these places, each taken modulo their number.
    Changed(Vec<(usize, Value)>),
    Pieces(Vec<String>),
    Bytes(Vec<u8>),
    /// Not HTTP at all.
    Raw(Vec<u8>),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(forms()),
        2 => prop::sample::select(vec![
            "{{token}}", "", "model-sol", "completed", "failed", "compat_echo", "response.completed", "error",
            "a\u{202e}b\u{1b}[2J\u{0}", "\u{fffd}", "🙂", "null", "2026-01-31",
        ]).prop_map(str::to_owned),
        1 => Just("🙂 ".repeat(3000)),
        1 => (0..40usize, prop::sample::select(forms())).prop_map(|(at, form)| format!("{}{form}", "x".repeat(1960 + at))),
        1 => ".{0,20}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        1 => prop::sample::select(vec![
            json!(null), json!(true), json!(0), json!(-1), json!(1e300), json!(0.5), json!(u64::MAX), json!([]),
            json!({}), json!([[[[{}]]]]), json!({ "message": 7, "code": [] }), json!([null, 1, "x"]),
        ]),
        1 => (text(), text()).prop_map(|(message, code)| json!({ "message": message, "code": code, "type": code, "param": message })),
    ]
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => text(),
        2 => prop::sample::select(vec![
            "data: ", "event: ", "\n", "\n\n", "\r", ": ", "[DONE]", "{\"type\":\"response.completed\",\"response\":",
            "{\"type\":\"response.output_text.delta\",\"delta\":\"", "\"}", "{\"error\":{\"message\":\"", "{", "}", "[", "<html><title>",
            "{\"type\":\"error\",\"message\":\"", "{\"type\":\"response.created\",\"response\":{\"id\":\"",
        ]).prop_map(str::to_owned),
    ]
}

fn body() -> impl Strategy<Value = Body> {
    prop_oneof![
        6 => prop::collection::vec((any::<usize>(), value()), 0..4).prop_map(Body::Changed),
        3 => prop::collection::vec(piece(), 0..12).prop_map(Body::Pieces),
        1 => prop::collection::vec(any::<u8>(), 0..400).prop_map(Body::Bytes),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Body::Raw),
        1 => text().prop_map(|text| Body::Raw(text.into_bytes())),
    ]
}

fn behavior() -> impl Strategy<Value = Behavior> {
    let status = prop_oneof![
        6 => Just(200u16),
        1 => prop::sample::select(vec![100u16, 101, 103, 201, 204, 302, 304, 400, 401, 403, 404, 418, 429, 500, 503, 599, 600, 999]),
    ];
    let name = prop::sample::select(vec![
        "content-type",
        "x-request-id",
        "x-gateway-request-id",
        "retry-after",
        "x-ratelimit-limit-tokens",
        "set-cookie",
        "location",
        "www-authenticate",
        "content-encoding",
        "transfer-encoding",
        "x-echo",
    ]);
    let header = (name, prop_oneof![3 => text(), 1 => Just("application/json".to_owned())]);
    let headers = prop::collection::vec(header.prop_map(|(name, text)| (name.to_owned(), text)), 0..3);
    // One in forty never ends.
    (status, headers, body(), 0..40u8, prop::bool::weighted(0.1)).prop_map(
        |(status, headers, body, end, lies_about_length)| Behavior {
            status,
            headers,
            body,
            end,
            lies_about_length,
        },
    )
}

impl Behavior {
    fn reply(&self, request: &Request) -> Canned {
        let end = match self.end {
            0 => End::Hang,
            1 | 2 => End::Reset,
            _ => End::Close,
        };
        let body = match &self.body {
            Body::Raw(bytes) => return Canned { packets: vec![bytes.clone()], end },
            Body::Bytes(bytes) => bytes.clone(),
            Body::Pieces(pieces) => fill(&pieces.concat(), request).into_bytes(),
            Body::Changed(changes) => changed(request, changes).into_bytes(),
        };
        let media_type =
            if request.route() == Route::Stream { "text/event-stream" } else { "application/json" };
        let length = body.len() + usize::from(self.lies_about_length);
        let mut head = format!("HTTP/1.1 {} X\r\n", self.status);
        if !self.headers.iter().any(|(name, _)| name == "content-type") {
            write!(head, "content-type: {media_type}\r\n").expect("writing to a string succeeds");
        }
        if !self.headers.iter().any(|(name, _)| name == "transfer-encoding") {
            write!(head, "content-length: {length}\r\n").expect("writing to a string succeeds");
        }
        for (name, value) in &self.headers {
            // A line break would end the header, so it would no longer be one.
            write!(head, "{name}: {}\r\n", value.replace(['\r', '\n'], " "))
                .expect("writing to a string succeeds");
        }
        head.push_str("\r\n");
        Canned { packets: vec![[head.as_bytes(), &body].concat()], end }
    }
}

fn changed(request: &Request, changes: &[(usize, Value)]) -> String {
    let route = request.route();
    let mut document =
        if route == Route::Stream { good_events(request) } else { good_document(request, route) };
    for (place, value) in changes {
        let mut pointers = Vec::new();
        list_pointers(&document, "", &mut pointers);
        if let Some(pointer) = pointers.get(place % pointers.len().max(1))
            && let Some(target) = document.pointer_mut(pointer)
        {
            *target = value.clone();
        }
    }
    let text = match (&document, route) {
        (Value::Array(events), Route::Stream) if !events.iter().any(Value::is_array) => written(&document),
        _ => document.to_string(),
    };
    fill(&text, request)
}

fn list_pointers(value: &Value, place: &str, pointers: &mut Vec<String>) {
    let mut next = |step: &str, value: &Value| {
        let pointer = format!("{place}/{step}");
        list_pointers(value, &pointer, pointers);
        pointers.push(pointer);
    };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| next(&index.to_string(), item));
        }
        Value::Object(members) => members.iter().for_each(|(name, member)| next(name, member)),
        _ => {}
    }
}

/// All strings in a JSON value, one per line.
fn texts(value: &Value, found: &mut String) {
    match value {
        Value::String(text) => {
            found.push_str(text);
            found.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}

fn assert_no_secret(value: &Value) -> Result<(), TestCaseError> {
    let mut found = String::new();
    texts(value, &mut found);
    prop_assert!(!found.to_lowercase().contains("canary"), "{found}");
    for form in forms() {
        prop_assert!(!found.contains(&form), "{form} is in {found}");
    }
    // The key in base64, starting at each offset; and the key with invisible characters removed.
    prop_assert!(!found.contains(&BASE64_STANDARD.encode(CANARY)[..12]), "{found}");
    let seen: String = found.chars().filter(|letter| !letter.is_control() && *letter != '\u{200b}').collect();
    prop_assert!(!seen.contains(CANARY), "{found}");
    Ok(())
}

async fn run_against(behaviors: Arc<Vec<Behavior>>) -> Result<(), TestCaseError> {
    let answered = Arc::new(Mutex::new(0usize));
    let server = Server::start(move |request| {
        let mut answered = answered.lock().expect("not poisoned");
        let behavior = &behaviors[*answered % behaviors.len()];
        *answered += 1;
        behavior.reply(request)
    })
    .await;
    let mut options = Options::new(server.url());
    options.models = vec!["model-sol".to_owned()];
    options.timeout_ms = 1000;
    let kit = CheckKit::new(options, &key()).expect("within bounds");
    let events = Mutex::new(Vec::new());
    let finished = kit
        .run(
            &|progress| {
                let progress = serde_json::to_value(progress).expect("it serializes");
                events.lock().expect("not poisoned").push(progress);
            },
            &CancellationToken::new(),
        )
        .await;
    let document = valid_document(&finished.report, &Profile::default());
    prop_assert_eq!(finished.report.checks.len(), 6);
    assert_no_secret(&serde_json::from_str(&document).expect("a document"))?;
    assert_no_secret(&serde_json::to_value(&finished.evidence).expect("it serializes"))?;
    assert_no_secret(&Value::Array(events.into_inner().expect("not poisoned")))
}

#[test]
fn any_service_behavior_yields_a_valid_report_without_secrets() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let strategy = prop::collection::vec(behavior(), 4);
    let outcome = runner.run(&strategy, |behaviors| runtime.block_on(run_against(Arc::new(behaviors))));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// A stream with one letter per event: no single event contains the key, but together they do.
#[tokio::test]
async fn key_spelled_out_across_stream_events_is_redacted_from_evidence() {
    let server = Server::start(|request| {
        let events: Vec<Value> = request
            .key()
            .chars()
            .map(|letter| json!({ "type": "response.output_text.delta", "delta": letter.to_string() }))
            .collect();
        let body = written(&Value::Array(events));
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Canned { packets: vec![(head + &body).into_bytes()], end: End::Close }
    })
    .await;
    let mut options = Options::new(server.url());
    options.only = vec![gatewright::report::CheckId::ResponsesStream];
    let finished = crate::run(options).await;
    let exchange = finished.evidence[0].1.exchange.as_ref().expect("an exchange");
    assert_eq!(exchange.response, "[omitted: the events contain the API key in pieces]");
}
