//! `GATEWRIGHT_LOG`: the log on stderr.

use std::sync::Arc;

use gatewright::{BoxFuture, Client, Error, RequestOptions};

use crate::server::{Script, Server};
use crate::{COMPLETION, chat_call, child};

/// Makes one call with two attempts in a process of its own, and returns what that writes to stderr.
async fn logged(test: &str, level: Option<&str>) -> String {
    let busy = Script::whole(503, &[("retry-after-ms", "1")], r#"{"error":{"message":"busy, sk-canary"}}"#);
    let fine = Script::whole(200, &[("x-request-id", "req_2"), ("set-cookie", "canary")], COMPLETION);
    let server = Server::start([busy, fine]).await;
    let variables: Vec<(&str, &str)> = level.map(|level| ("GATEWRIGHT_LOG", level)).into_iter().collect();
    let output = child::run(test, &server.url(), &variables).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap().replace(&server.url(), "URL")
}

async fn call(base: &str) {
    let client = Client::builder().base_url(base).api_key("sk-canary").max_retries(1).build().unwrap();
    let options = RequestOptions {
        extra_query: vec![("api_key".to_owned(), "canary-2".to_owned())],
        extra_headers: vec![("x-tenant".to_owned(), "blue".to_owned())],
        ..RequestOptions::default()
    };
    client.call(chat_call().options(options)).await.unwrap();
}

#[tokio::test]
async fn info_writes_a_line_for_each_attempt() {
    if let Some(base) = child::task() {
        return call(&base).await;
    }
    let text = logged("logging::info_writes_a_line_for_each_attempt", Some("info")).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let call = "POST URL/v1/chat/completions?api_key=redacted";
    let first = format!(
        "gatewright: create_chat_completion attempt 1: {call}: 503 internal_server (busy, [redacted]) after 0."
    );
    assert!(lines[0].starts_with(&first), "{text}");
    assert!(
        lines[1].starts_with(&format!("gatewright: create_chat_completion attempt 2: {call}: 200 after 0."))
    );
    assert!(lines[1].ends_with(" s, request req_2"), "{text}");
}

#[tokio::test]
async fn debug_logs_headers_and_bodies_without_secrets() {
    if let Some(base) = child::task() {
        return call(&base).await;
    }
    let text = logged("logging::debug_logs_headers_and_bodies_without_secrets", Some("DEBUG")).await;
    assert!(!text.contains("canary"), "{text}");
    for shown in [r#""x-tenant": "blue""#, r#"  > {"model":"model-sol""#, r#"  < {"id":"c1""#] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
}

#[tokio::test]
async fn clients_own_keys_are_redacted_even_if_the_attempt_carries_another() {
    if let Some(base) = child::task() {
        let client = Client::builder().base_url(&base).api_key("canary-fixed").build().unwrap();
        let options = RequestOptions {
            extra_headers: vec![("authorization".to_owned(), "Bearer canary-of-the-call".to_owned())],
            ..RequestOptions::default()
        };
        client.call(chat_call().options(options)).await.unwrap();
        let provider = |refresh: bool| -> BoxFuture<'static, Result<String, Error>> {
            let key = if refresh { "canary-new" } else { "canary-old" };
            Box::pin(async move { Ok(key.to_owned()) })
        };
        let client = Client::builder().base_url(&base).api_key_provider(Arc::new(provider)).build().unwrap();
        client.call(chat_call()).await.unwrap();
        return;
    }
    let quoting = |status, keys| Script::whole(status, &[], format!(r#"{{"keys":"{keys}"}}"#));
    let server = Server::start([
        quoting(200, "canary-fixed canary-of-the-call"),
        quoting(401, "canary-old"),
        quoting(200, "canary-old canary-new"),
    ])
    .await;
    let name = "logging::clients_own_keys_are_redacted_even_if_the_attempt_carries_another";
    let output = child::run(name, &server.url(), &[("GATEWRIGHT_LOG", "debug")]).await;
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(text.matches("[redacted] [redacted]").count(), 2, "{text}");
}

#[tokio::test]
async fn nothing_is_logged_by_default() {
    if let Some(base) = child::task() {
        return call(&base).await;
    }
    assert_eq!(logged("logging::nothing_is_logged_by_default", None).await, "");
}

#[tokio::test]
async fn invalid_level_is_reported_once() {
    if let Some(base) = child::task() {
        call(&base).await;
        // Creates another client in the same process.
        drop(Client::builder().api_key("k").build().unwrap());
        return;
    }
    let text = logged("logging::invalid_level_is_reported_once", Some("loud")).await;
    assert_eq!(text, "gatewright: GATEWRIGHT_LOG is \"loud\": it must be info, debug or off\n");
}
