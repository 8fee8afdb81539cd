//! Connections as strangers use them: they hold nothing for ever (8), and no answer is lost that could be given.

use std::time::Duration;

use gatewright_gateway::{Config, FAULT_HEADER};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::support::{KEY, Server, start, start_with};

/// Long enough for a busy machine; reached by no test that passes.
const PATIENCE: Duration = Duration::from_mins(1);

async fn connect(server: &Server) -> TcpStream {
    TcpStream::connect(server.url.trim_start_matches("http://")).await.expect("a connection")
}

/// What comes until the gateway ends the connection.
async fn rest(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut bytes)).await;
    read.expect("the connection stayed open").expect("the connection broke");
    String::from_utf8(bytes).expect("UTF-8")
}

/// Status, head and JSON body of an answer that is all that came.
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
async fn clients_that_never_read_lose_their_connections_and_others_get_the_places() {
    let write_timeout = Duration::from_millis(300);
    let server = start_with(Config { max_connections: 4, write_timeout, ..Config::default() }).await;
    let address = server.url.trim_start_matches("http://").parse().expect("an address");
    // The answer names the path: the longer it is, the fewer requests it takes until the answers are stuck.
    let path = "/long".repeat(2_000);
    let requests = format!("GET {path} HTTP/1.1\r\nhost: gateway\r\n\r\n").repeat(20);
    let clients = (0..4).map(async |_| {
        let socket = TcpSocket::new_v4().expect("a socket");
        // The less fits, the sooner the answers are stuck.
        socket.set_recv_buffer_size(4096).expect("a small buffer");
        let mut socket = socket.connect(address).await.expect("a connection");
        // Writing goes on until the gateway breaks the connection: it stops reading when its answers are stuck.
        while socket.write_all(requests.as_bytes()).await.is_ok() {}
    });
    let cut_off = tokio::time::timeout(PATIENCE, futures_util::future::join_all(clients)).await;
    cut_off.expect("connections were held");
    let mut socket = connect(&server).await;
    socket.write_all(b"GET / HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n").await.expect("sent");
    assert_eq!(parts(&rest(&mut socket).await).0, 404);
}

#[tokio::test]
async fn a_connection_that_idles_between_requests_is_closed() {
    let config = Config { header_timeout: Duration::from_millis(200), ..Config::default() };
    let server = start_with(config).await;
    let mut socket = connect(&server).await;
    socket.write_all(b"GET / HTTP/1.1\r\nhost: gateway\r\n\r\n").await.expect("sent");
    assert_eq!(parts(&rest(&mut socket).await).0, 404);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let config = Config { body_timeout: Duration::from_millis(200), ..Config::default() };
    let server = start_with(config).await;
    let mut socket = connect(&server).await;
    let request = post("/v1/responses", "{}", "").replace("content-length: 2", "content-length: 200");
    socket.write_all(request.as_bytes()).await.expect("sent");
    let answer = rest(&mut socket).await;
    assert_eq!(parts(&answer).0, 408);
}

/// An answer with a length: its head and its body.
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
async fn a_refused_request_whose_body_comes_later_costs_the_next_one_nothing() {
    let server = start().await;
    let good = post("/v1/responses", r#"{"model":"model-sol","input":"Say hi"}"#, "");
    for (refused, status) in [
        (post("/v1/nothing", r#"{"a":1}"#, ""), 404),
        (post("/v1/responses", r#"{"a":1}"#, "").replace(KEY, "wrong"), 401),
        (post("/v1/responses", r#"{"a":1}"#, "").replace("application/json", "text/plain"), 415),
        (post("/v1/models", r#"{"a":1}"#, ""), 405),
    ] {
        let (head, body) = refused.split_at(refused.len() - r#"{"a":1}"#.len());
        // With the head, right behind it, and when the gateway no longer waits for it.
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
async fn a_refusal_that_does_not_wait_for_the_body_says_that_the_connection_ends() {
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
async fn one_peer_holds_no_more_connections_than_configured() {
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
    // What it sends before it reads does not cost it the answer.
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
    tokio::time::timeout(PATIENCE, admitted).await.expect("the place was not given back");
}

#[tokio::test]
async fn a_client_that_has_ended_its_sending_half_gets_its_answer() {
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
async fn a_head_that_cannot_be_read_is_answered_with_an_error_body() {
    // 7 rule 4: one form for every error, also where the HTTP library refuses the request.
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
        // Behind an answer of the gateway's own, on the same connection.
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
