//! What clients see when an upstream or the gateway fails (ours).

use gatewright_gateway::{ApiKey, Config, Kind};
use reqwest::Method;
use serde_json::json;

use crate::support::{KEY, read, send, start, start_with};
use crate::upstreams::{
    Scripted, Step, UPSTREAM_KEY, answer, chunks, completion, config, json_answer, question, stream, upstream,
};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn upstream_error_names_the_upstream() {
    let steps = [
        json_answer(400, &json!({"error": {"message": "bad"}})),
        json_answer(429, &json!({"error": {"message": "slowly"}})),
        json_answer(500, &json!({})),
        vec![Step::Write(answer(200, "text/html", "<html>")), Step::Close],
        vec![Step::Reset],
    ];
    for steps in steps {
        let scripted = Scripted::start([steps.clone()]).await;
        let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
        let response = send(server.post(CHAT, &question(false))).await;
        assert!(!response.status().is_success());
        assert_eq!(response.headers()["x-gatewright-upstream"], "one", "{steps:?}");
    }
    let server = start_with(config(vec![upstream("one", Kind::Chat, "http://127.0.0.1:9/v1")])).await;
    let own = send(server.post(CHAT, &json!({"model": "mine"}))).await;
    assert_eq!((own.status().as_u16(), own.headers().get("x-gatewright-upstream")), (400, None));
}

/// A short request of each protocol, its path, and the kind of upstream for it.
fn protocols() -> [(Kind, &'static str, serde_json::Value); 4] {
    let turns = json!([{"role": "user", "content": "hi"}]);
    [
        (Kind::Chat, CHAT, question(false)),
        (Kind::Responses, "/v1/responses", json!({"model": "mine", "input": "hi", "store": false})),
        (Kind::Messages, "/v1/messages", json!({"model": "mine", "max_tokens": 9, "messages": turns})),
        (
            Kind::Native,
            "/v1beta/models/mine:generateContent",
            json!({"contents": [{"parts": [{"text": "hi"}]}]}),
        ),
    ]
}

#[tokio::test]
async fn upstream_error_details_reach_clients_of_the_same_protocol() {
    let answers = [
        json!({"error": {"message": "bad", "type": "odd_error", "param": "n", "code": "odd", "inner": {"n": [1.5]}}, "trace": 7}),
        json!({"error": {"message": "bad", "type": "odd_error", "param": "n", "code": "odd", "inner": {"n": [1.5]}}, "trace": 7}),
        json!({"type": "error", "error": {"type": "odd_error", "message": "bad", "inner": {"n": [1.5]}}, "trace": 7}),
        json!({"error": {"code": 400, "message": "bad", "status": "FAILED_PRECONDITION", "inner": {"n": [1.5]},
            "details": [{"@type": "type.example/odd", "metadata": {"n": "1"}}]}, "trace": 7}),
    ];
    for ((kind, path, body), answer) in protocols().into_iter().zip(answers) {
        let scripted = Scripted::start([json_answer(400, &answer)]).await;
        let server = start_with(config(vec![upstream("one", kind, &scripted.url)])).await;
        let (status, mut seen) = server.refused(path, &body).await;
        assert_eq!(status, 400, "{seen}");
        let members = seen["error"].as_object().cloned().expect("an error");
        for (name, value) in answer["error"].as_object().expect("an error") {
            assert_eq!(members.get(name), Some(value), "{path}: {name} in {seen}");
        }
        assert_eq!(seen["trace"].take(), 7, "{path}");
        if kind == Kind::Messages {
            assert!(seen["request_id"].is_string(), "{seen}");
        }
    }
}

#[tokio::test]
async fn upstream_error_details_are_redacted_and_bounded() {
    let secret = json!({"error": {"message": "bad", "inner": [{"key": UPSTREAM_KEY, UPSTREAM_KEY: "x"}]}});
    let long = json!({"error": {"message": "bad", "inner": "x".repeat(20_000)}});
    // Nothing is returned about a rejected key.
    let refused = json!({"error": {"message": "bad", "code": "invalid_api_key", "inner": "sk-ca**42"}});
    for (status, body, inner) in
        [(400, secret, true), (400, long, false), (401, refused.clone(), false), (400, refused, false)]
    {
        let scripted = Scripted::start([json_answer(status, &body)]).await;
        let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
        let (_, seen) = server.refused(CHAT, &question(false)).await;
        assert_eq!(seen["error"].get("inner").is_some(), inner, "{seen}");
        let text = seen.to_string();
        assert!(!text.contains(UPSTREAM_KEY) && text.len() < 2_000, "{text}");
    }
}

#[tokio::test]
async fn stream_error_keeps_the_upstreams_details() {
    let started = chunks(&["Hel"]).replace("data: [DONE]\n\n", "");
    let error = r#"{"error":{"message":"bad","type":"odd_error","inner":{"n":[1.5]}},"trace":7}"#;
    let scripted = Scripted::start([stream(&format!("{started}data: {error}\n\n"))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let events = server.stream(CHAT, &question(true)).await;
    let last = events.last().expect("events").json();
    assert_eq!(last["error"]["inner"], json!({"n": [1.5]}), "{last}");
    assert_eq!((&last["error"]["type"], &last["trace"]), (&json!("odd_error"), &json!(7)), "{last}");

    let failed = r#"{"type":"response.failed","sequence_number":1,"response":{"id":"resp_1","object":"response","model":"theirs",
        "status":"failed","output":[{"type":"future"}],"error":{"code":"odd","message":"bad","inner":1}}}"#;
    let created = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"theirs","output":[]}}"#;
    let failed = failed.replace('\n', "");
    let scripted = Scripted::start([stream(&format!("data: {created}\n\ndata: {failed}\n\n"))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Responses, &scripted.url)])).await;
    let body = json!({"model": "mine", "input": "hi", "store": false, "stream": true});
    let events = server.stream("/v1/responses", &body).await;
    let last = events.last().expect("events").json();
    assert_eq!(last["response"]["error"]["inner"], 1, "{last}");
    assert_eq!(last["response"]["output"], json!([{"type": "future"}]), "{last}");
    assert_eq!(last["response"]["model"], "mine", "{last}");
}

#[tokio::test]
async fn messages_errors_repeat_the_request_id() {
    let server = start().await;
    for (method, path, key, status) in [
        (Method::POST, "/v1/messages", KEY, 400),
        (Method::POST, "/v1/messages", "wrong", 401),
        (Method::GET, "/v1/messages", KEY, 405),
        (Method::GET, "/v1/messages/nothing", KEY, 404),
    ] {
        let request = server.bare(method, path).bearer_auth(key).json(&json!({"model": "model-sol"}));
        let response = send(request).await;
        assert_eq!(response.status().as_u16(), status, "{path}");
        let id = response.headers()["request-id"].to_str().expect("ASCII").to_owned();
        assert_eq!(response.headers()["x-request-id"], id.as_str());
        let body: serde_json::Value =
            serde_json::from_str(&response.text().await.expect("a body")).expect("JSON");
        assert_eq!((&body["type"], &body["request_id"]), (&json!("error"), &json!(id)), "{body}");
        assert!(body["error"]["type"].is_string(), "{body}");
    }
    let body =
        json!({"model": "model-sol", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    let response = send(server.post("/v1/messages", &body)).await;
    assert_eq!(response.headers()["request-id"], response.headers()["x-request-id"]);
    // Other protocols don't have this header and member.
    let response = send(server.get("/v1/messagesx")).await;
    assert_eq!(response.headers().get("request-id"), None);
    assert!(!response.text().await.expect("a body").contains("request_id"));
}

#[tokio::test]
async fn rate_limit_of_the_only_key_does_not_open_the_breaker() {
    let scripted = Scripted::start([json_answer(429, &json!({"error": {"message": "slowly"}}))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    for _ in 0..8 {
        assert_eq!(server.refused(CHAT, &question(false)).await.0, 429);
    }
    scripted.then(stream("data: {\"error\":{\"message\":\"slowly\",\"type\":\"rate_limit_error\"}}\n\n"));
    for _ in 0..8 {
        assert_eq!(server.refused(CHAT, &question(true)).await.0, 429);
    }
    scripted.then(json_answer(200, &completion("hello")));
    server.ask(CHAT, &question(false)).await;
    // With a retry time, the upstream is not called until then.
    let body = r#"{"error":{"message":"slowly"}}"#;
    let response = format!(
        "HTTP/1.1 429 X\r\nretry-after: 30\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    scripted.then(vec![Step::Write(response.into())]);
    assert_eq!(server.refused(CHAT, &question(false)).await.0, 429);
    let seen = scripted.count();
    let response = send(server.post(CHAT, &question(false))).await;
    assert_eq!(response.status(), 429);
    let wait: u64 =
        response.headers()["retry-after"].to_str().ok().and_then(|wait| wait.parse().ok()).expect("seconds");
    assert!((1..=30).contains(&wait), "{wait}");
    assert_eq!(scripted.count(), seen);
}

#[tokio::test]
async fn tls_failure_reveals_nothing_about_the_certificate() {
    // An upstream with an untrusted certificate.
    let folder = tempfile::tempdir().expect("a folder");
    let made =
        rcgen::generate_simple_self_signed(vec!["secret-host.internal".to_owned()]).expect("a certificate");
    let (certificate, private) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("written");
    std::fs::write(&private, made.signing_key.serialize_pem()).expect("written");
    let any = || vec!["127.0.0.1:0".to_owned()];
    _ = rustls::crypto::ring::default_provider().install_default();
    let behind = gatewright_gateway::Gateway::bind(Config {
        listen: any(),
        tls: Some(gatewright_gateway::TlsConfig::new(any(), certificate, private)),
        ..Config::default()
    });
    let behind = behind.await.expect("free ports");
    let url = behind.urls().pop().expect("an address");
    assert!(url.starts_with("https://"), "{url}");
    let serving = tokio::spawn(behind.serve(std::future::pending()));
    let server = start_with(config(vec![upstream("one", Kind::Chat, &format!("{url}/v1"))])).await;
    let (status, refused) = server.refused(CHAT, &question(false)).await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert_eq!(status, 502, "{refused}");
    assert!(message.ends_with("TLS failed; see the gateway's log"), "{message}");
    serving.abort();
}

#[tokio::test]
async fn model_scope_does_not_match_an_id_with_a_native_prefix() {
    let scripted = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let mut settings = config(vec![upstream("one", Kind::Chat, &scripted.url)]);
    let mut other = settings.models[0].clone();
    other.id = "models/mine".to_owned();
    settings.models.push(other);
    let admin_key = Some(ApiKey::new("gw-admin-canary-77").expect("a valid key"));
    let server = start_with(Config { admin_key, ..settings }).await;
    let new = json!({"name": "ci", "scopes": {"models": ["mine"]}});
    let request = server.bare(Method::POST, "/admin/keys").bearer_auth("gw-admin-canary-77").json(&new);
    let (_, issued) = read(request).await;
    let key = issued["secret"].as_str().expect("a secret");
    let chat = async |model: &str| {
        let mut body = question(false);
        body["model"] = model.into();
        read(server.bare(Method::POST, CHAT).bearer_auth(key).json(&body)).await.0
    };
    assert_eq!((chat("mine").await, chat("models/mine").await), (200, 403));
    let one = async |path: &str| read(server.bare(Method::GET, path).bearer_auth(key)).await.0;
    assert_eq!((one("/v1/models/mine").await, one("/v1/models/models/mine").await), (200, 403));
    // The form that native clients use.
    let native = server.bare(Method::GET, "/v1beta/models/models/mine").header("x-goog-api-key", key);
    assert_eq!(read(native).await.0, 200);
}

#[tokio::test]
async fn stream_is_complete_once_every_requested_choice_has_finished() {
    let chunk = |index: u32, reason: Option<&str>| {
        let choice = json!({"index": index, "delta": {"content": "x"}, "finish_reason": reason});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let (first, second) = (chunk(0, Some("stop")), chunk(1, Some("stop")));
    let mut two = question(true);
    two["n"] = 2.into();
    for (events, n, whole) in [
        (first.clone(), &question(true), true),
        (first.clone(), &two, false),
        (format!("{}{first}", chunk(1, None)), &question(true), false),
        (format!("{}{first}", chunk(1, None)), &two, false),
        (format!("{first}{second}"), &two, true),
        (format!("{first}data: [DONE]\n\n"), &two, true),
    ] {
        let scripted = Scripted::start([stream(&events)]).await;
        let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
        let got = server.stream(CHAT, n).await;
        let last = &got.last().expect("an event").data;
        assert_eq!(last == "[DONE]", whole, "{events}: {last}");
        assert_eq!(last.contains("upstream_error"), !whole, "{events}: {last}");
    }
}

#[tokio::test]
async fn translated_stream_is_complete_once_every_requested_choice_has_finished() {
    let chunk = |index: u32| {
        let choice = json!({"index": index, "delta": {"content": "x"}, "finish_reason": "stop"});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let mut request = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    request["generationConfig"]["candidateCount"] = 2.into();
    for (events, whole) in [(chunk(0), false), (format!("{}{}", chunk(0), chunk(1)), true)] {
        let scripted = Scripted::start([stream(&events)]).await;
        let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
        let got = server.stream("/v1beta/models/mine:streamGenerateContent?alt=sse", &request).await;
        let last = &got.last().expect("an event").data;
        assert_eq!(last.contains("\"error\""), !whole, "{events}: {last}");
    }
}

#[tokio::test]
async fn zero_retry_after_does_not_prevent_failover() {
    let head = "HTTP/1.1 429 X\r\nretry-after: 0\r\ncontent-length: 2\r\n\r\n{}";
    let limited = Scripted::start([vec![Step::Write(head.into())]]).await;
    let other = Scripted::start([json_answer(200, &completion("hi"))]).await;
    let settings =
        config(vec![upstream("one", Kind::Chat, &limited.url), upstream("two", Kind::Chat, &other.url)]);
    let server = start_with(settings).await;
    let response = send(server.post(CHAT, &question(false))).await;
    assert_eq!((response.status().as_u16(), limited.count(), other.count()), (200, 1, 1));
}
