//! Endless, growing and dripping bodies, from clients and from upstreams.

use std::time::{Duration, Instant};

use gatewright_gateway::{Config, Kind};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{KEY, Server, start_with};
use crate::upstreams::{STREAM_HEAD, Scripted, Step, completion, config, json_answer, question, upstream};

const CHAT: &str = "/v1/chat/completions";
const PATIENCE: Duration = Duration::from_mins(1);

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection")
}

/// Sends bytes one by one, with pauses below any timeout, until the gateway closes the connection. Returns its
/// response and the number of bytes sent.
async fn drip(server: &Server, whole: &str, drops: &[u8]) -> (String, usize) {
    let mut socket = connect(server).await;
    socket.set_nodelay(true).expect("set");
    socket.write_all(whole.as_bytes()).await.expect("sent");
    let mut response = Vec::new();
    let mut count = 0;
    let started = Instant::now();
    for drop in drops.iter().cycle() {
        assert!(started.elapsed() < PATIENCE, "the gateway waits forever");
        if socket.write_all(&[*drop]).await.is_err() {
            break;
        }
        count += 1;
        // The response ends with the connection.
        let read = tokio::time::timeout(Duration::from_millis(20), socket.read_buf(&mut response)).await;
        if matches!(read, Ok(Ok(0) | Err(_))) {
            break;
        }
    }
    (String::from_utf8_lossy(&response).into_owned(), count)
}

#[tokio::test]
async fn dripping_request_times_out_like_a_stalled_one() {
    let time = Duration::from_millis(300);
    let server = start_with(Config { header_timeout: time, body_timeout: time, ..Config::default() }).await;
    // In the request line, in a header, between headers, and before any byte.
    for started in ["GET /", "GET / HTTP/1.1\r\nx: ", "GET / HTTP/1.1\r\nhost: x\r\n", ""] {
        let drops: &[u8] = if started.ends_with("\r\n") { b"a: b\r\n" } else { b"x" };
        let (_, count) = drip(&server, started, drops).await;
        assert!(count > 0, "{started:?}");
    }
    let head = format!(
        "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
    );
    let (response, _) = drip(&server, &format!("{head}content-length: 100000\r\n\r\n{{"), b" ").await;
    assert!(response.starts_with("HTTP/1.1 408") && response.contains("request_timeout"), "{response}");
    let (response, _) =
        drip(&server, &format!("{head}transfer-encoding: chunked\r\n\r\n"), b"1\r\n \r\n").await;
    assert!(response.starts_with("HTTP/1.1 408"), "{response}");
}

#[tokio::test]
async fn undecodable_or_oversized_compressed_body_is_rejected() {
    let scripted = Scripted::start([json_answer(200, &completion("hello"))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    for (coding, status) in [
        ("gzip", 400),
        ("deflate", 400),
        ("br", 400),
        ("zstd", 400),
        ("x-gzip", 400),
        ("gzip, gzip", 400),
        ("identity, gzip", 400),
        ("gzip, gzip, gzip", 415),
        ("compress", 415),
    ] {
        let request = server.post(CHAT, &question(false)).header("content-encoding", coding);
        let response = crate::support::send(request.body(vec![0x1f; 9000])).await;
        assert_eq!(response.status(), status, "{coding}");
    }
    // A compression ratio of a thousand: 40 MB in 40 KB.
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..40 {
        std::io::Write::write_all(&mut bomb, &vec![b' '; 1 << 20]).expect("memory");
    }
    let bomb = bomb.finish().expect("memory");
    let request = server.post(CHAT, &question(false)).header("content-encoding", "gzip").body(bomb);
    assert_eq!(crate::support::send(request).await.status(), 413);
    // No compression is accepted as a transfer coding.
    for coding in ["gzip", "gzip, chunked", "deflate, chunked"] {
        let mut socket = connect(&server).await;
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
             connection: close\r\ntransfer-encoding: {coding}\r\n\r\n5\r\n\u{1f}\u{b}abc\r\n0\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.expect("sent");
        let mut response = String::new();
        let read = tokio::time::timeout(PATIENCE, socket.read_to_string(&mut response)).await;
        _ = read.expect("an end");
        assert!(response.starts_with("HTTP/1.1 4"), "{coding}: {response}");
    }
    assert_eq!(scripted.count(), 0);
}

/// An endless repetition of a fragment, until the gateway closes the connection.
fn endless(head: &str, piece: &str) -> Vec<Step> {
    vec![Step::Write(head.into()), Step::Endless(piece.repeat(65_536 / piece.len()).into())]
}

#[tokio::test]
async fn endless_upstream_response_is_abandoned() {
    let json = "content-type: application/json\r\n";
    for (what, steps, status) in [
        ("an error", endless(&format!("HTTP/1.1 500 X\r\n{json}\r\n"), "x"), 500),
        (
            "a compressed answer",
            endless(&format!("HTTP/1.1 200 OK\r\n{json}content-encoding: gzip\r\n\r\n"), "\0"),
            502,
        ),
        ("a head", endless("HTTP/1.1 200 OK\r\n", "x-a: bcdefghijkl\r\n"), 502),
        ("one header", endless("HTTP/1.1 200 OK\r\nx: ", "y"), 502),
        ("informational heads", endless("", "HTTP/1.1 103 X\r\nlink: a\r\n\r\n"), 502),
    ] {
        let mut scripted = Scripted::start([steps]).await;
        let mut one = upstream("one", Kind::Chat, &scripted.url);
        one.timeout = PATIENCE;
        let server = start_with(config(vec![one])).await;
        let (got, answer) = server.refused(CHAT, &question(false)).await;
        assert_eq!(got, status, "{what}: {answer}");
        // It is cancelled while it sends.
        scripted.left().await;
    }
}

#[tokio::test]
async fn endless_upstream_event_ends_the_stream_with_an_error() {
    let first = format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {"content": "x"}}]}));
    // An endless field mid-stream.
    let mut scripted = Scripted::start([endless(&format!("{STREAM_HEAD}{first}data: "), "y")]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &scripted.url)])).await;
    let got = server.stream(CHAT, &question(true)).await;
    assert_eq!(got.last().expect("an event").json()["error"]["code"], "upstream_error", "{got:?}");
    scripted.left().await;
}
