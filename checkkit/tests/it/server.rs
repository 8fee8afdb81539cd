//! A loopback server that answers each of the kit's requests with scripted bytes and a scripted ending.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A request from the kit or from an agent.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// Which check sends such a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Models,
    Text,
    Stream,
    Tool,
    Other,
}

/// Bytes to write, one packet each, and what happens to the connection after them.
#[derive(Debug, Clone)]
pub(crate) struct Canned {
    pub(crate) packets: Vec<Vec<u8>>,
    pub(crate) end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Close,
    Reset,
    /// Stays open until the kit disconnects.
    Hang,
    /// Repeats the last packet until the kit disconnects.
    Flood,
}

type Answering = Arc<dyn Fn(&Request) -> Canned + Send + Sync>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    accepting: JoinHandle<()>,
}

impl Request {
    pub(crate) fn route(&self) -> Route {
        if self.line.starts_with("GET ") && self.line.contains("/models ") {
            Route::Models
        } else if !self.line.starts_with("POST ") || !self.line.contains("/responses ") {
            Route::Other
        } else if self.body["stream"] == true {
            Route::Stream
        } else if self.body["tools"].is_array() {
            Route::Tool
        } else {
            Route::Text
        }
    }

    /// The run's token, wherever it is in the request.
    pub(crate) fn token(&self) -> String {
        let text = self.body.to_string();
        let start = text.find("COMPAT-").unwrap_or(text.len());
        text[start..].chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect()
    }

    pub(crate) fn model(&self) -> &str {
        self.body["model"].as_str().unwrap_or_default()
    }

    pub(crate) fn key(&self) -> &str {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap_or_default()
    }
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&Request) -> Canned + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (recorded, answer): (_, Answering) = (Arc::clone(&requests), Arc::new(answer));
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&recorded), Arc::clone(&answer)));
            }
        });
        Self { address, requests, accepting }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("not poisoned").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(mut socket: TcpStream, requests: Arc<Mutex<Vec<Request>>>, answer: Answering) {
    socket.set_nodelay(true).expect("a TCP socket");
    let Some(request) = read_request(&mut socket).await else { return };
    requests.lock().expect("not poisoned").push(request.clone());
    let Canned { packets, end } = answer(&request);
    for packet in &packets {
        if socket.write_all(packet).await.is_err() {
            return;
        }
        // Makes two packets arrive separately.
        tokio::task::yield_now().await;
    }
    match end {
        End::Close => {}
        // With linger 0, closing sends a reset.
        End::Reset => {
            // Everything written should already be on its way.
            tokio::time::sleep(Duration::from_millis(20)).await;
            socket.set_zero_linger().expect("a TCP socket");
        }
        End::Hang => {
            let mut rest = Vec::new();
            // Ends when the kit closes the connection, in whatever way.
            let _ = socket.read_to_end(&mut rest).await;
        }
        End::Flood => {
            let last = packets.last().cloned().unwrap_or_default();
            while !last.is_empty() && socket.write_all(&last).await.is_ok() {}
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<Request> {
    let mut received = Vec::new();
    loop {
        // The beginning of a TLS handshake.
        if received.first() == Some(&0x16) {
            return Some(Request { line: "TLS".to_owned(), head: String::new(), body: Value::Null });
        }
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&received[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            while received.len() < end + 4 + length {
                if socket.read_buf(&mut received).await.ok()? == 0 {
                    return None;
                }
            }
            let body = serde_json::from_slice(&received[end + 4..]).unwrap_or_default();
            let line = head.lines().next().unwrap_or_default().to_owned();
            return Some(Request { line, head, body });
        }
        if socket.read_buf(&mut received).await.ok()? == 0 {
            return None;
        }
    }
}
