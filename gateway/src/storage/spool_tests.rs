//! What is created while the store is away survives its process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use gatewright::operations::CREATE_VIDEO;
use gatewright_store::{
    AnswerQuota, DurableStore, EntryKind, KeyedRequest, ReplaySlot, Sealer, Spool, SqlStore, StoreUrl,
    StoringUpstream,
};
use gatewright_system::clock::unix_millis;
use http::{HeaderMap, HeaderValue};
use http_body_util::BodyExt as _;
use tempfile::TempDir;

use crate::storage::history::ResponseDocuments;
use crate::storage::{History, HistoryKeeper, IdempotentRequest, KEY_HEADER, ReplayDecision, Replays};
use crate::wire::{Body, Response};

const ROOM: AnswerQuota = AnswerQuota { answers: 1_000, percent: 100 };

/// A database that can be taken away, and a spool.
struct Place {
    folder: TempDir,
}

/// The parts of a gateway that are relevant here.
struct Gateway {
    history: Arc<History>,
    keeper: Arc<HistoryKeeper>,
    replays: Arc<Replays>,
    store: Arc<dyn DurableStore>,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn take_away(&self) {
        std::fs::rename(self.at("a.db"), self.at("away")).expect("taken");
    }

    fn put_back(&self) {
        std::fs::rename(self.at("away"), self.at("a.db")).expect("put back");
    }

    fn spool(&self) -> Arc<Spool> {
        Spool::open(&self.at("spool"), [5; 32])
    }

    fn start(&self) -> Gateway {
        self.start_with(Some(self.spool()))
    }

    fn start_with(&self, spool: Option<Arc<Spool>>) -> Gateway {
        Self::start_on(SqlStore::in_file(&self.at("a.db")).expect("a database"), spool)
    }

    /// Starts it while the store is away.
    fn start_without_store(&self) -> Gateway {
        let nobody = StoreUrl::new("postgres://gateway:secret@127.0.0.1:9/postgres").expect("an address");
        Self::start_on(SqlStore::at(&nobody).expect("a store"), Some(self.spool()))
    }

    fn start_on(store: SqlStore, spool: Option<Arc<Spool>>) -> Gateway {
        let store: Arc<dyn DurableStore> = Arc::new(store);
        let history = Arc::new(History::new(true));
        let (own, seal) = (Arc::clone(&history), Sealer::new([7; 32]));
        let keeper = HistoryKeeper::start(own, Arc::clone(&store), seal, || 100, spool.clone());
        let seal = Some(Arc::new(Sealer::new([8; 32])));
        let replays = Replays::start(Arc::clone(&store), seal, [9; 32], spool);
        Gateway { history, keeper, replays, store }
    }

    /// What is in the spool.
    fn items(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.at("spool")).into_iter().flatten();
        let paths = files.map(|file| file.expect("a file").path());
        paths.filter(|path| path.extension().is_some_and(|ending| ending != "lock")).collect()
    }

    /// Waits until nothing is in the spool.
    async fn is_emptied(&self) {
        wait_until("the store has everything", || self.items().is_empty()).await;
    }
}

impl Gateway {
    /// Stores a response that contains its own id.
    async fn keep(&self, id: &str) -> bool {
        let response = format!("{{\"says\":\"a canary {id}\"}}").into();
        let documents = ResponseDocuments { response, items: "[]".into(), tree: 1 };
        let holder = StoringUpstream { upstream: "one".into(), key: None, model: "mine".into() };
        self.history.keep(&"key".into(), id.to_owned(), Some(documents), Some(holder));
        self.keeper.written().await
    }

    /// Whether a response is known: its copy, and its place.
    async fn has(&self, id: &str) -> (bool, bool) {
        let started = Instant::now();
        while self.keeper.seek("key", id).await.is_err() || !self.history.is_complete() {
            assert!(started.elapsed() < Duration::from_mins(1), "the store does not answer");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let known = self.history.get("key", id);
        let copy = known.as_ref().and_then(|known| known.documents.as_ref());
        if let Some(copy) = copy {
            assert_eq!(copy.response, format!("{{\"says\":\"a canary {id}\"}}"));
        }
        (copy.is_some(), known.is_some_and(|known| known.holder.is_some()))
    }

    async fn begin(&self, key: &str) -> ReplayDecision {
        let value = HeaderValue::from_str(key).expect("a value");
        let headers = HeaderMap::from_iter([(KEY_HEADER, value)]);
        let caller = "key".into();
        let request = IdempotentRequest {
            operation: &CREATE_VIDEO,
            caller: &caller,
            path: &[],
            query: &[],
            body: b"{}",
            form: None,
        };
        self.replays.begin(&headers, request).await.unwrap_or_else(|_| panic!("{key} is refused"))
    }

    /// Executes a request, which must be the first with its key.
    async fn answer(&self, key: &str) {
        let ReplayDecision::First(turn) = self.begin(key).await else { panic!("{key} is not the first") };
        turn.answered(Response::new(Body::from(format!("a canary sings {key}"))), ROOM).await;
    }

    /// Whether a request is already answered.
    async fn has_answered(&self, key: &str) -> bool {
        let ReplayDecision::Again(answer) = self.begin(key).await else { return false };
        let body = answer.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(body, format!("a canary sings {key}"));
        true
    }

    /// Ends without a clean shutdown, as if it were killed.
    async fn dies(self, place: &Place) {
        let before = place.items();
        drop(self);
        // Its tasks end with it.
        wait_until("its spool is free", || {
            let locks = std::fs::read_dir(place.at("spool")).into_iter().flatten();
            locks
                .map(|file| file.expect("a file").path())
                .all(|path| path.extension() != Some("lock".as_ref()))
        })
        .await;
        assert_eq!(place.items(), before);
    }
}

async fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_mins(1), "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn says_canary(file: &Path) -> bool {
    String::from_utf8_lossy(&std::fs::read(file).expect("a file")).contains("canary")
}

#[tokio::test]
async fn work_done_during_an_outage_survives_a_restart() {
    let place = Place::new();
    let first = place.start();
    assert!(first.keep("before").await && first.keep("deleted").await);
    first.answer("answered").await;
    let ReplayDecision::First(turn) = first.begin("started").await else { panic!("not the first") };
    assert_eq!(place.items(), [""; 0].map(PathBuf::from), "the store has everything");
    place.take_away();
    assert!(!first.keep("meanwhile").await);
    assert!(!first.keep("also deleted").await);
    assert!(first.history.remove("key", "deleted") && first.history.remove("key", "also deleted"));
    assert!(!first.keeper.written().await);
    first.answer("unknown").await;
    turn.answered(Response::new(Body::from("a canary sings started")), ROOM).await;
    assert!(!place.items().is_empty() && !place.items().iter().any(|item| says_canary(item)));
    first.dies(&place).await;

    // Before the store is back, answered requests are not executed again.
    let second = place.start_without_store();
    assert!(second.has_answered("unknown").await && second.has_answered("started").await);
    assert!(second.keeper.seek("key", "meanwhile").await.is_err());
    assert!(second.keeper.unwritten() > 0);
    second.dies(&place).await;

    place.put_back();
    let third = place.start();
    for _ in 0..2 {
        assert_eq!(third.has("meanwhile").await, (true, true));
        assert_eq!(third.has("before").await, (true, true));
        assert_eq!(third.has("deleted").await, (false, false));
        assert_eq!(third.has("also deleted").await, (false, false));
    }
    place.is_emptied().await;
    assert_eq!(third.keeper.unwritten(), 0);
    let other = place.start_with(None);
    for key in ["answered", "unknown", "started"] {
        assert!(third.has_answered(key).await && other.has_answered(key).await, "{key}");
    }
    assert_eq!(other.has("meanwhile").await, (true, true));
    assert!(third.replays.unwritten() == 0 && third.has("deleted").await == (false, false));
}

#[tokio::test]
async fn spool_empties_once_the_store_accepts_its_entries() {
    let place = Place::new();
    let gateway = place.start();
    assert!(gateway.keep("before").await);
    place.take_away();
    assert!(!gateway.keep("meanwhile").await);
    gateway.answer("k").await;
    assert_eq!(place.items().len(), 2);
    place.put_back();
    place.is_emptied().await;
    gateway.dies(&place).await;
    let next = place.start_with(None);
    assert_eq!(next.has("meanwhile").await, (true, true));
    assert!(next.has_answered("k").await);
}

#[tokio::test]
async fn entries_reach_the_spool_once_there_is_room() {
    let place = Place::new();
    let gateway = place.start();
    assert!(gateway.keep("before").await);
    place.take_away();
    // Nothing can be written, as on a full disk.
    std::fs::write(place.at("spool"), "").expect("written");
    gateway.keep("resp_1").await;
    gateway.answer("one").await;
    std::fs::remove_file(place.at("spool")).expect("removed");
    gateway.keep("resp_2").await;
    gateway.answer("two").await;
    let is_whole = |item: &PathBuf| item.extension() != Some("new".as_ref());
    wait_until("everything is spooled", || place.items().into_iter().filter(is_whole).count() == 4).await;
    gateway.dies(&place).await;
    place.put_back();
    let next = place.start();
    for id in ["before", "resp_1", "resp_2"] {
        assert_eq!(next.has(id).await, (true, true), "{id}");
    }
    for key in ["one", "two"] {
        assert!(next.has_answered(key).await, "{key}");
    }
}

/// A process is killed after the store accepted an item and before its file is removed.
#[tokio::test]
async fn entry_written_twice_is_stored_once() {
    let place = Place::new();
    let gateway = place.start();
    assert!(gateway.keep("before").await);
    place.take_away();
    assert!(!gateway.keep("kept").await && !gateway.keep("deleted").await);
    assert!(gateway.history.remove("key", "deleted") && !gateway.keeper.written().await);
    gateway.answer("k").await;
    gateway.dies(&place).await;
    place.put_back();
    let copies: Vec<_> =
        place.items().into_iter().map(|item| (std::fs::read(&item).expect("a file"), item)).collect();
    for _ in 0..2 {
        let next = place.start();
        assert_eq!(next.has("kept").await, (true, true));
        assert_eq!(next.has("deleted").await, (false, false));
        assert!(next.has_answered("k").await);
        place.is_emptied().await;
        next.dies(&place).await;
        for (content, item) in &copies {
            std::fs::write(item, content).expect("written");
        }
    }
}

/// An answer in the format of a spool item.
fn item(slot: &str, expires: u64) -> Vec<u8> {
    let head = serde_json::json!({
        "slot": slot, "operation": "create_video", "owner": "key", "fingerprint": vec![0; 32], "number": 1, "has_lease": false,
        "expires": expires, "answers": 1_000, "hundredths": 100,
    });
    let sealed = Sealer::new([8; 32]).seal(slot, b"\0\xc8\na canary sings");
    [head.to_string().as_bytes(), b"\n", &sealed].concat()
}

/// It was handing the answer over when it was killed, or another gateway is executing the request.
#[tokio::test]
async fn answer_waits_while_its_key_is_leased() {
    let place = Place::new();
    let spool = place.spool();
    let expires = unix_millis() + 600_000;
    spool.keep(EntryKind::Answer, item("a", expires)).await.expect("kept");
    spool.keep(EntryKind::Answer, item("b", expires)).await.expect("kept");
    drop(spool);
    let keyed = |slot: &str| KeyedRequest {
        slot: slot.to_owned(),
        operation: "create_video",
        owner: "key".into(),
        fingerprint: [0; 32],
    };
    let store = place.start_with(None).store;
    let reserve = async |slot: &str| {
        let number = rand::random();
        store.reserve_as(&keyed(slot), number, Duration::from_mins(1)).await.expect("a store")
    };
    let mut leases = Vec::new();
    for slot in ["a", "b"] {
        let lease = reserve(slot).await;
        let ReplaySlot::First(lease) = lease else { panic!("{lease:?}") };
        if slot == "b" {
            assert!(
                store.keep_answer(&lease, b"another", Duration::from_mins(9), ROOM).await.expect("a store")
            );
        }
        leases.push(lease);
    }
    let gateway = place.start();
    wait_until("the other answer is in the store", || place.items().len() == 1).await;
    assert_eq!(gateway.replays.unwritten(), 1);
    // They expire now.
    store.renew_keys(&leases, Duration::ZERO).await.expect("a store");
    place.is_emptied().await;
    for (slot, is_ours) in [("a", true), ("b", false)] {
        let found = reserve(slot).await;
        let ReplaySlot::Answered(answer) = found else { panic!("{found:?}") };
        assert_eq!(answer != b"another", is_ours, "{slot}");
    }
}

#[tokio::test]
async fn expired_answer_is_dropped() {
    let place = Place::new();
    place.spool().keep(EntryKind::Answer, item("a", unix_millis())).await.expect("kept");
    assert_eq!(place.items().len(), 1);
    let gateway = place.start();
    place.is_emptied().await;
    assert_eq!(gateway.replays.unwritten(), 0);
}

/// Written by another version, or opened with another pepper: an operator may know what to do with it.
#[tokio::test]
async fn unreadable_entries_are_left_alone() {
    let place = Place::new();
    let spool = place.spool();
    for kind in [EntryKind::Answer, EntryKind::Changes] {
        spool.keep(kind, b"{\"of\":\"the future\"}\n".to_vec()).await.expect("kept");
    }
    drop(spool);
    let gateway = place.start();
    assert!(gateway.keep("a").await && gateway.keeper.unwritten() == 0);
    assert_eq!((place.items().len(), gateway.replays.unwritten()), (2, 0));
}
