//! A gateway whose places are all taken, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::Gateway;
use crate::config::Config;

/// Long enough for a busy machine; reached by no test that passes.
const PATIENCE: Duration = Duration::from_secs(30);
const PROBE: &[u8] = b"GET /health/live HTTP/1.1\r\nhost: gateway\r\n\r\n";

async fn start(max_connections: usize) -> SocketAddr {
    let listen = vec!["127.0.0.1:0".to_owned()];
    let gateway =
        Gateway::bind(Config { listen, max_connections, ..Config::default() }).await.expect("a free port");
    let address = gateway.address();
    tokio::spawn(gateway.serve(std::future::pending()));
    address
}

/// A connection from one of the addresses of this machine.
async fn connect_from(host: u8, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).expect("an address of this machine");
    socket.connect(address).await.expect("a connection")
}

/// The status of a probe on a connection that stays open.
async fn probe(socket: &mut TcpStream) -> String {
    let answered = async {
        socket.write_all(PROBE).await.expect("sent");
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

#[cfg(target_os = "linux")]
#[tokio::test]
async fn silent_connections_from_a_few_addresses_lock_nobody_out() {
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
    // One that has had an answer outlasts those that have sent nothing.
    for _ in 0..8 {
        silent.push(connect_from(4, address).await);
    }
    assert_eq!(probe(&mut client).await, "HTTP/1.1 200 OK");
}
