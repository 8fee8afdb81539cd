//! The peak of the program's memory, beside what its account says, while both sides send the largest inputs that it accepts
//! (`docs/handbook/strangers.md`). The account by itself is tested with every path in `gateway/tests/memory_account`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::gateway::Serving;

const MIB: usize = 1024 * 1024;
/// Memory of the program outside its account: connections, buffers of the runtime, and blocks that the allocator keeps.
const BASE: usize = 48 * MIB;
/// Nearly the longest event and the longest document of an upstream.
const EVENT: usize = 60;
const DOCUMENT: usize = 120;
/// Concurrent requests.
const CLIENTS: usize = 3;
/// What all of them may take.
const BUDGET: usize = 2048 * MIB;
const KEY: &str = "client-key-of-16";
/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(2);

/// Bytes that are sent, which the gateway's memory doesn't contain.
static FILL: [u8; MIB] = [b'x'; MIB];

/// What an upstream sends once it has read a request.
#[derive(Clone, Copy)]
enum Reply {
    /// A complete document.
    Document,
    /// A stream of one event, which doesn't end.
    OpenEvent,
    /// A stream of one complete event.
    Event,
}

/// An upstream, and how many responses it has written.
struct Upstream {
    url: String,
    written: Arc<AtomicUsize>,
}

impl Upstream {
    fn start(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let written = Arc::<AtomicUsize>::default();
        let counter = Arc::clone(&written);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let counter = Arc::clone(&counter);
                std::thread::spawn(move || answer(connection, reply, &counter));
            }
        });
        Self { url, written }
    }
}

/// Reads a request, answers it, and waits until the gateway closes the connection.
fn answer(mut connection: TcpStream, reply: Reply, written: &AtomicUsize) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let chunk = r#"data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"theirs","choices":[{"index":0,"delta":{"content":""#;
    let (beginning, mebibytes, end) = match reply {
        Reply::OpenEvent => (format!("{stream}{chunk}"), EVENT, ""),
        Reply::Event => (format!("{stream}{chunk}"), EVENT, "\"}}]}\n\n"),
        Reply::Document => {
            let start = r#"{"id":"1","object":"chat.completion","created":1,"model":"theirs","choices":[{"index":0,"message":{"role":"assistant","content":""#;
            let end = r#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
            let length = start.len() + DOCUMENT * MIB + end.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{start}"
            );
            (head, DOCUMENT, end)
        }
    };
    connection.write_all(beginning.as_bytes())?;
    for _ in 0..mebibytes {
        connection.write_all(&FILL)?;
    }
    connection.write_all(end.as_bytes())?;
    written.fetch_add(1, Ordering::Relaxed);
    reader.read_to_end(&mut Vec::new()).map(drop)
}

/// A gateway in front of an upstream.
struct Measured {
    gateway: Serving,
    upstream: Upstream,
    /// Peak after the start.
    before: usize,
    /// Peak of the account.
    held: usize,
    _folder: tempfile::TempDir,
}

impl Measured {
    fn start(reply: Reply) -> Self {
        let upstream = Upstream::start(reply);
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("gatewright.toml");
        let text = format!(
            "[observe]\nopen_metrics = true\n[limits]\nmax_held = \"{}MiB\"\nmax_percent_per_key = 100\n\
             [upstreams.one]\nkind = \"chat\"\nbase_url = \"{}\"\nkey = {{ env = \"UPSTREAM_KEY\" }}\n\
             [models.mine]\ntargets = [{{ upstream = \"one\", model = \"theirs\" }}]\n",
            BUDGET / MIB,
            upstream.url
        );
        std::fs::write(&config, text).expect("written");
        let arguments = ["--config", config.to_str().expect("a path"), "--key", KEY];
        let gateway =
            Serving::start_with(&arguments, &[("UPSTREAM_KEY", "upstream-key-16"), ("RUST_LOG", "error")]);
        let mut measured = Self { gateway, upstream, before: 0, held: 0, _folder: folder };
        assert_eq!(measured.sample(), 0);
        measured.before = measured.peak();
        measured
    }

    /// Sends a request, and reads nothing of its response.
    fn send(&self, path: &str, stream: bool, prompt: &str) -> TcpStream {
        let address = self.gateway.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).expect("connected");
        let messages = json!([{ "role": "user", "content": prompt }]);
        let body =
            json!({ "model": "mine", "max_tokens": 9, "stream": stream, "messages": messages }).to_string();
        write!(
            socket,
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        socket
    }

    /// What the account holds now.
    fn sample(&mut self) -> usize {
        let address = self.gateway.url.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).expect("connected");
        write!(socket, "GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
            .expect("sent");
        let mut text = String::new();
        socket.read_to_string(&mut text).expect("a response");
        let line = text.lines().find_map(|line| line.strip_prefix("gatewright_held_bytes "));
        let held = line.and_then(|value| value.parse().ok()).expect("the account");
        self.held = self.held.max(held);
        held
    }

    /// The peak of the process's resident memory, in bytes.
    fn peak(&self) -> usize {
        let path = format!("/proc/{}/status", self.gateway.child.id());
        let status = std::fs::read_to_string(path).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let kib: usize = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kib * 1024
    }

    /// Waits until everything has been sent and the account holds this much for each client. Compares the peak of the process with that of the account.
    fn compare(mut self, what: &str, least: usize, clients: Vec<TcpStream>) {
        let started = Instant::now();
        while self.sample() < clients.len() * least
            || self.upstream.written.load(Ordering::Relaxed) < clients.len()
        {
            let Self { upstream, held, .. } = &self;
            assert!(started.elapsed() < PATIENCE, "{what}: {:?} sent, {held} bytes held", upstream.written);
        }
        let grown = self.peak() - self.before;
        let allowed = self.held + self.held / 2 + BASE;
        assert!(grown <= allowed, "{what}: the program took {grown} bytes for {} in its account", self.held);
        drop(clients);
        while self.sample() > 0 {
            assert!(started.elapsed() < PATIENCE, "{what}: memory is still in the account");
        }
    }
}

#[test]
fn programs_peak_memory_is_within_its_account() {
    let requests = [
        ("a document", Reply::Document, "/v1/chat/completions", false, DOCUMENT),
        ("a translated document", Reply::Document, "/v1/messages", false, DOCUMENT),
        ("an event without an end", Reply::OpenEvent, "/v1/chat/completions", true, EVENT),
        ("an unread event", Reply::Event, "/v1/chat/completions", true, EVENT),
        ("an unread, translated event", Reply::Event, "/v1/messages", true, EVENT),
    ];
    for (what, reply, path, stream, least) in requests {
        let measured = Measured::start(reply);
        let clients = (0..CLIENTS).map(|_| measured.send(path, stream, "hi")).collect();
        measured.compare(what, least * MIB, clients);
    }
    let measured = Measured::start(Reply::Document);
    let prompt = "x".repeat(9 * MIB);
    let clients = (0..CLIENTS).map(|_| measured.send("/v1/chat/completions", false, &prompt)).collect();
    measured.compare("a request and its document", DOCUMENT * MIB, clients);
}
