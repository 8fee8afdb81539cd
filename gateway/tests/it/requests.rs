//! What applies to every request: paths, methods, bodies, and all rules of section 8 at once.

use std::time::Duration;

use gatewright_gateway::Config;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{KEY, read, send, start, start_with};

#[tokio::test]
async fn unknown_paths_and_methods_get_errors_in_the_paths_form() {
    let server = start().await;
    let (status, body) = read(server.get("/v1/nothing")).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("not_found")));
    let (status, body) = read(server.get("/v1beta/nothing")).await;
    assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")));
    let response = send(server.bare(Method::DELETE, "/v1/chat/completions").bearer_auth(KEY)).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["allow"]),
        (405, &"POST, OPTIONS".parse().expect("a value"))
    );
}

#[tokio::test]
async fn invalid_json_is_rejected_with_line_and_column() {
    let server = start().await;
    let post = |body: &'static str| {
        server
            .bare(Method::POST, "/v1/chat/completions")
            .bearer_auth(KEY)
            .header("content-type", "application/json; charset=utf-8")
            .body(body)
    };
    let (status, body) = read(post("{\n  \"model\": nope}")).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_json")));
    let message = body["error"]["message"].as_str().expect("a message");
    assert!(message.contains("line 2 column 13"), "{message}");
    for text in ["", "{", "[1]", "\"text\"", "{} {}", "\u{feff}{}"] {
        assert_eq!(read(post(text)).await.0, 400, "{text}");
    }
}

#[tokio::test]
async fn unsupported_content_type_is_415() {
    let server = start().await;
    let post = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(KEY);
    let refused = send(post.header("content-type", "text/plain").body("{}")).await;
    // The supported types (RFC 9110, 15.5.16).
    assert_eq!((refused.status().as_u16(), &refused.headers()["accept"]), (415, &value("application/json")));
    let body: Value = refused.json().await.expect("JSON");
    assert_eq!(body["error"]["code"], "unsupported_media_type");
    let post = server.post("/v1/chat/completions", &json!({})).header("content-encoding", "compress");
    let refused = send(post).await;
    let codings = &value("zstd, br, gzip, deflate");
    assert_eq!((refused.status().as_u16(), &refused.headers()["accept-encoding"]), (415, codings));
}

fn value(text: &str) -> http::HeaderValue {
    text.parse().expect("a header value")
}

#[tokio::test]
async fn oversized_body_is_413_in_the_protocols_form() {
    let server = start_with(Config { max_body_bytes: 1000, ..Config::default() }).await;
    let large = json!({ "model": "model-sol", "contents": [{ "parts": [{ "text": "x".repeat(300_000) }] }] });
    let (status, body) = server.refused("/v1/responses", &large).await;
    assert_eq!((status, &body["error"]["code"]), (413, &json!("request_too_large")));
    let (status, body) = server.refused("/v1beta/models/model-sol:generateContent", &large).await;
    assert_eq!((status, &body["error"]["code"]), (413, &json!(413)));
}

#[tokio::test]
async fn all_violations_are_reported_at_once() {
    // 2.1 and 8: temperature, penalties, stop sequences; 2.1: messages is required.
    let server = start().await;
    let broken = json!({
        "model": "model-sol", "temperature": 2.5, "frequency_penalty": -3, "presence_penalty": 2.1,
        "stop": ["a", "b", "c", "d", "e"], "n": 0,
    });
    let (status, body) = server.refused("/v1/chat/completions", &broken).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("invalid_value")));
    let violations = body["error"]["violations"].as_array().expect("violations");
    let pointers: Vec<&str> =
        violations.iter().filter_map(|violation| violation["pointer"].as_str()).collect();
    for field in ["/temperature", "/frequency_penalty", "/presence_penalty", "/stop", "/n"] {
        assert!(pointers.contains(&field), "{field} is missing in {pointers:?}");
    }
    let message = body["error"]["message"].as_str().expect("a message");
    for word in ["temperature", "frequency_penalty", "presence_penalty", "stop", "n", "messages"] {
        assert!(message.contains(word), "{word} is missing in {message}");
    }
    assert!(body["error"]["param"].is_string());
}

#[tokio::test]
async fn all_violations_are_reported_in_the_native_form() {
    // 2.5: contents is required and each content has parts; the generation config is ours.
    let server = start().await;
    let broken = json!({ "contents": [{}], "generationConfig": { "temperature": 3, "topP": 2 } });
    let (status, body) = server.refused("/v1beta/models/model-sol:generateContent", &broken).await;
    assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
    let fields = body["error"]["details"][0]["fieldViolations"].as_array().expect("field violations");
    assert_eq!(fields.len(), 3, "{fields:?}");
}

#[tokio::test]
async fn path_traversal_is_rejected() {
    let server = start().await;
    for id in [
        "..%2f..%2fv1",
        "%2e%2e",
        "..",
        "a%2Fb",
        "a%5Cb",
        "a%00b",
        "a%0d%0ab",
        "%252e%252e",
        "a%25b",
        "%ff",
        "...",
    ] {
        // Sent over a raw socket: client libraries normalize such paths.
        for (method, path) in [
            ("POST", format!("/v1beta/models/{id}:generateContent")),
            ("GET", format!("/v1/videos/generations/{id}")),
            ("GET", format!("/files/{id}")),
            ("GET", format!("/files/../v1/models/{id}")),
        ] {
            let status = raw_status(&server.url, method, &path).await;
            assert!(matches!(status, 400 | 403 | 404), "{method} {path}: {status}");
        }
    }
}

async fn raw_status(url: &str, method: &str, path: &str) -> u16 {
    let mut socket = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
    let body = r#"{"contents":[{"parts":[{"text":"x"}]}]}"#;
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[tokio::test]
async fn slow_request_head_is_cut_off() {
    let server = start_with(Config { header_timeout: Duration::from_millis(200), ..Config::default() }).await;
    let mut socket =
        TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection");
    socket.write_all(b"GET /v1/models HTTP/1.1\r\nhost:").await.expect("sent");
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), socket.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection stayed open");
}

#[tokio::test]
async fn disconnected_stream_does_not_delay_shutdown() {
    let delay = Duration::from_mins(1);
    let config = Config {
        listen: vec!["127.0.0.1:0".to_owned()],
        event_delay: delay,
        shutdown_grace: delay,
        ..Config::default()
    };
    let gateway = gatewright_gateway::Gateway::bind(config).await.expect("a free port");
    let (url, key) = (gateway.url(), gateway.key().expose().to_owned());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(async {
        _ = stopped.await;
    }));
    let mut socket = TcpStream::connect(url.trim_start_matches("http://")).await.expect("a connection");
    let body = r#"{"model":"model-sol","stream":true,"messages":[{"role":"user","content":"Say hi"}]}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut head = [0; 12];
    socket.read_exact(&mut head).await.expect("the head of the answer");
    assert_eq!(&head, b"HTTP/1.1 200");
    drop(socket);
    tokio::time::sleep(Duration::from_millis(100)).await;
    stop.send(()).expect("the gateway runs");
    tokio::time::timeout(Duration::from_secs(5), serving).await.expect("stopped at once").expect("no panic");
}
