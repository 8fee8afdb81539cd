//! Upstreams that break HTTP, or exploit it (3): the client gets an error, the gateway holds little of the response in memory
//! and serves others meanwhile, and the next request to the same upstream succeeds. The clients of all languages share these
//! vectors.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gatewright_gateway::Kind;
use reqwest::Method;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::fault_matrix_over_http2::{acceptor, trusting_in};
use crate::hostile_server::{self, COMPLETION, Case};
use crate::support::{Server, send, start_with};
use crate::upstreams::{config, question, read, upstream};

/// How long the gateway waits for the upstream: where it is to wait that long, and elsewhere.
const SHORT: Duration = Duration::from_millis(1500);
const LONG: Duration = Duration::from_secs(10);
/// How long a stream may go on that has no end.
const PATIENCE: Duration = Duration::from_secs(3);
/// How much more memory the process may take, in KiB: the largest body and the largest event are 64 MiB, and growing a buffer
/// needs it twice.
const MAX_GROWTH: u64 = 160 * 1024;

/// A line of this process's state in Linux, in KiB.
pub(crate) fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).expect("a size")
}

/// `completion`, `timeout`, or `failed`; none if a stream goes on without end.
async fn outcome(server: &Server, stream: bool, here: &str) -> Option<&'static str> {
    let answer = async {
        let response = send(server.post("/v1/chat/completions", &question(stream))).await;
        let status = response.status().as_u16();
        (status, response.text().await.expect("what the gateway says comes to its end"))
    };
    let patience = if stream { PATIENCE } else { 2 * LONG };
    let (status, text) = tokio::time::timeout(patience, answer).await.ok()?;
    if status == 200 && !stream {
        let expected: Value = serde_json::from_str(COMPLETION).expect("JSON");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(answer["choices"], expected["choices"], "{here}");
        return Some("completion");
    }
    assert!(text.contains("\"error\""), "{here}: {status} {text}");
    assert!(text.len() < 10_000, "{here}: an error of {} bytes", text.len());
    assert!(matches!(status, 502 | 504) || (status == 200 && stream), "{here}: {status} {text}");
    Some(if status == 504 { "timeout" } else { "failed" })
}

async fn gets_an_error_and_the_next_request_succeeds(case: Case, tls: Option<TlsAcceptor>) {
    let Case { name, stream, outcome: expected, next, .. } = case.clone();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = format!("{scheme}://localhost:{}/v1", hostile_server::start(case, tls).await);
    // The gateway reads on in a body without end until its time is up.
    let waits =
        [&expected, &next].iter().any(|outcome| *outcome == "timeout") || name.starts_with("endless_body");
    let timeout = if waits { SHORT } else { LONG };
    let mut hostile = upstream("one", Kind::Chat, &url);
    (hostile.timeout, hostile.idle_timeout) = (timeout, timeout);
    let server = start_with(config(vec![hostile])).await;
    let others = async {
        for _ in 0..3 {
            let alive = send(server.bare(Method::GET, "/health/live"));
            let alive = tokio::time::timeout(Duration::from_secs(5), alive).await;
            assert_eq!(alive.expect("others are served").status(), 200, "{name}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let started = Instant::now();
    let (ended, ()) = tokio::join!(outcome(&server, stream, &name), others);
    if !stream {
        let ended = ended.expect("an end");
        // The gateway may read more of a body than a client that says how much it takes.
        let matches = match expected.as_str() {
            "completion" | "timeout" => ended == expected,
            _ => ended == "failed",
        };
        assert!(matches, "{name}: {ended}, not {expected}");
    }
    let ended = outcome(&server, false, &name).await.expect("an end");
    assert_eq!(ended, next, "{name}: the next request");
    eprintln!("{name}: {:?}, {} KiB at most", started.elapsed(), memory("VmHWM"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_http1_upstream_fails_one_request_and_the_next_succeeds() {
    let before = memory("VmRSS");
    for case in hostile_server::cases("http1") {
        gets_an_error_and_the_next_request_succeeds(case, None).await;
    }
    let growth = memory("VmHWM").saturating_sub(before);
    assert!(growth < MAX_GROWTH, "{growth} KiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_http2_upstream_fails_one_request_and_the_next_succeeds() {
    let name = "hostile_http2_upstream_fails_one_request_and_the_next_succeeds";
    let Some(folder) = trusting_in("hostile_upstreams", name) else { return };
    let tls = acceptor(&folder);
    let before = memory("VmRSS");
    for case in hostile_server::cases("http2") {
        gets_an_error_and_the_next_request_succeeds(case, Some(tls.clone())).await;
    }
    let growth = memory("VmHWM").saturating_sub(before);
    assert!(growth < MAX_GROWTH, "{growth} KiB");
}

/// What follows a response that no provider sends may be the answer to anything.
#[tokio::test]
async fn connection_is_not_used_again_after_a_response_that_is_no_answer() {
    for odd in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: Text/HTML\r\ncontent-length: 6\r\n\r\n<html>",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    let length = COMPLETION.len();
                    let whole = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{COMPLETION}"
                    );
                    let answer = if number == 0 { odd } else { &whole };
                    let mut buffer = Vec::new();
                    while read(&mut socket, &mut buffer).await.is_some() {
                        socket.write_all(answer.as_bytes()).await.expect("written");
                    }
                });
            }
        });
        let server = start_with(config(vec![upstream("one", Kind::Chat, &url)])).await;
        assert_eq!(server.refused("/v1/chat/completions", &question(false)).await.0, 502, "{odd}");
        for _ in 0..2 {
            server.ask("/v1/chat/completions", &question(false)).await;
            assert_eq!(accepted.load(Ordering::SeqCst), 2, "{odd}");
        }
    }
}
