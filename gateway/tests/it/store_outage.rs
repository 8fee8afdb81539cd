//! The database becomes unavailable under load and returns: no request fails or waits, the metrics show it, and in the end
//! usage equals the upstream's count, for unary responses, streams, disconnected clients and a failing upstream.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Kind};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::sync::watch;

use crate::support::{Server, read, send, start_with};
use crate::upstreams::{
    self, STREAM_HEAD, Scripted, Seen, Step, chunks, completion, json_answer, question, stream, upstream,
};

const ADMIN: &str = "gw-admin-canary-77";
const CLIENTS: usize = 4;
/// Requests of all clients during the outage.
const MEANWHILE: usize = 200;
const PATIENCE: Duration = Duration::from_mins(1);
/// Maximum time of nine of ten requests during the outage. One that waited for the store would take two seconds
/// (the store's lock timeout) or longer.
const QUICK: Duration = Duration::from_millis(500);

/// What the clients should do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Ask,
    Rest,
    End,
}

/// What the client and the upstream do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Whole,
    Stream,
    /// The client disconnects mid-stream.
    Leaves,
    /// The upstream returns 500, and there is no other one.
    Fails,
}

impl Turn {
    /// Repeated in this order. Failures are rare enough for the breaker.
    const ALL: [Self; 8] = [
        Self::Whole,
        Self::Stream,
        Self::Leaves,
        Self::Whole,
        Self::Fails,
        Self::Stream,
        Self::Leaves,
        Self::Stream,
    ];

    fn question(self) -> Value {
        let mut question = question(matches!(self, Self::Stream | Self::Leaves));
        question["messages"][0]["content"] = format!("{self:?}").into();
        question
    }

    /// The kind of a request.
    fn of(seen: &Seen) -> Self {
        let question = seen.json();
        let turn = Self::ALL.into_iter().find(|turn| turn.question()["messages"] == question["messages"]);
        turn.unwrap_or_else(|| panic!("{question}"))
    }

    fn steps(self) -> Vec<Step> {
        match self {
            Self::Whole => json_answer(200, &completion("hello")),
            Self::Stream => stream(&chunks(&["hel", "lo"])),
            Self::Leaves => {
                let started = json!({"choices": [{"index": 0, "delta": {"content": "hel"}}],
                    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}});
                vec![Step::Write(format!("{STREAM_HEAD}data: {started}\n\n").into()), Step::Hang]
            }
            Self::Fails => json_answer(500, &json!({"error": {"message": "no"}})),
        }
    }

    /// Sends a request and handles the response according to its kind.
    async fn take(self, server: &Server, key: &str) {
        let request = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(key);
        let mut response = send(request.json(&self.question())).await;
        assert_eq!(response.status(), if self == Self::Fails { 500 } else { 200 }, "{self:?}");
        if self == Self::Leaves {
            let started = response.chunk().await.expect("bytes").expect("an event");
            assert!(started.starts_with(b"data: "), "{started:?}");
            return;
        }
        let text = response.text().await.expect("a body");
        assert!(self != Self::Stream || text.ends_with("data: [DONE]\n\n"), "{text}");
    }
}

/// The upstream's counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Requests with usage.
    requests: u64,
    complete: u64,
}

/// A gateway with a store in a folder, and clients that send requests continuously.
pub(crate) struct Load {
    server: Arc<Server>,
    counted: Arc<Mutex<Counted>>,
    order: watch::Sender<Order>,
    /// The duration of each request, ordered by end.
    took: Arc<Mutex<Vec<Duration>>>,
    clients: Vec<tokio::task::JoinHandle<()>>,
    _upstream: Scripted,
}

impl Load {
    /// `store`: where the keys are.
    pub(crate) async fn start(store: Config) -> Self {
        let counted: Arc<Mutex<Counted>> = Arc::default();
        let counting = Arc::clone(&counted);
        let upstream = Scripted::answering(move |seen| {
            let turn = Turn::of(seen);
            let mut counted = counting.lock().expect("no panic");
            counted.requests += u64::from(turn != Turn::Fails);
            counted.complete += u64::from(matches!(turn, Turn::Whole | Turn::Stream));
            turn.steps()
        })
        .await;
        let server = start_with(Config {
            data: store.data,
            store: store.store,
            pepper: store.pepper,
            admin_key: Some(ApiKey::new(ADMIN).expect("a key")),
            open_metrics: true,
            ..upstreams::config(vec![self::upstream("one", Kind::Chat, &upstream.url)])
        });
        let server = Arc::new(server.await);
        let new = json!({"name": "ci"});
        let create = server.bare(Method::POST, "/admin/keys").bearer_auth(ADMIN).json(&new);
        let (status, issued) = read(create).await;
        assert_eq!(status, 201, "{issued}");
        let key = issued["secret"].as_str().expect("a secret").to_owned();
        let (order, orders) = watch::channel(Order::Ask);
        let (took, next) = (Arc::default(), Arc::new(AtomicUsize::new(0)));
        let clients = (0..CLIENTS)
            .map(|_| {
                let (took, next) = (Arc::clone(&took), Arc::clone(&next));
                tokio::spawn(ask(Arc::clone(&server), key.clone(), orders.clone(), next, took))
            })
            .collect();
        Self { server, counted, order, took, clients, _upstream: upstream }
    }

    fn counted(&self) -> Counted {
        *self.counted.lock().expect("no panic")
    }

    /// Number of completed requests.
    fn done(&self) -> usize {
        self.took.lock().expect("no panic").len()
    }

    /// Waits for this many further requests.
    pub(crate) async fn answered(&self, further: usize) {
        let (before, started) = (self.done(), Instant::now());
        while self.done() < before + further {
            assert!(started.elapsed() < PATIENCE, "the requests wait for the store");
            assert!(!self.clients.iter().any(tokio::task::JoinHandle::is_finished), "a request failed");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn metric(&self, name: &str) -> f64 {
        let text = send(self.server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in {text}"))
    }

    async fn waiting(&self) -> f64 {
        self.metric("gatewright_usage_requests{state=\"waiting\"}").await
    }

    /// Pauses the clients until the store has everything.
    async fn rests(&self) {
        self.order.send_replace(Order::Rest);
        let started = Instant::now();
        let is_stored = async || {
            let stored = self.metric("gatewright_usage_requests{state=\"stored\"}").await;
            // A request in progress would make the upstream's count higher.
            let requests = u32::try_from(self.counted().requests).expect("few requests");
            (stored - f64::from(requests)).abs() < 0.5 && self.waiting().await < 0.5
        };
        while !is_stored().await {
            assert!(started.elapsed() < PATIENCE, "the store does not receive everything");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// During the outage, requests succeed, and the number of waiting ones grows.
    pub(crate) async fn goes_on_without_it(&self) {
        let before = self.done();
        self.answered(MEANWHILE).await;
        let mut took = self.took.lock().expect("no panic")[before..].to_vec();
        took.sort_unstable();
        let [median, most, longest] =
            [took.len() / 2, took.len() * 9 / 10, took.len() - 1].map(|at| took[at]);
        eprintln!(
            "{} requests: {median:?} (median), {most:?} (nine of ten), {longest:?} (longest)",
            took.len()
        );
        assert!(most < QUICK, "nine of ten take up to {most:?}: requests wait for the store");
        let waiting = self.waiting().await;
        // The store may have accepted something before the outage.
        assert!(waiting >= 100.0, "{waiting} wait for a store that is away");
    }

    /// The store is back: it has the usage of all requests.
    pub(crate) async fn ends(mut self) -> Counted {
        self.answered(CLIENTS).await;
        self.order.send_replace(Order::End);
        for client in std::mem::take(&mut self.clients) {
            client.await.expect("no request failed");
        }
        let counted = self.counted();
        let Counted { requests, complete } = counted;
        assert!(complete < requests && requests < self.done() as u64, "{counted:?}: each turn has come");
        let expected = [requests, complete, 0, 3 * requests, 2 * requests];
        let started = Instant::now();
        loop {
            let report = self.server.bare(Method::GET, "/admin/usage").bearer_auth(ADMIN);
            let (status, report) = read(report).await;
            let row = &report["usage"][0];
            let counts = ["requests", "complete", "estimated", "input_tokens", "output_tokens"]
                .map(|name| row[name].as_u64().unwrap_or_default());
            if (status, counts) == (200, expected) {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "{expected:?} expected: {status} {report}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let text = send(self.server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
        assert!(text.contains("gatewright_usage_requests{state=\"waiting\"} 0"), "{text}");
        assert!(text.contains("gatewright_usage_requests{state=\"lost\"} 0"), "{text}");
        counted
    }
}

/// A data folder.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn config(&self) -> Config {
        Config { data: Some(self.0.path().to_path_buf()), ..Config::default() }
    }

    fn database(&self) -> PathBuf {
        self.0.path().join("gatewright.db")
    }

    /// Asserts that this many requests are on disk, as another reader sees it.
    async fn holds(&self, counted: Counted) {
        let options = SqliteConnectOptions::new().filename(self.database());
        let mut other = SqliteConnection::connect_with(&options).await.expect("a connection");
        let sum = sqlx::query_as::<_, (i64, i64, i64, i64)>(
            "SELECT sum(requests), sum(complete), sum(input_tokens), sum(output_tokens) FROM usage",
        );
        let (stored, complete, input, output) = sum.fetch_one(&mut other).await.expect("sums");
        let stored = [stored, complete, input, output].map(i64::cast_unsigned);
        let Counted { requests, complete } = counted;
        assert_eq!(stored, [requests, complete, 3 * requests, 2 * requests]);
    }
}

async fn ask(
    server: Arc<Server>,
    key: String,
    mut orders: watch::Receiver<Order>,
    next: Arc<AtomicUsize>,
    took: Arc<Mutex<Vec<Duration>>>,
) {
    loop {
        let order = *orders.wait_for(|order| *order != Order::Rest).await.expect("orders");
        if order == Order::End {
            return;
        }
        let turn = Turn::ALL[next.fetch_add(1, Ordering::Relaxed) % Turn::ALL.len()];
        let started = Instant::now();
        turn.take(&server, &key).await;
        took.lock().expect("no panic").push(started.elapsed());
    }
}

/// Another process that locks the database exclusively.
async fn lock(database: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(database).busy_timeout(Duration::from_secs(20));
    let mut other = SqliteConnection::connect_with(&options).await.expect("a connection");
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await.expect("the lock");
    other
}

/// The files of a database.
fn files(database: &Path) -> Vec<PathBuf> {
    let files = ["", "-wal", "-shm"].map(|end| PathBuf::from(format!("{}{end}", database.display())));
    files.into_iter().filter(|file| file.exists()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn repeatedly_locked_database_loses_no_request_or_usage() {
    let folder = Folder::new();
    let load = Load::start(folder.config()).await;
    for _ in 0..3 {
        load.answered(CLIENTS).await;
        let other = lock(&folder.database()).await;
        load.goes_on_without_it().await;
        other.close().await.expect("the lock is released");
    }
    folder.holds(load.ends().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn database_moved_away_and_back_loses_no_request_or_usage() {
    let folder = Folder::new();
    let load = Load::start(folder.config()).await;
    load.answered(CLIENTS).await;
    let away = tempfile::tempdir_in(folder.0.path()).expect("a folder");
    let taken = files(&folder.database());
    assert!(!taken.is_empty());
    let place = |file: &Path| away.path().join(file.file_name().expect("a name"));
    for file in &taken {
        std::fs::rename(file, place(file)).expect("taken");
    }
    load.goes_on_without_it().await;
    for file in taken.iter().rev() {
        std::fs::rename(place(file), file).expect("put back");
    }
    folder.holds(load.ends().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn database_replaced_by_its_copy_receives_later_usage() {
    let folder = Folder::new();
    let load = Load::start(folder.config()).await;
    load.answered(CLIENTS).await;
    // A copy like a backup, which has everything stored so far.
    load.rests().await;
    let copy = folder.0.path().join("copy.db");
    let options = SqliteConnectOptions::new().filename(folder.database());
    let mut reader = SqliteConnection::connect_with(&options).await.expect("a connection");
    sqlx::query("VACUUM INTO ?1").bind(copy.to_str()).execute(&mut reader).await.expect("a copy");
    reader.close().await.expect("closed");
    for file in files(&folder.database()) {
        std::fs::remove_file(file).expect("removed");
    }
    load.order.send_replace(Order::Ask);
    load.goes_on_without_it().await;
    std::fs::rename(copy, folder.database()).expect("replaced");
    folder.holds(load.ends().await).await;
}
