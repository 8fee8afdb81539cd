//! Compares the memory account with what the allocator has handed out, on each path that grows with untrusted input, for the
//! largest inputs.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use gatewright_gateway::{
    ApiKey, Config, Gateway, Kind, ModelConfig, ModelKind, TargetConfig, UpstreamConfig,
};
use gatewright_store::MAX_ANSWER_BYTES;
use serde_json::{Value, json};
use tokio::sync::oneshot;

const MIB: usize = 1024 * 1024;
/// Memory that a gateway uses outside the account in these tests: connections, tasks, and its own work.
const BASE: usize = 8 * MIB;
/// Long enough for a busy machine; no passing test waits this long.
const PATIENCE: Duration = Duration::from_mins(2);
const KEY: &str = "gw-memory-0123456789";
/// Concurrent requests.
const CLIENTS: usize = 4;

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
/// Peak of live bytes.
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// The tests share these counters, so they run one at a time.
static TURN: Mutex<()> = Mutex::new(());
/// Bytes sent in either direction, which aren't counted.
static FILL: [u8; MIB] = [b'x'; MIB];

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(live, Ordering::Relaxed);
}

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts and passes on")]
// SAFETY: every method passes its arguments unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The system moves large blocks without a second copy.
        match size.checked_sub(layout.size()) {
            Some(more) => grow(more),
            None => _ = LIVE.fetch_sub(layout.size() - size, Ordering::Relaxed),
        }
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What an upstream sends once it has read a request.
#[derive(Clone, Copy)]
enum Answer {
    Nothing,
    /// A unary response of this many mebibytes, without its end.
    Document(usize),
    /// A complete unary response of this many mebibytes.
    Completion(usize),
    /// A sound of this many mebibytes.
    Sound(usize),
    /// The URL of an image, and at that URL an image of this many mebibytes.
    Image(usize),
    /// A body of this many mebibytes, without its end.
    Webhook(usize),
    /// An event of this many mebibytes, followed by a small one.
    Event(usize),
    /// An event of this many mebibytes, without its end.
    OpenEvent(usize),
    /// This many mebibytes of comments.
    Comments(usize),
}

const PNG_SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Number of responses sent so far.
static ANSWERED: AtomicUsize = AtomicUsize::new(0);
/// Number of webhooks received so far.
static WEBHOOKS: AtomicUsize = AtomicUsize::new(0);

impl Answer {
    /// `head`: of the request.
    fn send(self, socket: &mut TcpStream, head: &str) -> std::io::Result<()> {
        let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let beginning = r#"{"choices":[{"index":0,"delta":{"content":""#;
        match self {
            Self::Nothing => {}
            Self::Document(mebibytes) => {
                let length = beginning.len() + mebibytes * MIB + 1;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
                write!(socket, "{head} {length}\r\n\r\n{beginning}")?;
                fill(socket, mebibytes)?;
            }
            Self::Completion(mebibytes) => {
                let begin = r#"{"id":"1","object":"chat.completion","created":1,"model":"theirs","choices":[{"index":0,"message":{"role":"assistant","content":""#;
                let end = r#""},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
                let length = begin.len() + mebibytes * MIB + end.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
                write!(socket, "{head} {length}\r\n\r\n{begin}")?;
                fill(socket, mebibytes)?;
                write!(socket, "{end}")?;
            }
            Self::Sound(mebibytes) => {
                let length = mebibytes * MIB;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length:";
                write!(socket, "{head} {length}\r\n\r\n")?;
                fill(socket, mebibytes)?;
            }
            Self::Image(mebibytes) if head.starts_with("GET ") => {
                let length = PNG_SIGNATURE.len() + mebibytes * MIB;
                write!(
                    socket,
                    "HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: {length}\r\n\r\n"
                )?;
                socket.write_all(PNG_SIGNATURE)?;
                fill(socket, mebibytes)?;
            }
            Self::Image(_) => {
                let host = head.split("host: ").nth(1).and_then(|rest| rest.split("\r\n").next());
                let url = format!("http://{}/1.png", host.expect("a host"));
                let body = json!({ "created": 1, "data": [{ "url": url }] }).to_string();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
                write!(socket, "{head} {}\r\n\r\n{body}", body.len())?;
            }
            Self::Webhook(mebibytes) => {
                WEBHOOKS.fetch_add(1, Ordering::Relaxed);
                write!(socket, "HTTP/1.1 500 X\r\ncontent-length: {}\r\n\r\n", mebibytes * MIB + 1)?;
                fill(socket, mebibytes)?;
            }
            Self::Event(mebibytes) => {
                write!(socket, "{stream}data: {beginning}")?;
                fill(socket, mebibytes)?;
                write!(socket, "\"}}}}]}}\n\ndata: {beginning}small\"}}}}]}}\n\n")?;
            }
            Self::OpenEvent(mebibytes) => {
                write!(socket, "{stream}data: {beginning}")?;
                fill(socket, mebibytes)?;
            }
            Self::Comments(mebibytes) => {
                write!(socket, "{stream}")?;
                for _ in 0..mebibytes * 64 {
                    socket.write_all(b": ")?;
                    socket.write_all(&FILL[..16 * 1024])?;
                    socket.write_all(b"\n\n")?;
                }
            }
        }
        ANSWERED.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn fill(socket: &mut TcpStream, mebibytes: usize) -> std::io::Result<()> {
    (0..mebibytes).try_for_each(|_| socket.write_all(&FILL))
}

/// Reads a request, sends the response, and keeps the connection open until the gateway closes it.
fn serve(mut socket: TcpStream, answer: Answer) -> std::io::Result<()> {
    let (mut buffer, mut seen) = ([0; 16 * 1024], 0);
    let end = loop {
        seen += socket.read(&mut buffer[seen..])?;
        if let Some(end) = buffer[..seen].windows(4).position(|end| end == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    let length =
        head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut left = length.unwrap_or(0_usize) - (seen - end);
    while left > 0 {
        left -= socket.read(&mut buffer)?;
    }
    answer.send(&mut socket, &head)?;
    drop(head);
    while socket.read(&mut buffer)? > 0 {}
    Ok(())
}

/// A gateway in front of an upstream that always sends the same response.
struct Setup {
    address: String,
    /// The URL of the upstream.
    upstream: String,
    /// Live bytes after the start.
    before: usize,
    runtime: tokio::runtime::Runtime,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Setup {
    fn new(answer: Answer, budget: usize) -> Self {
        Self::with(answer, |config| Config { max_held_bytes: budget, ..config })
    }

    fn with(answer: Answer, change: impl FnOnce(Config) -> Config) -> Self {
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
    fn held(&self) -> usize {
        let mut socket = TcpStream::connect(&self.address).expect("connected");
        let request = "GET /metrics HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n";
        socket.write_all(request.as_bytes()).expect("written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).expect("an answer");
        let held = answer.split("\ngatewright_held_bytes ").nth(1).expect("the metric");
        held.split('\n').next().and_then(|held| held.parse().ok()).expect("a number")
    }

    /// Sends concurrent requests with prompts of this many mebibytes. `lacks`: number of final bytes withheld.
    fn ask(
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
    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        self.send_with("", method, path, body)
    }

    /// As [`send`](Self::send). `headers`: additional ones, each with its line ending.
    fn send_with(&self, headers: &str, method: &str, path: &str, body: &str) -> TcpStream {
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
    fn answer(&self, path: &str, body: &Value) -> Value {
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
    fn peaks_within(&self, held: usize, fixed: usize) {
        let peak = PEAK.load(Ordering::Relaxed).saturating_sub(self.before);
        assert!(peak <= held + held / 2 + fixed + BASE, "a peak of {peak} bytes for {held} in the account");
    }

    /// Waits until the account reports at least this many bytes, and compares it with the allocated memory.
    fn counts(&self, least: usize) {
        eventually(
            || self.held() >= least,
            || format!("{} of {least} bytes are in the account", self.held()),
        );
        let fits = || self.grown() <= self.held() + self.held() / 2 + BASE;
        eventually(fits, || format!("{} bytes for {} in the account", self.grown(), self.held()));
    }

    /// Waits until nothing large remains in the account or allocated.
    fn is_small(&self) {
        let describe = || format!("{} bytes, {} in the account", self.grown(), self.held());
        eventually(|| self.held() < MIB && self.grown() < BASE, describe);
    }

    /// Growth of live bytes since the start.
    fn grown(&self) -> usize {
        LIVE.load(Ordering::Relaxed).saturating_sub(self.before)
    }

    /// Stops the gateway without waiting for clients.
    fn end(self, clients: Vec<TcpStream>) {
        drop(clients);
        eventually(|| self.held() == 0, || format!("{} bytes are still in the account", self.held()));
        _ = self.stop.send(());
        self.runtime.block_on(self.serving).expect("no panic");
    }
}

fn eventually(mut is_so: impl FnMut() -> bool, describe: impl Fn() -> String) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{}", describe());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Reads a response until this many bytes have arrived.
fn read(client: &mut TcpStream, least: usize) {
    let (mut buffer, mut count) = ([0; 16 * 1024], 0);
    while count < least {
        let more = client.read(&mut buffer).expect("bytes");
        assert!(more > 0, "an end after {count} bytes");
        count += more;
    }
}

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const BUDGET: usize = 512 * MIB;

#[test]
fn bodies_are_counted_as_they_arrive() {
    let setup = Setup::new(Answer::Nothing, BUDGET);
    let clients = setup.ask(CLIENTS, CHAT, false, 9, 1);
    setup.counts(CLIENTS * 9 * MIB);
    setup.end(clients);
}

#[test]
fn bodies_and_translations_are_counted_while_an_upstream_works() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::Nothing, BUDGET);
        let clients = setup.ask(CLIENTS, path, false, 9, 0);
        eventually(|| ANSWERED.load(Ordering::Relaxed) == CLIENTS, || "not all have been sent".to_owned());
        setup.counts(CLIENTS * 2 * 9 * MIB);
        setup.end(clients);
    }
}

#[test]
fn unary_responses_are_counted_as_they_arrive() {
    let setup = Setup::new(Answer::Document(20), BUDGET);
    let clients = setup.ask(CLIENTS, CHAT, false, 0, 0);
    setup.counts(CLIENTS * 20 * MIB);
    setup.end(clients);
}

#[test]
fn complete_answers_are_counted_until_their_clients_read_them() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::Completion(20), BUDGET);
        let clients = setup.ask(CLIENTS, path, false, 0, 0);
        eventually(|| ANSWERED.load(Ordering::Relaxed) == CLIENTS, || "not all have been sent".to_owned());
        setup.counts(CLIENTS * 20 * MIB);
        setup.end(clients);
    }
}

#[test]
fn sounds_pass_through_at_the_pace_of_their_clients() {
    let setup = Setup::with(Answer::Sound(40), |mut config| {
        config.models[0].kind = ModelKind::Speech;
        config
    });
    let body = json!({ "model": "mine", "input": "a boat", "voice": "alloy" }).to_string();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("POST", "/v1/audio/speech", &body)).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    setup.peaks_within(0, 0);
    setup.end(clients);
}

#[test]
fn forms_are_counted_as_they_arrive() {
    let setup = Setup::with(Answer::Nothing, |mut config| {
        config.models[0].kind = ModelKind::Transcription;
        Config { max_held_bytes: BUDGET, ..config }
    });
    let beginning = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nmine\r\n--b\r\n\
                     content-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n";
    let length = beginning.len() + 9 * MIB + "\r\n--b--\r\n".len();
    let head = format!(
        "POST /v1/audio/transcriptions HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {KEY}\r\n\
         content-type: multipart/form-data; boundary=b\r\ncontent-length: {length}\r\n\r\n{beginning}"
    );
    let upload = |_| {
        let mut socket = TcpStream::connect(&setup.address).expect("connected");
        socket.write_all(head.as_bytes()).and_then(|()| fill(&mut socket, 9)).expect("sent");
        socket
    };
    let clients = (0..CLIENTS).map(upload).collect();
    setup.counts(CLIENTS * 9 * MIB);
    setup.end(clients);
}

#[test]
fn answers_by_idempotency_key_stay_within_their_fixed_memory() {
    let setup = Setup::new(Answer::Completion(1), BUDGET);
    let body = json!({ "model": "mine", "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    for number in 0..24 {
        let key = format!("idempotency-key: key-{number}\r\n");
        let mut answer = Vec::new();
        setup.send_with(&key, "POST", CHAT, &body).read_to_end(&mut answer).expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200") && answer.len() > MIB, "{} bytes", answer.len());
    }
    eventually(
        || setup.grown() <= MAX_ANSWER_BYTES + BASE,
        || format!("{} bytes are allocated", setup.grown()),
    );
    setup.end(Vec::new());
}

#[test]
fn event_is_counted_as_it_arrives() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::OpenEvent(20), BUDGET);
        let clients = setup.ask(CLIENTS, path, true, 0, 0);
        setup.counts(CLIENTS * 20 * MIB);
        setup.end(clients);
    }
}

#[test]
fn unread_client_data_is_counted() {
    let setup = Setup::new(Answer::Event(20), BUDGET);
    let clients = setup.ask(CLIENTS, CHAT, true, 0, 0);
    setup.counts(CLIENTS * 20 * MIB);
    setup.end(clients);
}

#[test]
fn stream_releases_a_large_event_once_its_client_has_read_it() {
    for path in [CHAT, MESSAGES] {
        let setup = Setup::new(Answer::Event(12), BUDGET);
        let mut clients = setup.ask(CLIENTS, path, true, 0, 0);
        for client in &mut clients {
            read(client, 12 * MIB);
        }
        if path == CHAT {
            setup.is_small();
        }
        // The account counts all texts of a translation, because some protocols repeat them.
        eventually(|| setup.grown() < BASE, || format!("{} bytes", setup.grown()));
        setup.end(clients);
    }
}

#[test]
fn comments_before_the_first_event_do_not_accumulate() {
    let setup = Setup::new(Answer::Comments(16), BUDGET);
    let clients = setup.ask(CLIENTS, CHAT, true, 0, 0);
    eventually(|| ANSWERED.load(Ordering::Relaxed) == CLIENTS, || "not all have been sent".to_owned());
    setup.is_small();
    assert!(PEAK.load(Ordering::Relaxed) - setup.before < BASE);
    setup.end(clients);
}

#[test]
fn allocations_stay_within_the_memory_budget() {
    const SMALL: usize = 64 * MIB;
    for (answer, mebibytes, lacks) in [
        (Answer::Nothing, 9, 1),
        (Answer::Nothing, 9, 0),
        (Answer::Document(20), 0, 0),
        (Answer::OpenEvent(20), 0, 0),
    ] {
        let setup = Setup::new(answer, SMALL);
        let stream = matches!(answer, Answer::OpenEvent(_));
        let clients = setup.ask(5 * CLIENTS, CHAT, stream, mebibytes, lacks);
        for client in &clients {
            client.set_nonblocking(true).expect("set");
        }
        let is_refused = |client: &TcpStream| {
            let mut answer = [0; 4096];
            let count = client.peek(&mut answer).unwrap_or(0);
            String::from_utf8_lossy(&answer[..count]).contains("memory")
        };
        eventually(|| clients.iter().any(is_refused), || "nobody was refused".to_owned());
        let peak = PEAK.load(Ordering::Relaxed) - setup.before;
        assert!(peak <= SMALL + SMALL / 2 + BASE, "{peak} bytes for an account of {SMALL}");
        setup.end(clients);
    }
}

/// The memory of copies of stored responses (`docs/handbook/strangers.md`).
const STORED: usize = 64 * MIB;

#[test]
fn stored_responses_stay_within_their_fixed_memory() {
    const RESPONSES: &str = "/v1/responses";
    let setup = Setup::with(Answer::Completion(9), |mut config| {
        config.models[0].translate_responses = true;
        Config { max_held_bytes: BUDGET, ..config }
    });
    let body = json!({ "model": "mine", "input": "hi" });
    let mut newest = String::new();
    // Twice as much as is stored.
    for _ in 0..2 * STORED / (9 * MIB) {
        let answer = setup.answer(RESPONSES, &body);
        newest = answer["id"].as_str().expect("an id").to_owned();
    }
    eventually(|| setup.held() == 0, || format!("{} bytes are still in the account", setup.held()));
    assert!(setup.grown() > 6 * 9 * MIB, "the copies are stored: {} bytes", setup.grown());
    assert!(setup.grown() <= STORED + BASE, "{} bytes are stored", setup.grown());
    // Clients that read nothing share one copy.
    PEAK.store(LIVE.load(Ordering::Relaxed), Ordering::Relaxed);
    let path = format!("{RESPONSES}/{newest}");
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("GET", &path, "")).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    setup.peaks_within(setup.held(), STORED);
    // Continued: the conversation is read, translated and sent for each client.
    let next = json!({ "model": "mine", "input": "hi", "previous_response_id": newest }).to_string();
    ANSWERED.store(0, Ordering::Relaxed);
    clients.extend((0..CLIENTS).map(|_| setup.send("POST", RESPONSES, &next)));
    let mut most = 0;
    let all_answered = || {
        most = most.max(setup.held());
        ANSWERED.load(Ordering::Relaxed) == CLIENTS
    };
    eventually(all_answered, || "not all have been sent".to_owned());
    setup.peaks_within(most, STORED);
    setup.end(clients);
}

#[test]
fn files_are_fetched_and_served_in_parts() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = Setup::with(Answer::Image(30), |mut config| {
        config.models[0].kind = ModelKind::Image;
        Config { fetch_images: true, data: Some(folder.path().to_owned()), ..config }
    });
    let answer = setup.answer("/v1/images/generations", &json!({ "model": "mine", "prompt": "a boat" }));
    let url = answer["data"][0]["url"].as_str().expect("a URL");
    let path =
        url.strip_prefix(&format!("http://{}", setup.address)).expect("a file of the gateway").to_owned();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("GET", &path, "")).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    setup.peaks_within(0, 0);
    setup.end(clients);
}

#[test]
fn files_in_memory_have_one_copy() {
    let setup = Setup::with(Answer::Image(30), |mut config| {
        config.models[0].kind = ModelKind::Image;
        Config { fetch_images: true, ..config }
    });
    let answer = setup.answer("/v1/images/generations", &json!({ "model": "mine", "prompt": "a boat" }));
    let url = answer["data"][0]["url"].as_str().expect("a URL");
    let path =
        url.strip_prefix(&format!("http://{}", setup.address)).expect("a file of the gateway").to_owned();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("GET", &path, "")).collect();
    for client in &mut clients {
        read(client, MIB);
    }
    // The memory store copies a file once it is complete.
    setup.peaks_within(0, 2 * 30 * MIB);
    eventually(|| setup.grown() <= 30 * MIB + BASE, || format!("{} bytes", setup.grown()));
    setup.end(clients);
}

#[test]
fn webhook_responses_are_not_stored() {
    let setup = Setup::with(Answer::Webhook(64), |config| Config {
        allow_private_webhooks: true,
        video_time: Duration::ZERO,
        upstreams: Config::default().upstreams,
        models: Config::default().models,
        ..config
    });
    let url = format!("{}/hook", setup.upstream);
    for _ in 0..CLIENTS {
        let task = json!({ "model": "video_model_3", "prompt": "x".repeat(4000), "webhook_url": url });
        setup.answer("/v1/videos/generations", &task);
    }
    // A response is dropped as soon as its status is known, so none of them is sent completely.
    let is_tried = || WEBHOOKS.load(Ordering::Relaxed) >= CLIENTS;
    eventually(is_tried, || "not all webhooks have been tried".to_owned());
    setup.peaks_within(0, 0);
    setup.end(Vec::new());
}

#[test]
fn rendered_reports_are_counted() {
    let report = include_str!("../../examples/reports/good.json");
    let mut report: Value = serde_json::from_str(report).expect("JSON");
    // Each character takes four bytes on the page.
    report["checks"][0]["reason"] = json!("<".repeat(9 * MIB));
    let body = json!({ "report": report.to_string() }).to_string();
    drop(report);
    let setup = Setup::new(Answer::Nothing, BUDGET);
    let mut most = 0;
    let clients: Vec<_> = (0..CLIENTS).map(|_| setup.send("POST", "/console/report", &body)).collect();
    for client in &clients {
        client.set_nonblocking(true).expect("set");
    }
    let all_answered = || {
        most = most.max(setup.held());
        clients.iter().all(|client| client.peek(&mut [0; 16]).is_ok())
    };
    eventually(all_answered, || "not all have been answered".to_owned());
    setup.peaks_within(most, 0);
    setup.end(clients);
}
