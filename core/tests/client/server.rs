//! A server on loopback that writes exactly the bytes it is given, with the given packet boundaries, pauses and
//! endings, and keeps the requests it received.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Pause between two packets, so that they arrive separately.
const PACKET_GAP: Duration = Duration::from_millis(3);

/// One step of the server's response to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Pause(Duration),
    /// Waits until the client closes the connection.
    Hang,
    /// Closes the connection with a reset.
    Reset,
}

/// The response to one request. The connection stays open after it unless `close` is set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Script {
    steps: Vec<Step>,
    close: bool,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The connection that it arrived on: 0 for the first.
    pub(crate) connection: usize,
    pub(crate) line: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    scripts: VecDeque<Script>,
    requests: Vec<Request>,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    closed: watch::Receiver<usize>,
    hanging: watch::Receiver<usize>,
}

impl Script {
    /// A response with Content-Length.
    pub(crate) fn whole(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = body.len().to_string();
        let mut headers = headers.to_vec();
        headers.push(("content-length", &length));
        Self { steps: vec![Step::Send([&head(status, &headers), body].concat())], close: false }
    }

    /// A response whose connection closes before its Content-Length is reached.
    pub(crate) fn cut(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let length = (body.len() + 1).to_string();
        let mut headers = headers.to_vec();
        headers.push(("content-length", &length));
        Self { steps: vec![Step::Send([&head(status, &headers), body].concat())], close: true }
    }

    /// A response that ends when its connection does.
    pub(crate) fn until_close(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        Self { steps: vec![Step::Send([&head(status, headers), body.as_ref()].concat())], close: true }
    }

    /// 200 with a JSON body.
    pub(crate) fn json(body: &str) -> Self {
        Self::whole(200, &[("content-type", "application/json")], body)
    }

    /// The head of an event stream; follow it with [`Script::packet`] and one of the endings.
    pub(crate) fn events() -> Self {
        Self::begin(200, &[("content-type", "text/event-stream"), ("x-request-id", "req_stream")])
    }

    /// The head of a response in chunked encoding.
    pub(crate) fn begin(status: u16, headers: &[(&str, &str)]) -> Self {
        let mut headers = headers.to_vec();
        headers.push(("transfer-encoding", "chunked"));
        Self { steps: vec![Step::Send(head(status, &headers))], close: false }
    }

    /// One HTTP chunk in one packet.
    pub(crate) fn packet(mut self, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let chunk = [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
        self.steps.push(Step::Pause(PACKET_GAP));
        self.steps.push(Step::Send(chunk));
        self
    }

    /// The clean end of the body.
    pub(crate) fn end(mut self) -> Self {
        self.steps.push(Step::Send(b"0\r\n\r\n".to_vec()));
        self
    }

    pub(crate) fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Sends these bytes unchanged, then closes the connection.
    pub(crate) fn bytes(bytes: impl AsRef<[u8]>) -> Self {
        Self { steps: vec![Step::Send(bytes.as_ref().to_vec())], close: true }
    }

    /// Closes the connection without sending anything.
    pub(crate) fn silence() -> Self {
        Self { steps: Vec::new(), close: true }
    }

    /// Sends nothing until the client gives up.
    pub(crate) fn hang() -> Self {
        Self { steps: vec![Step::Hang], close: true }
    }
}

fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("HTTP/1.1 {status} X\r\n{}\r\n", lines.collect::<String>()).into_bytes()
}

impl Server {
    /// Responds to the requests in order, one script each; further requests get no response.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let address = listener.local_addr().expect("bound");
        let state = State { scripts: scripts.into_iter().collect(), requests: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let (closed_sender, closed) = watch::channel(0);
        let (hanging_sender, hanging) = watch::channel(0);
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            let mut connection = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let (state, closed) = (Arc::clone(&shared), closed_sender.clone());
                let hanging = hanging_sender.clone();
                tokio::spawn(async move {
                    serve(socket, connection, &state, &hanging).await;
                    closed.send_modify(|count| *count += 1);
                });
                connection += 1;
            }
        });
        Self { address, state, closed, hanging }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests received so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.lock().expect("not poisoned").requests.clone()
    }

    /// Waits until this many connections are closed; false if that takes longer than `within`.
    pub(crate) async fn connections_closed(&self, count: usize, within: Duration) -> bool {
        let mut closed = self.closed.clone();
        tokio::time::timeout(within, closed.wait_for(|closed| *closed >= count)).await.is_ok()
    }

    /// Waits until the server has sent everything before a [`Step::Hang`], and the client's runtime has noticed.
    pub(crate) async fn hangs(&self) {
        let mut hanging = self.hanging.clone();
        let hangs = tokio::time::timeout(Duration::from_secs(10), hanging.wait_for(|count| *count > 0)).await;
        hangs.expect("the server hangs").expect("it runs");
        tokio::time::sleep(PACKET_GAP).await;
    }

    /// A client of this server with short timeouts and no retries.
    pub(crate) fn client(&self) -> gatewright::Client {
        self.builder().build().expect("a client")
    }

    pub(crate) fn builder(&self) -> gatewright::ClientBuilder {
        gatewright::Client::builder()
            .base_url(self.url())
            .api_key("sk-canary")
            .timeout(Duration::from_secs(10))
            .idle_timeout(Duration::from_secs(5))
            .max_retries(0)
    }
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

async fn serve(
    mut socket: TcpStream,
    connection: usize,
    state: &Mutex<State>,
    hanging: &watch::Sender<usize>,
) {
    socket.set_nodelay(true).expect("a TCP socket");
    let mut received = Vec::new();
    while let Some(request) = read_request(&mut socket, connection, &mut received).await {
        let script = {
            let mut state = state.lock().expect("not poisoned");
            state.requests.push(request);
            state.scripts.pop_front().unwrap_or_else(Script::hang)
        };
        for step in script.steps {
            match step {
                Step::Send(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Pause(pause) => tokio::time::sleep(pause).await,
                Step::Hang => {
                    hanging.send_modify(|count| *count += 1);
                    let mut rest = Vec::new();
                    // Ends when the client closes the connection, in whatever way.
                    let _ = socket.read_to_end(&mut rest).await;
                    return;
                }
                Step::Reset => {
                    // With linger 0, closing sends a reset.
                    socket.set_zero_linger().expect("a TCP socket");
                    return;
                }
            }
        }
        if script.close {
            return;
        }
    }
}

async fn read_request(socket: &mut TcpStream, connection: usize, received: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&received[..end]).into_owned();
            let mut lines = text.split("\r\n");
            let line = lines.next()?.to_owned();
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| {
                    line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()))
                })
                .collect();
            let mut request = Request { connection, line, headers, body: Vec::new() };
            let length = request.header("content-length").map_or(0, |text| text.parse().expect("a number"));
            let total = end + 4 + length;
            while received.len() < total {
                if socket.read_buf(received).await.ok()? == 0 {
                    return None;
                }
            }
            request.body = received[end + 4..total].to_vec();
            received.drain(..total);
            return Some(request);
        }
        if socket.read_buf(received).await.ok()? == 0 {
            return None;
        }
    }
}
