//! Ambiguous requests and header injection, byte for byte over raw sockets.

use std::time::Duration;

use gatewright_gateway::Config;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::callers::Protocol;
use crate::support::{KEY, Server, start_with};
use crate::upstreams::{Scripted, config, json_answer, question, upstream};

const CHAT: &str = "/v1/chat/completions";
const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway that closes idle connections soon, and its upstream.
async fn start() -> (Server, Scripted) {
    let scripted = Scripted::start([json_answer(200, &Protocol::Chat.answer())]).await;
    let mut upstream = upstream("one", Protocol::Chat.kind(), &scripted.url);
    upstream.headers = vec!["x-passed".to_owned()];
    let mut settings = config(vec![upstream]);
    settings.header_timeout = Duration::from_millis(400);
    settings.body_timeout = Duration::from_millis(400);
    (start_with(settings).await, scripted)
}

/// Everything the gateway sends in response to these bytes, until it closes the connection.
async fn exchange(server: &Server, bytes: &[u8]) -> String {
    let mut socket =
        TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection");
    // The gateway may close before it has read everything.
    _ = socket.write_all(bytes).await;
    let mut response = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut response)).await;
    _ = read.expect("the connection stays open");
    String::from_utf8_lossy(&response).into_owned()
}

fn statuses(response: &str) -> Vec<u16> {
    let heads = response.match_indices("HTTP/1.1 ");
    heads.filter_map(|(at, mark)| response[at + mark.len()..].get(..3)?.parse().ok()).collect()
}

/// A request that contains a second one, as another parser would read it.
fn smuggled() -> String {
    let body = question(false).to_string();
    format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\nx-passed: smuggled\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn head(more: &str) -> String {
    format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n{more}"
    )
}

#[tokio::test]
async fn ambiguous_body_length_smuggles_no_second_request() {
    let (server, scripted) = start().await;
    let body = question(false).to_string();
    let (length, size) = (body.len(), format!("{:x}", body.len()));
    let second = smuggled();
    let chunked = format!("{size}\r\n{body}\r\n0\r\n\r\n");
    // A length that includes the second request, and chunks that end before it.
    let covering = chunked.len() + second.len();
    let mut heads = Vec::new();
    for coding in [
        "transfer-encoding: chunked",
        "Transfer-Encoding: CHUNKED",
        "transfer-encoding:\tchunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        "transfer-encoding: xchunked",
        "transfer-encoding : chunked",
        " transfer-encoding: chunked",
        "transfer-encoding: chunked\x0b",
        "transfer-encoding\r\n : chunked",
        "x: y\r\n transfer-encoding: chunked",
        "x: y\ntransfer-encoding: chunked",
    ] {
        heads.push(format!("{coding}\r\ncontent-length: {covering}\r\n\r\n{chunked}{second}"));
        heads.push(format!("content-length: {covering}\r\n{coding}\r\n\r\n{chunked}{second}"));
        heads.push(format!("content-length: 4\r\n{coding}\r\n\r\n{chunked}{second}"));
    }
    let plain = format!("{body}{second}");
    for framing in [
        format!("content-length: {length}\r\ncontent-length: {}", plain.len()),
        format!("content-length: {}\r\ncontent-length: {length}", plain.len()),
        format!("content-length: {length}, {}", plain.len()),
        format!("content-length: +{length}"),
        format!("content-length: -{length}"),
        format!("content-length: 0x{size}"),
        format!("content-length: {length} {length}"),
        format!("content-length: {length}.0"),
        format!("content-length : {length}"),
        "content-length: 99999999999999999999999".to_owned(),
        "content-length: 18446744073709551617".to_owned(),
        "content-length:".to_owned(),
    ] {
        heads.push(format!("{framing}\r\n\r\n{plain}"));
    }
    for coding in [
        format!("{size};a=\"\r\n\"\r\n{body}\r\n0\r\n\r\n"),
        format!("+{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("0x{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("{size}\n{body}\n0\n\n"),
        format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n"),
        format!("10000000000000000{size}\r\n{body}\r\n0\r\n\r\n"),
        format!("-1\r\n{body}\r\n0\r\n\r\n"),
    ] {
        heads.push(format!("transfer-encoding: chunked\r\n\r\n{coding}{second}"));
    }
    for headers in heads {
        let before = scripted.count();
        let response = exchange(&server, head(&headers).as_bytes()).await;
        let statuses = statuses(&response);
        let arrived = scripted.count() - before;
        // At most the one intended request arrives; what another parser would take for its body is not executed as a second one.
        assert!(arrived <= 1 && statuses.len() <= 1, "{headers:?}: {arrived} requests, {statuses:?}");
        let one = statuses.first().copied();
        assert!(matches!(one, None | Some(200 | 400 | 408 | 411 | 413 | 501)), "{headers:?}: {response}");
        if arrived == 1 {
            let seen = scripted.seen().pop().expect("a request");
            assert!(seen.header("x-passed").is_none(), "{headers:?}: {seen:?}");
            assert_eq!(seen.body, scripted.seen()[0].body, "{headers:?}");
        }
    }
}

#[tokio::test]
async fn header_injection_reaches_neither_client_nor_upstream() {
    let (server, scripted) = start().await;
    let body = question(false).to_string();
    let mark = "injected-canary";
    for header in [
        format!("x-passed: a\rx-{mark}: b"),
        format!("x-passed: a\nx-{mark}: b"),
        format!("x-passed: a\r\n x-{mark}: b"),
        format!("x-passed: a\r\n\tx-{mark}: b"),
        format!("x-passed: a\0x-{mark}: b"),
        format!("x-passed: a%0d%0ax-{mark}: b"),
        format!("x-passed: a\u{85}x-{mark}: b"),
        format!("x-passed: a\u{2028}x-{mark}: b"),
        format!("x-passed\r: x-{mark}"),
        format!("x-passed\0: x-{mark}"),
        format!("x-pa ssed: x-{mark}"),
        format!("x-passed;: x-{mark}"),
        format!(": x-{mark}"),
        format!("x-{mark}"),
        format!("connection: x-passed\r\nx-passed: a\r\nx-{mark}: b"),
        format!("connection: close, authorization, content-type, x-{mark}"),
        format!("x-request-id: a\r\nx-{mark}: b"),
        format!("traceparent: 00-x-{mark}-01"),
        format!("te: trailers, x-{mark}\r\ntrailer: x-{mark}\r\nupgrade: x-{mark}\r\nkeep-alive: x-{mark}"),
        format!("proxy-authorization: Basic x-{mark}\r\nproxy-connection: x-{mark}\r\ncookie: x={mark}"),
        format!(
            "x-forwarded-for: {mark}\r\nforwarded: for={mark}\r\nvia: 1.1 {mark}\r\nreferer: http://{mark}/"
        ),
        format!("host: {mark}.example"),
        format!("x-api-key: {mark}\r\nx-goog-api-key: {mark}"),
        format!("user-agent: {mark}\r\norigin: http://{mark}\r\naccept: {mark}\r\naccept-encoding: {mark}"),
        format!("expect: 100-continue, {mark}"),
    ] {
        let headers = format!("{header}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let before = scripted.count();
        let response = exchange(&server, head(&headers).as_bytes()).await;
        let (response_head, _) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));
        assert!(!response_head.contains(mark), "{header:?}: {response_head}");
        assert!(statuses(&response).len() <= 1, "{header:?}: {response}");
        if scripted.count() > before {
            let seen = scripted.seen().pop().expect("a request");
            // The value of the listed header is forwarded as a single line.
            for (name, value) in
                seen.headers.iter().filter(|(name, value)| format!("{name}{value}").contains(mark))
            {
                assert_eq!(name, "x-passed", "{header:?}");
                assert!(
                    !value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t'),
                    "{header:?}: {value:?}"
                );
            }
            assert!(
                seen.headers.iter().all(|(name, _)| name != "cookie" && name != "te" && name != "upgrade"),
                "{seen:?}"
            );
            assert_eq!(
                seen.header("authorization"),
                Some(&*format!("Bearer {}", crate::upstreams::UPSTREAM_KEY))
            );
        }
    }
}

#[tokio::test]
async fn malformed_request_line_is_rejected_or_harmless() {
    let (server, scripted) = start().await;
    let body = question(false).to_string();
    let rest = format!(
        "host: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    for line in [
        format!("POST {CHAT} HTTP/1.1 x"),
        format!("POST  {CHAT}  HTTP/1.1"),
        format!("POST {CHAT}\tHTTP/1.1"),
        format!("POST {CHAT} HTTP/1.2"),
        format!("POST {CHAT} HTTP/3.0"),
        format!("POST {CHAT} http/1.1"),
        format!("POST {CHAT}"),
        format!("post {CHAT} HTTP/1.1"),
        format!("PO\0ST {CHAT} HTTP/1.1"),
        format!("POST {CHAT}%0d%0ax: y HTTP/1.1"),
        format!("POST {CHAT}/ HTTP/1.1"),
        format!("POST /{CHAT} HTTP/1.1"),
        format!("POST {CHAT}/../completions HTTP/1.1"),
        "POST /v1/./chat/completions HTTP/1.1".to_owned(),
        "POST /V1/CHAT/COMPLETIONS HTTP/1.1".to_owned(),
        "POST /v1%2fchat%2fcompletions HTTP/1.1".to_owned(),
        "POST \\v1\\chat\\completions HTTP/1.1".to_owned(),
        "POST * HTTP/1.1".to_owned(),
        "CONNECT 127.0.0.1:1 HTTP/1.1".to_owned(),
        "TRACE / HTTP/1.1".to_owned(),
        "PRI * HTTP/2.0".to_owned(),
        "GET http://127.0.0.1:1/ HTTP/1.1".to_owned(),
    ] {
        let response = exchange(&server, format!("{line}\r\n{rest}").as_bytes()).await;
        let statuses = statuses(&response);
        assert!(!statuses.contains(&200), "{line:?}: {response}");
        assert!(!response.contains(KEY), "{line:?}: {response}");
    }
    assert_eq!(scripted.count(), 0, "{:?}", scripted.seen().first());
    // The absolute form reaches the same operation, whatever host it names.
    exchange(
        &server,
        format!("POST http://127.0.0.1:1{CHAT} HTTP/1.1\r\nconnection: close\r\n{rest}").as_bytes(),
    )
    .await;
    assert_eq!(scripted.count(), 1);
}

/// RFC 9112, section 3.2.2: the gateway builds the addresses of its files from the host that the client addressed.
#[tokio::test]
async fn absolute_target_replaces_the_host_header() {
    let server = start_with(Config::default()).await;
    let body = json!({ "model": "image_model_1", "prompt": "a boat" }).to_string();
    for (target, host, expected) in [
        ("", "gateway.example", "http://gateway.example/files/"),
        ("http://gateway.example", "other.example", "http://gateway.example/files/"),
        ("http://gateway.example:8080", "other.example", "http://gateway.example:8080/files/"),
        ("http://GATEWAY.example", "", "http://GATEWAY.example/files/"),
    ] {
        let request = format!(
            "POST {target}/v1/images/generations HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {KEY}\r\n\
             connection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = exchange(&server, request.as_bytes()).await;
        assert!(answer.contains(&format!(r#""url":"{expected}"#)), "{target} and {host}: {answer}");
    }
    let request = "GET http://someone@gateway.example/health HTTP/1.1\r\nhost: gateway.example\r\n\r\n";
    assert_eq!(statuses(&exchange(&server, request.as_bytes()).await), [400]);
}
