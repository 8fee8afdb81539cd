//! The database goes away under load and comes back: no request fails or waits for it, the metrics tell, and in the end
//! usage is exactly what the upstream counted.

#![expect(clippy::print_stderr, reason = "says what was measured")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gatewright_gateway::{ApiKey, Config, Kind};
use reqwest::Method;
use serde_json::json;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::sync::watch;

use crate::support::{Server, read, send, start_with};
use crate::upstreams::{self, Scripted, completion, json_answer, question, upstream};

const ADMIN: &str = "gw-admin-canary-77";
const CLIENTS: usize = 4;
/// Requests of all clients while the store is away.
const MEANWHILE: usize = 200;
const PATIENCE: Duration = Duration::from_mins(1);
/// What a request may take at most. One that waited for the store would take the two seconds that the store waits for a
/// lock, and all of one client after another.
const QUICK: Duration = Duration::from_secs(2);

/// What the clients are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Ask,
    Rest,
    End,
}

/// A gateway over a store in a folder, with clients that ask all the time.
pub(crate) struct Load {
    server: Arc<Server>,
    upstream: Scripted,
    order: watch::Sender<Order>,
    done: Arc<AtomicUsize>,
    clients: Vec<tokio::task::JoinHandle<Vec<Duration>>>,
}

impl Load {
    /// `store`: where the keys are.
    pub(crate) async fn start(store: Config) -> Self {
        let upstream = Scripted::start([json_answer(200, &completion("hello"))]).await;
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
        let done = Arc::new(AtomicUsize::new(0));
        let clients = (0..CLIENTS)
            .map(|_| {
                let (server, done) = (Arc::clone(&server), Arc::clone(&done));
                tokio::spawn(ask(server, key.clone(), orders.clone(), done))
            })
            .collect();
        Self { server, upstream, order, done, clients }
    }

    /// Waits until so many further requests were answered.
    pub(crate) async fn answered(&self, further: usize) {
        let (before, begun) = (self.done.load(Ordering::Relaxed), Instant::now());
        while self.done.load(Ordering::Relaxed) < before + further {
            assert!(begun.elapsed() < PATIENCE, "the requests wait for the store");
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

    /// Lets the clients rest until the store has all.
    async fn rests(&self) {
        self.order.send_replace(Order::Rest);
        let begun = Instant::now();
        let is_stored = async || {
            let stored = self.metric("gatewright_usage_requests{state=\"stored\"}").await;
            // A request that is under way would make the upstream's count the larger one.
            let asked = u32::try_from(self.upstream.count()).expect("few requests");
            (stored - f64::from(asked)).abs() < 0.5 && self.waiting().await < 0.5
        };
        while self.done.load(Ordering::Relaxed) < self.upstream.count() || !is_stored().await {
            assert!(begun.elapsed() < PATIENCE, "the store does not get all");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// While the store is away, requests go on, and those that it does not have grow in number.
    pub(crate) async fn goes_on_without_it(&self) {
        self.answered(MEANWHILE).await;
        let waiting = self.waiting().await;
        // The store may have taken what came before it left.
        assert!(waiting >= 100.0, "{waiting} wait for a store that is away");
    }

    /// The store is back: all that was asked is in it. Gives the number of requests.
    pub(crate) async fn ends(self) -> i64 {
        self.answered(CLIENTS).await;
        self.order.send_replace(Order::End);
        let mut took = Vec::new();
        for client in self.clients {
            took.extend(client.await.expect("no request failed"));
        }
        took.sort_unstable();
        let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
        eprintln!("{} requests: {median:?} (median), {longest:?} (longest)", took.len());
        assert!(median < QUICK, "{median:?}: requests wait for the store");
        let requests = self.upstream.count() as u64;
        assert_eq!(requests, took.len() as u64);
        let expected = [requests, requests, 0, 3 * requests, 2 * requests];
        let begun = Instant::now();
        loop {
            let report = self.server.bare(Method::GET, "/admin/usage").bearer_auth(ADMIN);
            let (status, report) = read(report).await;
            let row = &report["usage"][0];
            let counts = ["requests", "complete", "estimated", "input_tokens", "output_tokens"]
                .map(|name| row[name].as_u64().unwrap_or_default());
            if (status, counts) == (200, expected) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{expected:?} expected: {status} {report}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let text = send(self.server.bare(Method::GET, "/metrics")).await.text().await.expect("text");
        assert!(text.contains("gatewright_usage_requests{state=\"waiting\"} 0"), "{text}");
        assert!(text.contains("gatewright_usage_requests{state=\"lost\"} 0"), "{text}");
        i64::try_from(requests).expect("few requests")
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

    /// So many requests are on disk, as somebody else reads it.
    async fn holds(&self, requests: i64) {
        let options = SqliteConnectOptions::new().filename(self.database());
        let mut other = SqliteConnection::connect_with(&options).await.expect("a connection");
        let sum = sqlx::query_as::<_, (i64, i64, i64)>(
            "SELECT sum(requests), sum(input_tokens), sum(output_tokens) FROM usage",
        );
        let (stored, input, output) = sum.fetch_one(&mut other).await.expect("sums");
        assert_eq!((stored, input, output), (requests, 3 * requests, 2 * requests));
    }
}

async fn ask(
    server: Arc<Server>,
    key: String,
    mut orders: watch::Receiver<Order>,
    done: Arc<AtomicUsize>,
) -> Vec<Duration> {
    let mut took = Vec::new();
    loop {
        let order = *orders.wait_for(|order| *order != Order::Rest).await.expect("orders");
        if order == Order::End {
            return took;
        }
        let begun = Instant::now();
        let asking = server.bare(Method::POST, "/v1/chat/completions").bearer_auth(&key);
        let (status, answer) = read(asking.json(&question(false))).await;
        assert_eq!(status, 200, "{answer}");
        took.push(begun.elapsed());
        done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Another process that has the database for itself.
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
async fn a_database_that_another_process_locks_again_and_again_costs_no_request_and_no_usage() {
    let folder = Folder::new();
    let load = Load::start(folder.config()).await;
    for _ in 0..3 {
        load.answered(CLIENTS).await;
        let other = lock(&folder.database()).await;
        load.goes_on_without_it().await;
        other.close().await.expect("the lock is given back");
    }
    folder.holds(load.ends().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_database_that_is_taken_away_and_put_back_costs_no_request_and_no_usage() {
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
async fn a_database_that_a_copy_of_it_replaces_gets_the_usage_from_then_on() {
    let folder = Folder::new();
    let load = Load::start(folder.config()).await;
    load.answered(CLIENTS).await;
    // A copy as a backup makes it, which has all that was stored until then.
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
