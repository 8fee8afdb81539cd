//! Model ids in the path of a request: no id reaches another path of an upstream or leaves its segment.

use gatewright::operations;
use gatewright_gateway::{ApiKey, Config, Kind, ModelConfig, TargetConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::callers::Protocol;
use crate::support::{KEY, Server, start, start_with};
use crate::upstreams::{Scripted, config, json_answer, upstream};

/// Hostile ids: plain, encoded once and twice, overlong, with control characters, with the
/// characters that end a path, and with a method appended.
const TRAVERSALS: &[&str] = &[
    "..",
    "../..",
    "../files/x",
    "..%2f..%2fv1%2ffiles",
    "%2e%2e",
    "%2e%2e%2f",
    "%252e%252e%252f",
    "..%5c..%5c",
    "..\\..\\",
    "a/../b",
    "a%2f..%2fb",
    ".",
    "./mine",
    "%2e%2fmine",
    "mine/..",
    "mine%2f..",
    "mine/.",
    "mine/",
    "mine%2f",
    "/mine",
    "%2fmine",
    "//mine",
    "mine%5c",
    "mine\\",
    "mine%00",
    "mine%0d%0ahost:%20x",
    "mine%0a",
    "mine%09",
    "mine%20",
    "%20mine",
    "mine%7f",
    "mine%23",
    "mine%3f",
    "mine?x=",
    "mine;x",
    "mine%3bx",
    "mine%25",
    "mine%2525",
    "mine%",
    "mine%2",
    "mine%zz",
    "%c0%ae%c0%ae",
    "%c0%af",
    "%e0%80%af",
    "%ff",
    "mine%ef%bc%8f",
    "mine%e2%80%ae",
    "http://127.0.0.1:1/",
    "http:%2f%2f127.0.0.1:1%2f",
    "@127.0.0.1:1",
    "mine@127.0.0.1",
    "mine:x",
    "models/../mine",
    "mine:generateContent%3f",
    "%6dine%2f..%2f%6dine",
    "~",
    "$(id)",
    "mine'--",
    "*",
    "",
];

async fn status(server: &Server, method: &str, path: &str, body: &str) -> u16 {
    let address = server.url.trim_start_matches("http://");
    let mut socket = TcpStream::connect(address).await.expect("a connection");
    // Sent over a raw socket: client libraries normalize such paths.
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.expect("an answer");
    let answer = String::from_utf8_lossy(&answer);
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// Every path of the specification that contains a model, and its other form under `/v1`.
fn paths(id: &str) -> Vec<(&'static str, String)> {
    let mut paths = Vec::new();
    for operation in operations::ALL.iter().filter(|operation| operation.path.contains("{model")) {
        let started = operation.path.find('{').expect("a parameter");
        let ended = operation.path.find('}').expect("its end") + 1;
        let path = format!("{}{id}{}", &operation.path[..started], &operation.path[ended..]);
        if operation.path.starts_with("/v1beta") {
            paths.push((operation.method.as_str(), path.replacen("/v1beta", "/v1", 1)));
        }
        paths.push((operation.method.as_str(), path));
    }
    assert!(paths.len() >= 6, "{paths:?}");
    paths
}

const NATIVE: &str = r#"{"contents":[{"parts":[{"text":"x"}]}]}"#;

#[tokio::test]
async fn hostile_model_ids_in_paths_get_nothing_from_the_simulator() {
    let server = start().await;
    for id in TRAVERSALS.iter().map(|id| id.replace("mine", "model-sol")) {
        for (method, path) in paths(&id) {
            let status = status(&server, method, &path, NATIVE).await;
            // Some spellings are the model list, and one is the model itself.
            let is_plain = method == "GET" && matches!(id.as_str(), "" | "model-sol?x=");
            assert!(
                matches!(status, 400 | 403 | 404 | 405) || is_plain && status == 200,
                "{method} {path}: {status}"
            );
        }
    }
}

#[tokio::test]
async fn hostile_model_ids_in_paths_never_reach_an_upstream() {
    for speaks in [Protocol::Native, Protocol::Chat] {
        let scripted = Scripted::start([json_answer(200, &speaks.answer())]).await;
        let server = start_with(config(vec![upstream("one", speaks.kind(), &scripted.url)])).await;
        for id in TRAVERSALS {
            for (method, path) in paths(id) {
                let status = status(&server, method, &path, NATIVE).await;
                let is_plain = method == "GET" && matches!(*id, "" | "mine?x=");
                assert!(
                    matches!(status, 400 | 403 | 404 | 405) || is_plain && status == 200,
                    "{method} {path}: {status}"
                );
            }
        }
        assert_eq!(scripted.count(), 0, "{:?}", scripted.seen().first());
    }
}

#[tokio::test]
async fn hostile_model_ids_in_bodies_never_reach_an_upstream() {
    let scripted = Scripted::start([json_answer(200, &Protocol::Native.answer())]).await;
    let server = start_with(config(vec![upstream("one", Kind::Native, &scripted.url)])).await;
    for id in TRAVERSALS {
        for client in [Protocol::Chat, Protocol::Responses, Protocol::Messages] {
            let (path, body) = client.request(id, false);
            let (status, answer) = server.refused(&path, &body).await;
            assert!(matches!(status, 400 | 404), "{client:?} {id}: {status} {answer}");
        }
        let body = json!({"generateContentRequest": {"model": format!("models/{id}"),
            "contents": [{"role": "user", "parts": [{"text": "x"}]}]}});
        // The path names the model: the one in the body is replaced.
        _ = server.refused("/v1beta/models/mine:countTokens", &body).await;
    }
    for seen in scripted.seen() {
        assert_eq!(seen.line, "POST /v1/models/theirs:countTokens HTTP/1.1");
        let sent = seen.json()["generateContentRequest"]["model"].clone();
        assert_eq!(sent, json!("models/theirs"));
    }
}

#[tokio::test]
async fn upstream_model_name_is_one_path_segment() {
    let scripted = Scripted::start([json_answer(200, &Protocol::Native.answer())]).await;
    let mut upstream = upstream("one", Kind::Native, &scripted.url);
    upstream.keys = vec![ApiKey::new("k").expect("a key")];
    let names = [
        "a/b",
        "../../files",
        "a\\b",
        "a?key=x",
        "a#b",
        "a%2e%2e",
        "a b",
        "a\r\nhost: evil",
        "a\u{0}b",
        "ä:b",
    ];
    let models = names.iter().enumerate().map(|(number, name)| {
        ModelConfig::new(format!("m{number}"), "family_one", TargetConfig::new("one", *name))
    });
    let settings = Config { upstreams: vec![upstream], models: models.collect(), ..Config::default() };
    let server = start_with(settings).await;
    for number in 0..names.len() {
        let (path, body) = Protocol::Native.request(&format!("m{number}"), false);
        server.ask(&path, &body).await;
    }
    let seen = scripted.seen();
    for (name, seen) in names.iter().zip(seen) {
        let line = seen.line.strip_prefix("POST /v1/models/").and_then(|line| line.strip_suffix(" HTTP/1.1"));
        let segment = line
            .unwrap_or_else(|| panic!("{}", seen.line))
            .strip_suffix(":generateContent")
            .expect("the method");
        assert!(
            segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte)),
            "{segment}"
        );
        let decoded = percent_encoding::percent_decode_str(segment).decode_utf8().expect("text");
        assert_eq!(decoded, *name);
        assert!(seen.header("host").is_some_and(|host| host.starts_with("127.0.0.1:")), "{seen:?}");
    }
}

#[tokio::test]
async fn no_body_member_or_header_selects_the_upstream() {
    let elsewhere = Scripted::start([json_answer(200, &Protocol::Chat.answer())]).await;
    for speaks in Protocol::ALL {
        let scripted = Scripted::start([json_answer(200, &speaks.answer())]).await;
        let mut settings = config(vec![
            upstream("one", speaks.kind(), &scripted.url),
            upstream("two", speaks.kind(), &elsewhere.url),
        ]);
        settings.models[0].targets.truncate(1);
        settings.models[0].translate_responses = true;
        let server = start_with(settings).await;
        for client in Protocol::ALL {
            scripted.then(json_answer(200, &speaks.spoken_for(client).answer()));
            let (path, mut body) = client.request("mine", false);
            let url = &elsewhere.url;
            for name in [
                "api_base", "base_url", "api_key", "endpoint", "url", "host", "upstream", "provider",
                "target", "proxy",
            ] {
                body[name] = url.as_str().into();
            }
            let mut request = server.post(&path, &body);
            for (name, value) in [
                ("x-gatewright-upstream", "two"),
                ("x-upstream", "two"),
                ("x-forwarded-host", "two"),
                ("x-original-url", "/v1/other"),
                ("x-rewrite-url", "/v1/other"),
                ("forwarded", "host=two"),
                ("x-http-method-override", "GET"),
                ("x-portkey-custom-host", url.as_str()),
                ("proxy", url.as_str()),
            ] {
                request = request.header(name, value);
            }
            let before = scripted.count();
            let response = crate::support::send(request).await;
            // The native protocol rejects unknown members.
            assert!(
                response.status() == 200 || response.status() == 400,
                "{client:?} at {speaks:?}: {}",
                response.status()
            );
            if response.status() == 200 {
                assert_eq!(scripted.count(), before + 1);
                let seen = scripted.seen().pop().expect("a request");
                assert!(
                    !seen.headers.iter().any(|(name, _)| name.starts_with("x-")
                        && !matches!(name.as_str(), "x-request-id" | "x-api-key" | "x-goog-api-key")),
                    "{seen:?}"
                );
                assert!(
                    !seen.headers.iter().any(|(name, _)| name == "forwarded" || name == "proxy"),
                    "{seen:?}"
                );
            }
        }
        assert!(scripted.count() >= 3, "{speaks:?}");
    }
    assert_eq!(elsewhere.count(), 0);
}
