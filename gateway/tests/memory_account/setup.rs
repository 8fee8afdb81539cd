//! A gateway, its clients, and the comparison of its memory account with the allocator.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Gateway, Kind, ModelConfig, TargetConfig, UpstreamConfig};
use serde_json::Value;
use tokio::sync::oneshot;

use crate::counting::{LIVE, PEAK};
use crate::upstream::{ANSWERED, Answer, WEBHOOKS, fill, serve};
use crate::{BASE, KEY, MIB};

/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(2);
/// The tests share these counters, so they run one at a time.
static TURN: Mutex<()> = Mutex::new(());

/// A gateway in front of an upstream that always sends the same response.
pub(crate) struct Setup {
    pub(crate) address: String,
    /// The URL of the upstream.
    pub(crate) upstream: String,
    /// Live bytes after the start.
    pub(crate) before: usize,
    runtime: tokio::runtime::Runtime,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Setup {
    pub(crate) fn new(answer: Answer, budget: usize) -> Self {
        Self::with(answer, |config| Config { max_held_bytes: budget, ..config })
    }

    pub(crate) fn with(answer: Answer, change: impl FnOnce(Config) -> Config) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        _ = rustls::crypto::ring::default_provider().install_default();
        ANSWERED.store(0, Ordering::Relaxed);
        WEBHOOKS.store(0, Ordering::Relaxed);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                // Ends with its connection, for whatever reason.
                std::thread::spawn(move || _ = serve(socket, answer));
            }
        });
        let config = change(Config {
            listen: vec!["127.0.0.1:0".to_owned()],
            key: Some(ApiKey::new(KEY).expect("a key")),
            open_metrics: true,
            upstreams: vec![UpstreamConfig::new("one", Kind::Chat, url.clone())],
            models: vec![ModelConfig::new("mine", "family_one", TargetConfig::new("one", "theirs"))],
            ..Config::default()
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let gateway = runtime.block_on(Gateway::bind(config)).expect("a free port");
        let address = gateway.url().replace("http://", "");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = runtime.spawn(async move {
            let stopped = async { _ = stopped.await };
            _ = gateway.serve(stopped).await;
        });
        let setup = Self { address, upstream: url, before: 0, runtime, stop, serving, _turn: turn };
        setup.held();
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        Self { before, ..setup }
    }

    /// The bytes that the account reports.
    pub(crate) fn held(&self) -> usize {
        let mut socket = TcpStream::connect(&self.address).expect("connected");
        let request = "GET /metrics HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let held = answer.split("\ngatewright_held_bytes ").nth(1).expect("the metric");
        held.split('\n').next().and_then(|held| held.parse().ok()).expect("a number")
    }

    /// Sends concurrent requests with prompts of this many mebibytes. `lacks`: number of final bytes withheld.
    pub(crate) fn ask(
        &self,
        clients: usize,
        path: &str,
        stream: bool,
        mebibytes: usize,
        lacks: usize,
    ) -> Vec<TcpStream> {
        let beginning = format!(
            r#"{{"model":"mine","stream":{stream},"max_tokens":9,"messages":[{{"role":"user","content":"hi"#
        );
        let end = &br#""}]}"#[..];
        let length = beginning.len() + mebibytes * MIB + end.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{beginning}"
        );
        let ask = |_| {
            let mut socket = TcpStream::connect(&self.address).expect("connected");
            let sent = socket.write_all(head.as_bytes()).and_then(|()| fill(&mut socket, mebibytes));
            match sent.and_then(|()| socket.write_all(&end[..end.len() - lacks])) {
                // Rejected before it was sent completely.
                Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
                sent => sent.expect("sent"),
            }
            socket
        };
        (0..clients).map(ask).collect()
    }

    /// Sends a request of these bytes, and reads nothing of its response.
    pub(crate) fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        self.send_with("", method, path, body)
    }

    /// As [`send`](Self::send). `headers`: additional ones, each with its line ending.
    pub(crate) fn send_with(&self, headers: &str, method: &str, path: &str, body: &str) -> TcpStream {
        let mut socket = TcpStream::connect(&self.address).expect("connected");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {KEY}\r\nconnection: close\r\n\
             content-type: application/json\r\n{headers}content-length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        socket.write_all(head.as_bytes()).and_then(|()| socket.write_all(body.as_bytes())).expect("sent");
        socket
    }

    /// The successful response to a request.
    pub(crate) fn answer(&self, path: &str, body: &Value) -> Value {
        let mut answer = Vec::new();
        self.send("POST", path, &body.to_string()).read_to_end(&mut answer).expect("an answer");
        assert!(
            answer.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&answer[..answer.len().min(2000)])
        );
        let end = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head");
        serde_json::from_slice(&answer[end + 4..]).expect("JSON")
    }

    /// Compares the peak of allocated memory with the largest size of the account, `held`, and `fixed` bytes outside it.
    pub(crate) fn peaks_within(&self, held: usize, fixed: usize) {
        let peak = PEAK.load(Ordering::Relaxed).saturating_sub(self.before);
        assert!(peak <= held + held / 2 + fixed + BASE, "a peak of {peak} bytes for {held} in the account");
    }

    /// Waits until the account reports at least this many bytes, and compares it with the allocated memory.
    pub(crate) fn counts(&self, least: usize) {
        eventually(
            || self.held() >= least,
            || format!("{} of {least} bytes are in the account", self.held()),
        );
        let fits = || self.grown() <= self.held() + self.held() / 2 + BASE;
        eventually(fits, || format!("{} bytes for {} in the account", self.grown(), self.held()));
    }

    /// Waits until nothing large remains in the account or allocated.
    pub(crate) fn is_small(&self) {
        let describe = || format!("{} bytes, {} in the account", self.grown(), self.held());
        eventually(|| self.held() < MIB && self.grown() < BASE, describe);
    }

    /// Growth of live bytes since the start.
    pub(crate) fn grown(&self) -> usize {
        LIVE.load(Ordering::Relaxed).saturating_sub(self.before)
    }

    /// Stops the gateway without waiting for clients.
    pub(crate) fn end(self, clients: Vec<TcpStream>) {
        drop(clients);
        eventually(|| self.held() == 0, || format!("{} bytes are still in the account", self.held()));
        _ = self.stop.send(());
        self.runtime.block_on(self.serving).expect("no panic");
    }
}

pub(crate) fn eventually(mut is_so: impl FnMut() -> bool, describe: impl Fn() -> String) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{}", describe());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads a response until this many bytes have arrived.
pub(crate) fn read(client: &mut TcpStream, least: usize) {
    let (mut buffer, mut count) = ([0; 16 * 1024], 0);
    while count < least {
        let more = client.read(&mut buffer).expect("bytes");
        assert!(more > 0, "an end after {count} bytes");
        count += more;
    }
}
