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
