//! A service that echoes the client's secrets wherever it can: no error shows one (5 rule 1). The vectors are shared by
//! all languages.

use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::BoxFuture;
use gatewright::{
    Attempt, Call, Client, Error, Middleware, Operation, Outcome, RequestOptions, SaveOptions, WaitOptions,
};
use serde::Deserialize;

use crate::server::{Script, Server};
use crate::{chat_call, chat_request, vectors};

const KEY: &str = "gw-Canary/4+7f=x9";
const IN_HEADER: &str = "canary-in-a-header";
const IN_QUERY: &str = "canary-in-a-query";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "about")]
    _about: Option<String>,
    operation: String,
    stream: bool,
    response: Echo,
    error: Expected,
}

#[derive(Debug, Deserialize)]
struct Echo {
    status: u16,
    headers: std::collections::BTreeMap<String, String>,
    body: String,
}

#[derive(Debug, Deserialize)]
struct Expected {
    kind: String,
    message: Option<String>,
}

fn each(form: impl Fn(u8) -> String) -> String {
    KEY.bytes().map(form).collect()
}

fn hex() -> String {
    each(|byte| format!("{byte:02x}"))
}

fn base64() -> String {
    BASE64_STANDARD.encode(format!("Bearer {KEY}"))
}

/// The text with its placeholders filled in.
fn echoed(text: &str) -> String {
    let (head, tail) = KEY.split_at(8);
    [
        ("key", KEY.to_owned()),
        ("percent", each(|byte| format!("%{byte:02X}"))),
        ("json", each(|byte| format!("\\u{byte:04x}"))),
        ("html", each(|byte| format!("&#{byte};"))),
        ("hex", hex()),
        ("base64", base64()),
        ("upper", KEY.to_uppercase()),
        ("head", head.to_owned()),
        ("tail", tail.to_owned()),
        ("header", IN_HEADER.to_owned()),
        ("query", IN_QUERY.to_owned()),
    ]
    .into_iter()
    .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), &value))
}

/// Everything that an error shows.
fn shown(error: &Error) -> String {
    let mut text = format!("{error}\n{error:?}\n{error:#?}\n{}\n", error.message());
    let attributes = [error.code(), error.param(), error.error_type(), error.request_id()];
    for attribute in attributes.into_iter().flatten() {
        writeln!(text, "{attribute}").unwrap();
    }
    for bytes in [error.body(), error.partial()].into_iter().flatten() {
        writeln!(text, "{}", String::from_utf8_lossy(bytes)).unwrap();
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) {
            // The value with its escapes decoded.
            writeln!(text, "{value}").unwrap();
        }
    }
    for (name, value) in error.headers().into_iter().flatten() {
        writeln!(text, "{name}: {}", String::from_utf8_lossy(value.as_bytes())).unwrap();
    }
    let mut cause = error.source();
    while let Some(source) = cause {
        writeln!(text, "{source} {source:?}").unwrap();
        cause = source.source();
    }
    text
}

#[track_caller]
fn assert_no_secret(text: &str, name: &str) {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8_lossy().to_lowercase();
    assert!(!decoded.contains("canary"), "{name}: {text}");
    for form in [hex(), base64(), BASE64_STANDARD.encode(KEY)] {
        assert!(!text.contains(&form), "{name}: {text}");
    }
}

fn client(server: &Server) -> Client {
    Client::builder().base_url(server.url()).api_key(KEY).max_retries(0).build().unwrap()
}

fn options() -> RequestOptions {
    RequestOptions {
        extra_headers: vec![("x-goog-api-key".to_owned(), IN_HEADER.to_owned())],
        extra_query: vec![("key".to_owned(), IN_QUERY.to_owned())],
        ..RequestOptions::default()
    }
}

fn script(answer: &Echo) -> Script {
    let headers: Vec<_> = answer.headers.iter().map(|(name, value)| (name.as_str(), echoed(value))).collect();
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    Script::whole(answer.status, &headers, echoed(&answer.body))
}

async fn failure(client: &Client, operation: &'static Operation, stream: bool) -> Error {
    let mut call = Call::new(operation).body("{}");
    for parameter in operation.path_parameters {
        call = call.path(*parameter, "m");
    }
    let client = client.with_options(options());
    if !stream {
        return client.call(call).await.expect_err("an error");
    }
    let mut stream = match client.open(call).await {
        Ok(stream) => stream,
        Err(error) => return error,
    };
    stream.finish().await.expect_err("an error")
}

#[tokio::test]
async fn no_error_shows_a_secret_that_a_service_echoes() {
    for case in vectors::read::<Case>("secrets/echoes.json") {
        let operation = gatewright::operations::by_id(&case.operation).expect("an operation");
        let server = Server::start([script(&case.response)]).await;
        let error = failure(&client(&server), operation, case.stream).await;
        assert_eq!(error.kind().name(), case.error.kind, "{}: {error}", case.name);
        if let Some(message) = &case.error.message {
            assert_eq!(error.message(), message, "{}", case.name);
        }
        assert_no_secret(&shown(&error), &case.name);
    }
}

/// A service may quote parts of what a request carries.
#[tokio::test]
async fn no_error_shows_part_of_a_request_header() {
    let basic = BASE64_STANDARD.encode("canary-user:canary-password");
    let headers = [
        ("cookie", "session=canary-session; theme=canary-theme"),
        ("proxy-authorization", &*format!("Basic {basic}")),
        ("x-api-key", "canary key of two words"),
    ];
    let body = format!(
        r#"{{"error":{{"message":"{basic}: canary-user, canary-password; canary-session and canary-theme"}},
        "more":"canary key of two words"}}"#
    );
    let server = Server::start([Script::whole(403, &[("x-echo", "canary-session")], body)]).await;
    let extra_headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let client = client(&server).with_options(RequestOptions { extra_headers, ..RequestOptions::default() });
    let error = client.call(chat_call()).await.expect_err("rejected");
    assert_eq!(error.message(), "[redacted]: [redacted], [redacted]; [redacted] and [redacted]");
    assert_no_secret(&shown(&error), "parts of headers");
    assert!(!shown(&error).contains(&basic), "{error:?}");
}

/// Typed calls parse the response into a type, and the parser's errors quote it.
#[tokio::test]
async fn no_typed_call_error_shows_a_secret() {
    let wrong = [
        r#"{"id":"{{key}}","object":"chat.completion","created":"{{key}}","model":"m","choices":[]}"#,
        r#"{"id":"c","object":"{{key}}","created":1,"model":"m","choices":"{{json}}"}"#,
    ];
    for body in wrong {
        let server = Server::start([Script::json(&echoed(body))]).await;
        let error =
            client(&server).chat().completions().create(&chat_request()).await.expect_err("another form");
        assert_eq!(error.kind().name(), "decode");
        assert_no_secret(&shown(&error), body);
    }
    let event = r#"data: {"id":"c","choices":{"index":"{{key}}"},"created":"{{key}}"}"#;
    let events = Script::events().packet(echoed(event)).packet("\n\n").end();
    let server = Server::start([events]).await;
    let mut stream = client(&server).chat().completions().stream(&chat_request()).await.unwrap();
    while let Some(read) = futures_util::StreamExt::next(&mut stream).await {
        if let Err(error) = read {
            assert_no_secret(&shown(&error), event);
        }
    }
}

/// 2.7: a task's failure is reported in its record.
#[tokio::test]
async fn no_task_failure_shows_a_secret() {
    let task =
        r#"{"id":"vid_1","status":"failed","error":{"message":"{{key}} is not valid","code":"{{json}}"}}"#;
    let server = Server::start([Script::json(&echoed(task))]).await;
    let client = client(&server);
    let waited = client.videos().generations().wait("vid_1", WaitOptions::default()).await;
    let error = waited.expect_err("it failed");
    assert_eq!((error.kind().name(), error.message()), ("task_failed", "[redacted] is not valid"));
    assert_no_secret(&shown(&error), "task");
    let record = echoed(r#"{"id":"{{key}}","status":"{{key}}"}"#);
    let folder = tempfile::tempdir().unwrap();
    let saved =
        client.save_video(record.as_bytes(), &folder.path().join("v.mp4"), SaveOptions::default()).await;
    assert_no_secret(&shown(&saved.expect_err("nothing to save")), "record");
}

/// 4 rule 4: the query of a file's address gives access to the file.
#[tokio::test]
async fn no_download_error_shows_the_key_or_access_tokens() {
    let echo = r#"{"error":{"message":"{{key}} may not read ?sig=canary-signature; canary-signature"}}"#;
    let answer = || Script::whole(403, &[("x-echo", "canary-signature")], echoed(echo));
    let server = Server::start([answer(), answer()]).await;
    let client = client(&server);
    let url = format!("{}/files/a.png?exp=1&sig=canary-signature", server.url());
    let opened = client.download(&url).await.expect_err("rejected");
    assert_no_secret(&shown(&opened), "download");
    let folder = tempfile::tempdir().unwrap();
    let saved = client.save(&url, folder.path().join("a.png"), SaveOptions::default()).await;
    assert_no_secret(&shown(&saved.expect_err("rejected")), "save");
}

/// Middleware that logs its arguments.
#[derive(Default)]
struct Noted(Mutex<String>);

impl Middleware for Noted {
    fn after<'a>(&'a self, _: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let mut noted = self.0.lock().unwrap();
            write!(noted, "{outcome:?}").unwrap();
            noted.push_str(&outcome.error().map(shown).unwrap_or_default());
            Ok(())
        })
    }
}

#[tokio::test]
async fn middleware_gets_errors_without_secrets_including_rotated_keys() {
    let body = echoed(r#"{"error":{"message":"{{key}} was replaced"}}"#);
    let answers = [401, 400].map(|status| Script::whole(status, &[("set-cookie", "canary")], &body));
    let server = Server::start(answers).await;
    let noted = Arc::new(Noted::default());
    let provider = |refresh: bool| -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move { Ok(if refresh { "another-key" } else { KEY }.to_owned()) })
    };
    let client = Client::builder()
        .base_url(server.url())
        .api_key_provider(Arc::new(provider))
        .middleware(Arc::clone(&noted) as _)
        .max_retries(0)
        .build()
        .unwrap();
    let error = client.call(chat_call()).await.expect_err("rejected");
    assert_eq!((error.status(), error.message()), (Some(400), "[redacted] was replaced"));
    assert_no_secret(&shown(&error), "call");
    assert_no_secret(&noted.0.lock().unwrap(), "middleware");
}
