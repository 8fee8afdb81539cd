//! Upstreams with AWS Signature Version 4 and binary event streams. The provider recomputes each signature
//! without the gateway's code.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gatewright_gateway::{ApiKey, KeyPlace, KeySource, Kind, Paths, SigV4Credentials, UpstreamConfig};
use ring::{digest, hmac};
use serde_json::{Value, json};
use time::format_description::parse_borrowed;
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::support::{Event, Server, start_with, until};
use crate::upstreams::{
    Scripted, Seen, Step, answer, config, json_answer, message, message_events, question, upstream,
};

const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const ARN: &str = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-1";
/// Each protocol's path for a unary response and for a stream.
const PATHS: [(&str, &str); 4] = [
    ("/v1/messages", "/v1/messages"),
    ("/v1/chat/completions", "/v1/chat/completions"),
    ("/v1/responses", "/v1/responses"),
    ("/v1beta/models/mine:generateContent", "/v1beta/models/mine:streamGenerateContent?alt=sse"),
];

/// The credentials of a caller, known to the provider.
#[derive(Clone, Copy)]
struct Caller {
    id: &'static str,
    secret: &'static str,
    session: Option<&'static str>,
}

const CALLER: Caller = Caller { id: "AKID1", secret: "canary-secret-1", session: Some("canary-session-1") };
const SECOND: Caller = Caller { id: "AKID2", secret: "canary-secret-2", session: Some("canary-session-2") };

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("memory");
        text
    })
}

fn hmac_of(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Whether a request is signed by a caller. Errors: what is wrong.
fn check(seen: &Seen, caller: Caller) -> Result<(), String> {
    let header = |name: &str| seen.header(name).ok_or_else(|| format!("no header {name}"));
    let (authorization, date) = (header("authorization")?, header("x-amz-date")?);
    let sent = PrimitiveDateTime::parse(
        date,
        &parse_borrowed::<2>("[year][month][day]T[hour][minute][second]Z").expect("a format"),
    );
    let age = OffsetDateTime::now_utc() - sent.map_err(|_| "no date")?.assume_utc();
    if age.whole_minutes().abs() >= 5 {
        return Err(format!("the time is {date}"));
    }
    if seen.header("x-amz-security-token") != caller.session {
        return Err("another session".to_owned());
    }
    let parts = authorization.strip_prefix("AWS4-HMAC-SHA256 ").ok_or("another algorithm")?;
    let parts: HashMap<&str, &str> = parts.split(", ").filter_map(|part| part.split_once('=')).collect();
    let scope = format!("{}/eu-west-1/bedrock/aws4_request", &date[..8]);
    if parts["Credential"] != format!("{}/{scope}", caller.id) {
        return Err(format!("the credential is {}", parts["Credential"]));
    }
    let names: Vec<&str> = parts["SignedHeaders"].split(';').collect();
    if !names.is_sorted() || !["host", "x-amz-date"].iter().all(|name| names.contains(name)) {
        return Err(format!("the headers are {names:?}"));
    }
    // The canonical path is encoded once more.
    let path = seen.path().replace('%', "%25");
    let headers = names.iter().map(|name| header(name).map(|value| format!("{name}:{}\n", value.trim())));
    let headers = headers.collect::<Result<String, _>>()?;
    let request =
        format!("POST\n{path}\n\n{headers}\n{}\n{}", parts["SignedHeaders"], sha256(seen.body.as_bytes()));
    let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256(request.as_bytes()));
    let key = format!("AWS4{}", caller.secret).into_bytes();
    let key = scope.split('/').fold(key, |key, part| hmac_of(&key, part));
    let signature = hex(&hmac_of(&key, &text));
    (parts["Signature"] == signature).then_some(()).ok_or_else(|| "another signature".to_owned())
}

/// The events of a message; the last one has a member that the provider adds.
fn events() -> Vec<Value> {
    let mut events = message_events();
    if let Some(last) = events.last_mut() {
        last["amazon-bedrock-invocationMetrics"] = json!({ "inputTokenCount": 3 });
    }
    events
}

/// A message of a binary event stream.
fn binary(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let length = |of: usize| u32::try_from(of).expect("a length").to_be_bytes();
    let mut encoded = Vec::new();
    for (name, value) in headers {
        encoded.push(u8::try_from(name.len()).expect("a length"));
        encoded.extend_from_slice(name.as_bytes());
        encoded.push(7);
        encoded.extend_from_slice(&u16::try_from(value.len()).expect("a length").to_be_bytes());
        encoded.extend_from_slice(value.as_bytes());
    }
    let mut bytes = [length(16 + encoded.len() + payload.len()), length(encoded.len())].concat();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes.extend_from_slice(&encoded);
    bytes.extend_from_slice(payload);
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
    bytes
}

fn chunk(event: &Value) -> Vec<u8> {
    let payload = json!({ "bytes": STANDARD.encode(event.to_string()), "p": "abcdefgh" }).to_string();
    let headers =
        [(":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event")];
    binary(&headers, payload.as_bytes())
}

fn exception(name: &str, message: &str) -> Vec<u8> {
    let headers = [(":exception-type", name), (":message-type", "exception")];
    binary(&headers, json!({ "message": message }).to_string().as_bytes())
}

/// A stream of these messages in packets of this size.
fn binary_stream(messages: &[Vec<u8>], size: usize) -> Vec<Step> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\n\r\n";
    let mut steps = vec![Step::Write(head.into())];
    steps.extend(messages.concat().chunks(size).map(|packet| Step::Write(packet.to_vec())));
    steps.push(Step::Close);
    steps
}

fn failed(status: u16, error_type: &str, message: &str) -> Vec<Step> {
    let body = json!({ "message": message }).to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\nx-amzn-errortype: {error_type}:http://internal.example/\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    vec![Step::Write(head.into())]
}

/// Answers requests that the caller has signed and whose body the provider accepts.
fn strict(seen: &Seen, caller: Caller) -> Vec<Step> {
    if let Err(why) = check(seen, caller) {
        return failed(403, "InvalidSignatureException", &why);
    }
    let body = seen.json();
    let extra = ["model", "stream"].into_iter().find(|name| body.get(*name).is_some());
    if extra.is_some() || body["anthropic_version"] != "bedrock-2023-05-31" {
        return failed(400, "ValidationException", &format!("an extra input: {extra:?}"));
    }
    if seen.path().ends_with("/invoke-with-response-stream") {
        let messages: Vec<Vec<u8>> = events().iter().map(chunk).collect();
        return binary_stream(&messages, 100);
    }
    json_answer(200, &message())
}

/// The upstream as its provider documents it.
fn bedrock(url: &str, sigv4: SigV4Credentials) -> UpstreamConfig {
    let mut one = upstream("one", Kind::Messages, url);
    one.keys.clear();
    one.key_source = Some(KeySource::SigV4(sigv4));
    one.envelope.paths = Paths::default();
    one.envelope.paths.answer = Some("/model/{model}/invoke".to_owned());
    one.envelope.paths.stream = Some("/model/{model}/invoke-with-response-stream".to_owned());
    one.envelope.set_body.insert("anthropic_version".to_owned(), "bedrock-2023-05-31".into());
    one.envelope.omit_body = vec!["stream".to_owned()];
    one.envelope.betas_in_body = true;
    one
}

/// Credentials of a caller from the environment.
fn variables(caller: Caller) -> SigV4Credentials {
    with_variables([
        ("AWS_ACCESS_KEY_ID", caller.id.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", caller.secret.to_owned()),
        ("AWS_SESSION_TOKEN", caller.session.unwrap_or_default().to_owned()),
    ])
}

fn with_variables<const N: usize>(variables: [(&str, String); N]) -> SigV4Credentials {
    let mut sigv4 = SigV4Credentials::new("eu-west-1", "bedrock");
    sigv4.environment.insert("AWS_EC2_METADATA_DISABLED".to_owned(), "true".to_owned());
    sigv4.environment.extend(variables.map(|(name, value)| (name.to_owned(), value)));
    sigv4
}

/// A gateway with the model `mine`.
async fn in_front_of(upstreams: Vec<UpstreamConfig>, theirs: &str) -> Server {
    let mut config = config(upstreams);
    for model in &mut config.models {
        model.translate_responses = true;
        for target in &mut model.targets {
            theirs.clone_into(&mut target.model);
        }
    }
    start_with(config).await
}

/// A request to a path of a protocol.
fn request(path: &str, stream: bool) -> Value {
    match path {
        "/v1/messages" => {
            json!({ "model": "mine", "max_tokens": 9, "stream": stream, "messages": [{ "role": "user", "content": "hi" }] })
        }
        "/v1/chat/completions" => question(stream),
        "/v1/responses" => json!({ "model": "mine", "stream": stream, "store": false, "input": "hi" }),
        _ => json!({ "contents": [{ "role": "user", "parts": [{ "text": "hi" }] }] }),
    }
}

#[tokio::test]
async fn requests_of_each_protocol_are_signed_and_binary_streams_decoded() {
    let provider = Scripted::answering(|seen| strict(seen, CALLER)).await;
    for (model, path) in [
        (MODEL, "/v1/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0"),
        (
            ARN,
            "/v1/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.anthropic.claude-1",
        ),
    ] {
        let server = in_front_of(vec![bedrock(&provider.url, variables(CALLER))], model).await;
        for (answered, streamed) in PATHS {
            let answer = server.ask(answered, &request(answered, false)).await.to_string();
            assert!(answer.contains("hello"), "{answered}: {answer}");
            assert_eq!(provider.seen().pop().expect("a request").path(), format!("{path}/invoke"));
            let events = server.stream(streamed, &request(streamed, true)).await;
            let text: Vec<&str> = events.iter().map(|event| &*event.data).collect();
            assert!(text.concat().contains("hello"), "{streamed}: {text:?}");
            let seen = provider.seen().pop().expect("a request");
            assert_eq!(seen.path(), format!("{path}/invoke-with-response-stream"));
        }
    }
}

#[tokio::test]
async fn binary_stream_is_relayed_with_the_protocols_event_names() {
    let provider = Scripted::answering(|seen| strict(seen, CALLER)).await;
    let server = in_front_of(vec![bedrock(&provider.url, variables(CALLER))], MODEL).await;
    let events_seen = server.stream("/v1/messages", &request("/v1/messages", true)).await;
    let mut expected = events();
    expected[0]["message"]["model"] = "mine".into();
    assert_eq!(events_seen.len(), expected.len());
    for (event, expected) in events_seen.iter().zip(&expected) {
        assert_eq!(event.name.as_deref(), expected["type"].as_str());
        assert_eq!(event.json(), *expected);
    }
}

#[tokio::test]
async fn credentials_come_from_a_profile_or_a_container() {
    let provider = Scripted::answering(|seen| strict(seen, SECOND)).await;
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir(home.path().join(".aws")).expect("a folder");
    let credentials = format!(
        "[default]\naws_access_key_id = OTHER\naws_secret_access_key = other\n[team]\naws_access_key_id = {}\n\
         aws_secret_access_key = {}\naws_session_token = {}\n",
        SECOND.id,
        SECOND.secret,
        SECOND.session.unwrap_or_default()
    );
    fs::write(home.path().join(".aws/credentials"), credentials).expect("a file");
    let mut of_profile = variables(CALLER);
    of_profile.profile = Some("team".to_owned());
    of_profile.home_dir = Some(home.path().to_owned());

    let container = Scripted::answering(|_| json_answer(200, &container_credentials(SECOND, 3600))).await;
    let of_container = with_variables([("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url.clone())]);
    for sigv4 in [of_profile, of_container] {
        let server = in_front_of(vec![bedrock(&provider.url, sigv4)], MODEL).await;
        for stream in [false, true] {
            let answer: Value = if stream {
                let events = server.stream("/v1/messages", &request("/v1/messages", true)).await;
                events.iter().map(Event::json).collect()
            } else {
                server.ask("/v1/messages", &request("/v1/messages", false)).await
            };
            assert!(answer.to_string().contains("hello"), "{answer}");
        }
    }
    assert_eq!(container.count(), 1, "credentials are used again while they are valid");
}

fn container_credentials(caller: Caller, seconds: i64) -> Value {
    let end = OffsetDateTime::now_utc() + time::Duration::seconds(seconds);
    let end = end.format(&time::format_description::well_known::Rfc3339).expect("a time");
    json!({ "AccessKeyId": caller.id, "SecretAccessKey": caller.secret, "Token": caller.session, "Expiration": end })
}

#[tokio::test]
async fn request_with_expired_credentials_is_retried_once_with_new_ones() {
    let provider = Scripted::answering(|seen| match check(seen, CALLER) {
        Ok(()) => {
            failed(403, "ExpiredTokenException", "The security token included in the request is expired")
        }
        Err(_) => strict(seen, SECOND),
    })
    .await;
    let count = AtomicUsize::new(0);
    let container = Scripted::answering(move |_| {
        // The minimum pause between two fetches is a twentieth of the lifetime.
        let (caller, seconds) =
            if count.fetch_add(1, Ordering::SeqCst) == 0 { (CALLER, 10) } else { (SECOND, 3600) };
        json_answer(200, &container_credentials(caller, seconds))
    })
    .await;
    let sigv4 = with_variables([("AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url.clone())]);
    let server = in_front_of(vec![bedrock(&provider.url, sigv4)], MODEL).await;
    until(|| container.count() == 1).await;
    tokio::time::sleep(Duration::from_millis(550)).await;
    let answer = server.ask("/v1/messages", &request("/v1/messages", false)).await;
    assert_eq!(answer["content"][0]["text"], "hello");
    assert_eq!((provider.count(), container.count()), (2, 2));
}

#[tokio::test]
async fn other_rejections_do_not_refresh_credentials() {
    for (status, error_type, expected) in [
        (429, "ThrottlingException", 429),
        (403, "AccessDeniedException", 403),
        (400, "ValidationException", 400),
        (424, "ModelErrorException", 424),
    ] {
        let provider = Scripted::answering(move |seen| match check(seen, CALLER) {
            // Some providers quote what they received.
            Ok(()) => failed(status, error_type, "no: canary-session-1 canary-secret-1"),
            Err(why) => failed(500, "InvalidSignatureException", &why),
        })
        .await;
        let server = in_front_of(vec![bedrock(&provider.url, variables(CALLER))], MODEL).await;
        let (status, answer) = server.refused("/v1/messages", &request("/v1/messages", false)).await;
        assert_eq!((status, provider.count()), (expected, 1), "{error_type}: {answer}");
        assert!(!answer.to_string().contains("canary"), "{answer}");
    }
}

#[tokio::test]
async fn early_exception_fails_over_unless_it_is_a_request_error() {
    for (name, status) in [
        ("throttlingException", 200),
        ("serviceUnavailableException", 200),
        ("internalServerException", 200),
        ("modelStreamErrorException", 200),
        ("validationException", 400),
    ] {
        let first =
            Scripted::answering(move |_| binary_stream(&[exception(name, "canary-session-1")], 1000)).await;
        let second = Scripted::answering(|seen| strict(seen, CALLER)).await;
        let mut other = bedrock(&second.url, variables(CALLER));
        "two".clone_into(&mut other.name);
        let server = in_front_of(vec![bedrock(&first.url, variables(CALLER)), other], MODEL).await;
        let response = server.post("/v1/messages", &request("/v1/messages", true)).send().await;
        let response = response.expect("an answer");
        assert_eq!(response.status().as_u16(), status, "{name}");
        let text = response.text().await.expect("a body");
        assert!(!text.contains("canary"), "{text}");
        assert_eq!(second.count(), usize::from(status == 200), "{name}");
        assert_eq!(text.contains("message_stop"), status == 200, "{name}: {text}");
    }
}

#[tokio::test]
async fn mid_stream_exception_ends_the_stream_with_its_error() {
    let provider = Scripted::answering(|_| {
        let mut messages: Vec<Vec<u8>> = events()[..3].iter().map(chunk).collect();
        messages.push(exception("throttlingException", "slow down"));
        binary_stream(&messages, 1000)
    })
    .await;
    let server = in_front_of(vec![bedrock(&provider.url, variables(CALLER))], MODEL).await;
    for ((_, path), word) in PATHS.into_iter().zip([
        "\"type\":\"rate_limit_error\"",
        "\"code\":\"rate_limit_exceeded\"",
        "\"code\":\"rate_limit_exceeded\"",
        "\"status\":\"RESOURCE_EXHAUSTED\"",
    ]) {
        let events = server.stream(path, &request(path, true)).await;
        let text: String = events.iter().map(|event| &*event.data).collect();
        assert!(text.contains("hello"), "{path}: {text}");
        let last = &events.last().expect("an event").data;
        assert!(last.contains(word) && last.contains("slow down"), "{path}: {last}");
    }
}

#[tokio::test]
async fn truncated_or_damaged_binary_stream_is_an_error() {
    let whole: Vec<Vec<u8>> = events().iter().map(chunk).collect();
    let mut damaged = whole.clone();
    let last = damaged[3].len() - 1;
    damaged[3][last] ^= 1;
    let mut cut = whole[..4].to_vec();
    cut[3].truncate(20);
    for messages in [damaged, cut] {
        let provider = Scripted::answering(move |_| binary_stream(&messages, 1000)).await;
        let server = in_front_of(vec![bedrock(&provider.url, variables(CALLER))], MODEL).await;
        let events = server.stream("/v1/messages", &request("/v1/messages", true)).await;
        let last = events.last().expect("an event");
        assert_eq!(last.name.as_deref(), Some("error"));
        assert_eq!(last.json()["error"]["type"], "api_error");
    }
}

#[tokio::test]
async fn api_key_works_on_the_same_paths() {
    let provider = Scripted::answering(|seen| {
        assert_eq!(seen.header("authorization"), Some("Bearer api-key-canary"));
        let messages: Vec<Vec<u8>> = events().iter().map(chunk).collect();
        binary_stream(&messages, 1000)
    })
    .await;
    let mut one = bedrock(&provider.url, variables(CALLER));
    one.key_source = None;
    one.keys = vec![ApiKey::new("api-key-canary").expect("a key")];
    one.key_place = Some(KeyPlace::header("authorization", "Bearer "));
    let server = in_front_of(vec![one], MODEL).await;
    let events = server.stream("/v1/messages", &request("/v1/messages", true)).await;
    assert_eq!(events.len(), 6);
}

#[tokio::test]
async fn missing_credentials_error_hides_the_sources_tried() {
    let provider = Scripted::start([vec![Step::Write(answer(200, "application/json", "{}"))]]).await;
    let server = in_front_of(vec![bedrock(&provider.url, with_variables([]))], MODEL).await;
    let (status, answer) = server.refused("/v1/messages", &request("/v1/messages", false)).await;
    assert!(status >= 500, "{answer}");
    let answer = answer.to_string();
    assert!(answer.contains("its credentials cannot be used") && !answer.contains("AWS_"), "{answer}");
    assert_eq!(provider.count(), 0);
}
