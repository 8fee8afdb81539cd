//! Connections of untrusted clients: they hold nothing forever (8), and no response is lost that could be sent.

use std::time::Duration;

use gatewright_gateway::{Config, FAULT_HEADER};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{KEY, Server, start, start_with};

/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(1);

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection")
}

/// Everything that arrives until the gateway closes the connection.
async fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut bytes)).await;
    read.expect("the connection stayed open").expect("the connection broke");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Status, head and JSON body of a response that is all that arrived.
fn parts(answer: &str) -> (u16, &str, Value) {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, head, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

fn post(path: &str, body: &str, more: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n{more}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn clients_that_never_read_are_disconnected() {
    let write_timeout = Duration::from_millis(300);
    let server = start_with(Config { max_connections: 4, write_timeout, ..Config::default() }).await;
    let address = server.url.trim_start_matches("http://").parse().expect("an address");
    // The response repeats the path: the longer it is, the fewer requests fill the buffers.
    let path = "/long".repeat(2_000);
    let requests = format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n").repeat(20);
    let clients = (0..4).map(async |_| {
        let socket = TcpSocket::new_v4().expect("a socket");
        // A small receive buffer fills sooner.
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let mut socket = socket.connect(address).await.expect("a connection");
        // Writes until the gateway closes the connection: it stops reading when its responses are blocked.
        while socket.write_all(requests.as_bytes()).await.is_ok() {}
    });
    let cut_off = tokio::time::timeout(PATIENCE, futures_util::future::join_all(clients)).await;
    cut_off.expect("connections were held");
    let mut socket = connect(&server).await;
    socket.write_all(b"GET / HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n").await.expect("sent");
    assert_eq!(parts(&rest(&mut socket).await).0, 404);
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let config = Config { header_timeout: Duration::from_millis(200), ..Config::default() };
    let server = start_with(config).await;
    let mut socket = connect(&server).await;
    socket.write_all(b"GET / HTTP/1.1\r\nhost: gateway\r\n\r\n").await.expect("sent");
    assert_eq!(parts(&rest(&mut socket).await).0, 404);
}

#[tokio::test]
async fn stalled_body_times_out() {
    let config = Config { body_timeout: Duration::from_millis(200), ..Config::default() };
    let server = start_with(config).await;
    let mut socket = connect(&server).await;
    let request = post("/v1/responses", "{}", "").replace("content-length: 2", "content-length: 200");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let answer = rest(&mut socket).await;
    assert_eq!(parts(&answer).0, 408);
}

/// A response with a content length: head and body.
async fn answer(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let whole = async {
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
                if body.len() >= length {
                    return text.into_owned();
                }
            }
            let count = socket.read_buf(&mut bytes).await.expect("the connection broke");
            assert!(count > 0, "the connection ended after {:?}", String::from_utf8_lossy(&bytes));
        }
    };
    tokio::time::timeout(PATIENCE, whole).await.expect("no answer came")
}

const CLOSE: &str = "connection: close";

#[tokio::test]
async fn late_body_of_a_rejected_request_does_not_affect_the_next() {
    let server = start().await;
    let good = post("/v1/responses", r#"{"model":"model-sol","input":"Say hi"}"#, "");
    for (refused, status) in [
        (post("/v1/nothing", r#"{"a":1}"#, ""), 404),
        (post("/v1/responses", r#"{"a":1}"#, "").replace(KEY, "wrong"), 401),
        (post("/v1/responses", r#"{"a":1}"#, "").replace("application/json", "text/plain"), 415),
        (post("/v1/models", r#"{"a":1}"#, ""), 405),
    ] {
        let (head, body) = refused.split_at(refused.len() - r#"{"a":1}"#.len());
        // Together with the head, immediately after it, and when the gateway no longer waits for it.
        for pause in [None, Some(0), Some(20), Some(600)] {
            let mut socket = connect(&server).await;
            socket.set_nodelay(true).expect("set");
            match pause {
                None => socket.write_all(refused.as_bytes()).await.expect("sent"),
                Some(pause) => {
                    socket.write_all(head.as_bytes()).await.expect("sent");
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                    socket.write_all(body.as_bytes()).await.expect("sent");
                }
            }
            let first = answer(&mut socket).await;
            assert_eq!(parts(&first).0, status);
            if first.contains(CLOSE) {
                assert!(pause.is_some(), "nothing was left of the body: {first}");
                assert_eq!(rest(&mut socket).await, "");
            } else {
                socket.write_all(good.as_bytes()).await.expect("sent");
                assert_eq!(parts(&answer(&mut socket).await).0, 200, "{status} after {pause:?} ms");
            }
        }
    }
}

#[tokio::test]
async fn rejection_without_reading_the_body_announces_close() {
    let server = start().await;
    let long = "content-length: 9000000";
    let expecting = "expect: 100-continue\r\n";
    for refused in [
        post("/v1/nothing", "{}", "").replace("content-length: 2", long),
        post("/v1/nothing", "{}", "").replace("content-length: 2", "content-length: 3"),
        post("/v1/nothing", "{}", "")
            .replace("content-length: 2", "transfer-encoding: chunked")
            .replace("{}", "1\r\n{\r\n"),
        post("/v1/nothing", "", expecting).replace("content-length: 0", "content-length: 2"),
    ] {
        let mut socket = connect(&server).await;
        socket.write_all(refused.as_bytes()).await.expect("sent");
        let answer = rest(&mut socket).await;
        let (status, head, _) = parts(&answer);
        assert!(status == 404 && head.contains(CLOSE), "{refused}: {head}");
    }
}

#[tokio::test]
async fn connections_per_peer_are_limited_as_configured() {
    let server = start_with(Config { max_connections_per_peer: 3, ..Config::default() }).await;
    let request = b"GET / HTTP/1.1\r\nhost: gateway\r\n\r\n";
    let mut holding = Vec::new();
    for _ in 0..3 {
        let mut socket = connect(&server).await;
        socket.write_all(request).await.expect("sent");
        let mut head = [0; 12];
        socket.read_exact(&mut head).await.expect("an answer");
        assert_eq!(&head, b"HTTP/1.1 404");
        holding.push(socket);
    }
    let mut refused = connect(&server).await;
    // What it sends before it reads doesn't lose it the response.
    refused
        .write_all(&[b"GET / HTTP/1.1\r\nx-long: ", vec![b'x'; 100_000].as_slice()].concat())
        .await
        .expect("sent");
    tokio::time::sleep(Duration::from_millis(100)).await;
    refused.write_all(b"more").await.expect("the connection is not broken");
    let answer = rest(&mut refused).await;
    let (status, head, body) = parts(&answer);
    assert_eq!((status, body["error"]["code"].as_str()), (429, Some("too_many_connections")));
    assert!(head.contains("x-request-id: req_") && head.contains("connection: close"), "{head}");
    assert!(head.contains("retry-after: 1"), "{head}");

    drop(holding.pop());
    let admitted = async {
        loop {
            let mut socket = connect(&server).await;
            let mut head = [0; 12];
            if socket.write_all(request).await.is_ok()
                && socket.read_exact(&mut head).await.is_ok()
                && &head == b"HTTP/1.1 404"
            {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, admitted).await.expect("the slot was not released");
}

#[tokio::test]
async fn half_closed_client_gets_its_response() {
    let server = start_with(Config { event_delay: Duration::from_millis(20), ..Config::default() }).await;
    let delayed = format!("connection: close\r\n{FAULT_HEADER}: delay=300\r\n");
    let body = r#"{"model":"model-sol","stream":true,"input":"count to 9"}"#;
    for (body, end) in [(body, "response.completed"), (&body.replace("true", "false"), "\"usage\"")] {
        let mut socket = connect(&server).await;
        socket.write_all(post("/v1/responses", body, &delayed).as_bytes()).await.expect("sent");
        socket.shutdown().await.expect("half closed");
        let answer = rest(&mut socket).await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains(end), "{answer}");
    }
}

#[tokio::test]
async fn malformed_request_head_gets_an_error_body() {
    // 7 rule 4: one form for every error, even if the HTTP library rejects the request.
    let server = start().await;
    let get = |path: &str, headers: &str| format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n{headers}\r\n");
    let many = "x-many: y\r\n".repeat(150);
    let large = format!("x-large: {}\r\n", "y".repeat(1_000_000));
    for (request, status, code) in [
        (get("/", &many), 431, "headers_too_large"),
        (get("/", &large), 431, "headers_too_large"),
        (get(&"/long".repeat(20_000), ""), 414, "uri_too_long"),
        (get("/", "bad header: y\r\n"), 400, "malformed_request"),
        ("NONSENSE\r\n\r\n".to_owned(), 400, "malformed_request"),
        // After a regular response on the same connection.
        (get("/", "") + &get("/", &many), 431, "headers_too_large"),
    ] {
        let mut socket = connect(&server).await;
        socket.write_all(request.as_bytes()).await.expect("sent");
        let answer = rest(&mut socket).await;
        let last = answer.rfind("HTTP/1.1 ").map(|at| &answer[at..]).expect("an answer");
        let (found, head, body) = parts(last);
        assert_eq!((found, body["error"]["code"].as_str()), (status, Some(code)), "{answer}");
        assert!(head.contains("x-request-id: req_"), "{head}");
    }
}
