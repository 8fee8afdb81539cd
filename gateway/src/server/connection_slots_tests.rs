//! A gateway whose slots are all taken, with real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use gatewright_config::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
#[cfg(target_os = "linux")]
use tokio::net::TcpSocket;
use tokio::net::TcpStream;

use super::Gateway;

/// Long enough for a busy machine; no passing test reaches it.
const PATIENCE: Duration = Duration::from_secs(30);
const PROBE: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: gateway\r\n\r\n";

#[cfg(target_os = "linux")]
async fn start(max_connections: usize) -> SocketAddr {
    let listen = vec!["127.0.0.1:0".to_owned()];
    let gateway =
        Gateway::bind(Config { listen, max_connections, ..Config::default() }).await.expect("a free port");
    let address = gateway.address();
    tokio::spawn(gateway.serve(std::future::pending()));
    address
}

#[cfg(target_os = "linux")]
/// A connection from one of this machine's addresses.
async fn connect_from(host: u8, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).expect("an address of this machine");
    socket.connect(address).await.expect("a connection")
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

/// The status line for a probe on a connection that stays open.
async fn probe(socket: &mut TcpStream) -> String {
    ask(socket, PROBE).await
}

/// The status line of the response to a request.
async fn ask(socket: &mut TcpStream, request: &[u8]) -> String {
    let answered = async {
        socket.write_all(request).await.expect("sent");
        let mut answer = vec![0; 4096];
        let length = socket.read(&mut answer).await.expect("an answer");
        String::from_utf8_lossy(&answer[..length]).lines().next().unwrap_or_default().to_owned()
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("no answer came")
}

/// Whether the gateway has closed a connection.
async fn is_closed(socket: &mut TcpStream) -> bool {
    let read = tokio::time::timeout(Duration::from_millis(500), socket.read(&mut [0])).await;
    read.is_ok_and(|read| read.map_or(true, |length| length == 0))
}

#[tokio::test]
async fn probe_address_answers_while_every_slot_is_busy() {
    let local = || vec!["127.0.0.1:0".to_owned()];
    let config = Config { listen: local(), health_listen: local(), max_connections: 1, ..Config::default() };
    let gateway = Gateway::bind(config).await.expect("free ports");
    let address = gateway.address();
    let probes = gateway.probes.as_ref().expect("an address for probes").address();
    let key = gateway.key().expose().to_owned();
    tokio::spawn(gateway.serve(std::future::pending()));
    let mut busy = connect(address).await;
    // The gateway asks for the body, which never arrives.
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n"
    );
    assert_eq!(ask(&mut busy, head.as_bytes()).await, "HTTP/1.1 100 Continue");
    let mut waiting = connect(address).await;
    waiting.write_all(PROBE).await.expect("sent");
    assert!(!is_closed(&mut waiting).await, "it waits for a place");
    for _ in 0..2 {
        let mut client = connect(probes).await;
        assert_eq!(probe(&mut client).await, "HTTP/1.1 200 OK");
        let models = b"GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n";
        assert_eq!(ask(&mut client, models).await, "HTTP/1.1 404 Not Found");
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn silent_connections_from_few_addresses_do_not_lock_out_others() {
    let address = start(16).await;
    let mut silent = Vec::new();
    for host in [1, 2, 3, 4] {
        for _ in 0..8 {
            silent.push(connect_from(host, address).await);
        }
    }
    let mut client = connect_from(5, address).await;
    assert_eq!(probe(&mut client).await, "HTTP/1.1 200 OK");
    assert!(is_closed(&mut silent[0]).await, "it has been silent for the longest time");
    // A connection that has had a response outlasts those that have sent nothing.
    for _ in 0..8 {
        silent.push(connect_from(4, address).await);
    }
    assert_eq!(probe(&mut client).await, "HTTP/1.1 200 OK");
}
