//! A store with data of each kind, in each state: every column has a value in some row, and nullable ones are null in
//! others.

use std::time::Duration;

use super::tasks::{LEASE, accepted, age, notice};
use crate::file_name::FileName;
use crate::keys::{Digest, NewKey};
use crate::traits::{
    AnswerQuota, Copy, CopyChange, FileRecord, KeyedRequest, NodeRecord, ReplaySlot, StoredCopy,
};
use crate::traits::{LocationChange, ResponseLocation, StoringUpstream};
use crate::usage::{self, Day, Rows, Totals};
use crate::{
    Batch, DeliveryOutcome, DurableStore, FileKind, KeyRecord, NewConfig, ObjectKind, Output, ProviderObject,
    Quota, Status, StoredFile, Task, TaskState,
};

/// The key that owns most of it.
const KEY: &str = "key";
/// Longer than a test takes.
const LONG: Duration = Duration::from_hours(1);
const MOST: Quota = Quota { of_key: 10, of_all: 10, notices: 10, notices_of_key: 10, ended_percent: 100 };

/// Fills an empty store.
pub(super) async fn fill(store: &dyn DurableStore) {
    store.pepper_check(Digest([3; 32])).await.expect("a store");
    keys(store).await;
    store.add_usage(&batch(), &usage()).await.expect("a store");
    responses(store).await;
    tasks(store).await;
    notifications(store).await;
    files(store).await;
    answers(store).await;
    configs(store).await;
    objects(store).await;
    let node = NodeRecord { id: "n".to_owned(), seen: 7, config: Some(1), ..NodeRecord::default() };
    store.report_node(&node, 0).await.expect("a store");
}

/// Reads a filled store, and continues to work with it.
pub(super) async fn holds(store: &dyn DurableStore) {
    let keys = store.list_keys(true).await.expect("a store");
    let names: Vec<&str> = keys.iter().map(|key| &*key.name).collect();
    assert_eq!(names, ["plain", "revoked", "ci \" \u{1f980}"], "newest first");
    assert_eq!(keys[2].limits.file_bytes, Some(5_000_000_000));
    let in_use = store.keys_in_use().await.expect("a store");
    assert_eq!(in_use.len(), 2);
    assert!(in_use.iter().any(|key| key.digest == Digest([8; 32]) && key.old == Some((Digest([9; 32]), 99))));

    // The store already knows what a journal contains as well.
    store.add_usage(&batch(), &usage()).await.expect("a store");
    let spent = store.spent(day()).await.expect("a store");
    assert_eq!(spent[KEY].0.cost, i64::MAX.unsigned_abs());

    let places = store.places().await.expect("a store");
    let places: Vec<_> = places.iter().map(|place| (&*place.id, place.holder.key)).collect();
    assert_eq!(places, [("resp_2", Some(i64::MIN)), ("resp_1", None)], "in their order");
    let copy = store.copy(KEY, "resp_1", None).await.expect("a store");
    assert_eq!(copy, StoredCopy::Other { stamp: -7, content: vec![0, 255, b'"', b'\n'] });
    assert_eq!(reserve(store, "answered").await, ReplaySlot::Answered(b"made\0".to_vec()));
    assert_eq!(reserve(store, "under-way").await, ReplaySlot::UnderWay);
    assert_eq!(store.config_document(1).await.expect("a store").as_deref(), Some("# \u{1f980}\n"));
    let revisions = store.config_revisions(9).await.expect("a store");
    assert_eq!(revisions.iter().map(|one| one.repeats).collect::<Vec<_>>(), [Some(1), None]);
    let files = store.first_to_expire(None, 9).await.expect("a store");
    let files: Vec<_> = files.iter().map(|one| (one.file.name.kind(), one.file.bytes)).collect();
    assert_eq!(files, [(FileKind::Png, 7), (FileKind::Mp4, 5_000_000_000)]);

    let kept = store.object(KEY, ObjectKind::File, "file-1").await.expect("a store");
    assert_eq!(kept, Some(object("file-1", ObjectKind::File)));
    let followed = store.resume_batches(LEASE, 9).await.expect("a store");
    assert_eq!(followed.iter().map(|(object, _)| &*object.id).collect::<Vec<_>>(), ["batch_1"]);

    let ended = store.task(KEY, "completed").await.expect("a store").expect("a task");
    assert_eq!(ended.state, completed());
    age(store, 2 * LEASE).await;
    let resumed = store.resume_tasks(LEASE, 9).await.expect("a store");
    let mut resumed: Vec<_> =
        resumed.iter().map(|one| (&*one.task.id, one.task.state.name(), &*one.task_payload)).collect();
    resumed.sort_unstable();
    assert_eq!(resumed, [("pending", "pending", "\u{1f980}\n"), ("processing", "processing", "what to do")]);
    let due = store.due_deliveries(LEASE, 9).await.expect("a store");
    let mut due: Vec<_> = due.iter().map(|one| (&*one.notice.id, one.attempts)).collect();
    due.sort_unstable();
    assert_eq!(due, [("new", 0), ("tried", 1)]);
    for (status, id) in [(Status::Delivered, "delivered"), (Status::Dead, "dead")] {
        let listed = store.deliveries(Some(status)).await.expect("a store");
        assert_eq!(listed.iter().map(|one| &*one.notice.id).collect::<Vec<_>>(), [id]);
    }
    assert!(store.damage().await.expect("an answer").is_empty());
}

/// Three from the same second, whose ids sort differently.
async fn keys(store: &dyn DurableStore) {
    let mut limited = NewKey::new("ci \" \u{1f980}");
    limited.limits.cost_per_day = Some(0.1);
    limited.limits.file_bytes = Some(5_000_000_000);
    limited.scopes.models.push("family-*".to_owned());
    limited.expires = Some(4_000_000_000);
    for (id, new, digest) in
        [("key_3", limited, 9), ("key_2", NewKey::new("revoked"), 2), ("key_1", NewKey::new("plain"), 1)]
    {
        let mut key = new.issue(7);
        key.id = id.into();
        let record = KeyRecord { key, digest: Digest([digest; 32]), old: None };
        store.add_key(record).await.expect("a store").expect("a name");
    }
    store.rotate_key("key_3", Digest([8; 32]), 8, Some(99)).await.expect("a store").expect("a key");
    store.revoke_key("key_2", 9).await.expect("a store").expect("a key");
}

fn day() -> Day {
    "2026-07-31".parse().expect("a day")
}

/// From a process whose name is known.
fn batch() -> Batch {
    Batch { writer: "writer".into(), number: 5 }
}

fn usage() -> Rows {
    let place = |upstream: &str| {
        let (key, model, upstream) = (KEY.into(), "mine".into(), upstream.into());
        usage::UsageKey { day: day(), key, model, upstream }
    };
    let largest = Totals { cost: i64::MAX.unsigned_abs(), ..Totals::default() };
    let each = Totals::of([1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10, 11, 12, 13]);
    Rows::from([(place("one"), each), (place("two"), largest)])
}

async fn responses(store: &dyn DurableStore) {
    let place = |id: &str, key| {
        let holder = StoringUpstream { upstream: "one".into(), key, model: "mine".into() };
        LocationChange::Kept(ResponseLocation { id: id.into(), owner: KEY.into(), holder })
    };
    let places = [place("resp_2", Some(i64::MIN)), place("resp_1", None)];
    store.change_places(&places).await.expect("a store");
    let content = vec![0, 255, b'"', b'\n'];
    let copy = Copy { owner: KEY.into(), id: "resp_1".into(), stamp: -7, kept: 7, content };
    store.change_copies(&[CopyChange::Kept(copy)]).await.expect("a store");
}

fn completed() -> TaskState {
    let name = "0123456789abcdef0123456789abcdef.mp4".parse().expect("a name");
    TaskState::Completed(Output { file: StoredFile { name, expires: 9 }, duration_s: 3, size: (1, 2) })
}

async fn tasks(store: &dyn DurableStore) {
    let add = async |id: &str| {
        let task = Task {
            id: id.to_owned(),
            owner: KEY.into(),
            created: 7,
            model: "mine".into(),
            state: TaskState::Pending,
        };
        store.add_task(&task, false, MOST, LEASE).await.expect("a store").expect("a place")
    };
    add("submitted").await;
    let pending = add("pending").await;
    assert!(store.accept_task(&pending, &TaskState::Pending, "\u{1f980}\n").await.expect("a store"));
    accepted(store, "processing").await;
    for (id, state) in [("completed", completed()), ("failed", TaskState::failed("why"))] {
        assert!(store.end_task(&add(id).await, &state, None).await.expect("a store"));
    }
}

async fn notifications(store: &dyn DurableStore) {
    let wait = async |id: &str| {
        let lease = accepted(store, &format!("notified-{id}")).await;
        assert!(store.end_task(&lease, &TaskState::failed("x"), Some(&notice(id))).await.expect("a store"));
    };
    for id in ["tried", "delivered", "dead"] {
        wait(id).await;
    }
    for due in store.due_deliveries(LEASE, 9).await.expect("a store") {
        let problem = "status 502".to_owned();
        let attempted = match &*due.notice.id {
            "delivered" => DeliveryOutcome::Delivered,
            "dead" => DeliveryOutcome::Dead { problem },
            _ => DeliveryOutcome::Again { after: LEASE, problem },
        };
        assert!(store.attempted(&due.lease, &attempted).await.expect("a store"));
    }
    wait("new").await;
}

async fn files(store: &dyn DurableStore) {
    for (times, kind, bytes) in [(1, FileKind::Png, 7), (2, FileKind::Mp4, 5_000_000_000)] {
        let file = FileRecord { name: FileName::random(kind), owner: KEY.into(), bytes };
        store.add_files(&[file], times * LONG).await.expect("a store");
    }
}

async fn reserve(store: &dyn DurableStore, slot: &str) -> ReplaySlot {
    let (slot, owner) = (slot.to_owned(), KEY.into());
    let keyed = KeyedRequest { slot, operation: "create_video", owner, fingerprint: [7; 32] };
    store.reserve(&keyed, LONG).await.expect("a store")
}

async fn answers(store: &dyn DurableStore) {
    reserve(store, "under-way").await;
    let ReplaySlot::First(lease) = reserve(store, "answered").await else { panic!("it is the first") };
    let room = AnswerQuota { answers: 10, percent: 100 };
    assert!(store.keep_answer(&lease, b"made\0", LONG, room).await.expect("a store"));
}

fn object(id: &str, kind: ObjectKind) -> ProviderObject {
    let purpose = "batch".to_owned();
    ProviderObject { owner: KEY.into(), id: id.to_owned(), kind, purpose, content: vec![0, 255] }
}

async fn objects(store: &dyn DurableStore) {
    for (id, kind, expires, follows) in [
        ("file-1", ObjectKind::File, Some(LONG), None),
        ("batch_1", ObjectKind::Batch, None, Some(Duration::ZERO)),
    ] {
        assert!(store.add_object(&object(id, kind), expires, follows, 100).await.expect("a store"));
    }
}

async fn configs(store: &dyn DurableStore) {
    for repeats in [None, Some(1)] {
        let new = NewConfig { made: 7, author: "ada", repeats, document: "# \u{1f980}\n" };
        store.add_config(new, None).await.expect("a store").expect("it is added");
    }
}
