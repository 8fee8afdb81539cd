//! Databases of earlier versions: from any step, the later ones preserve the data.

use std::time::Duration;

use gatewright_test_stores::Postgres;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AnyPool, AssertSqlSafe, Connection as _};

use crate::keys::Digest;
use crate::sql::{LATEST, of_version};
use crate::traits::{
    Batch, ConfigStore as _, CopyStore as _, DeliveryStore as _, FileStore as _, FileTotals, KeyStore as _,
    KeyedRequest, LocationStore as _, NodeStore as _, ReplaySlot, ReplayStore as _, StoredCopy,
    TaskStore as _, UpkeepStore as _, UsageStore as _,
};
use crate::usage::{Rows, Totals, UsageKey, UsageQuery};
use crate::{SqlStore, StoreUrl, TaskState};

/// Rows for the tables that each version added, except the newest one, which no step follows. They never change. Bytes are
/// written as in SQLite.
const ROWS: &[(i64, &str)] = &[
    (
        1,
        r#"UPDATE state SET pepper = x'1111111111111111111111111111111111111111111111111111111111111111';
        INSERT INTO keys (id, name, digest, old_digest, old_until, scopes, limits, created, expires, rotated, revoked) VALUES
            ('key_1', 'ci', x'4444444444444444444444444444444444444444444444444444444444444444',
             x'2222222222222222222222222222222222222222222222222222222222222222', 1795003600,
             '{"models":["model-sol"],"operations":[]}', '{"requests_per_minute":60}', 1790000000, 1990000000, 1795000000, NULL),
            ('key_2', 'old', x'3333333333333333333333333333333333333333333333333333333333333333', NULL, NULL,
             '{"models":[],"operations":[]}', '{}', 1780000000, NULL, NULL, 1785000000);
        INSERT INTO usage
            (day, key, model, upstream, requests, complete, estimated, input_tokens, cached_tokens, cache_write_tokens,
             output_tokens, reasoning_tokens, cost) VALUES
            ('2026-07-31', 'key_1', 'model-sol', 'one', 3, 2, 1, 30, 4, 2, 20, 5, 9007199254740993),
            ('2026-08-01', 'key_1', 'model-sol', 'two', 1, 1, 0, 10, 0, 0, 20, 0, 2)"#,
    ),
    (
        2,
        "INSERT INTO places (id, owner, upstream, key, model) VALUES
            ('resp_1', 'key_1', 'one', 7, 'model-sol'), ('resp_2', 'key_1', 'two', NULL, 'model-sol')",
    ),
    (
        3,
        r#"INSERT INTO tasks
            (id, owner, created, model, status, outcome, errand, announced, lease, due, ended) VALUES
            ('task_1', 'key_1', 1790000000, 'film', 'processing', NULL, 'what to do', TRUE, 3, 30000, NULL),
            ('task_2', 'key_1', 1790000001, 'film', 'failed', '{"message":"why","code":"x"}', NULL, FALSE, 1, 30000, 1790000100);
        INSERT INTO deliveries
            (id, task, owner, url, body, created, status, attempts, problem, lease, due, ended) VALUES
            ('msg_1', 'task_2', 'key_1', 'https://x.example/', '{}', 1790000100, 'pending', 2, 'status 502', 4, 30000, NULL)"#,
    ),
    (
        4,
        "INSERT INTO files (name, owner, kind, bytes, expires) VALUES
            ('0123456789abcdef0123456789abcdef.mp4', 'key_1', 'mp4', 5, 4102444800)",
    ),
    (
        5,
        "INSERT INTO copies (owner, id, stamp, kept, bytes, content) VALUES
            ('key_1', 'resp_1', -7, 1790000000000, 3, x'010203');
        INSERT INTO replays (slot, operation, owner, fingerprint, lease, due, bytes, answer) VALUES
            ('slot_1', 'create_video', 'key_1',
             x'0707070707070707070707070707070707070707070707070707070707070707', 9, 4102444800000, 516, x'6d616465')",
    ),
    (
        6,
        "INSERT INTO nodes (id, name, version, addresses, started, seen, in_flight, leases) VALUES
            ('n_1', 'one', '0.1.0', 'http://127.0.0.1:1', 1790000000, 4102444800, 2, 3)",
    ),
    (7, "INSERT INTO usage_writers (id, batch, seen) VALUES ('writer_1', 5, 4102444800000)"),
    (
        8,
        "INSERT INTO configs (revision, made, author, repeats, document) VALUES
            (1, 1790000000, 'somebody', NULL, 'a document')",
    ),
    (
        9,
        "INSERT INTO usage
            (day, key, model, upstream, requests, complete, estimated, input_tokens, cached_tokens, cache_write_tokens,
             output_tokens, reasoning_tokens, cost, unpriced) VALUES
            ('2026-07-31', 'key_3', 'model-sol', 'one', 3, 3, 0, 30, 0, 0, 20, 0, 0, 2)",
    ),
    (
        10,
        "INSERT INTO usage
            (day, key, model, upstream, requests, complete, estimated, input_tokens, cached_tokens, cache_write_tokens,
             output_tokens, reasoning_tokens, cost, unpriced, failed, timed, first_byte_ms, latency_ms) VALUES
            ('2026-07-31', 'key_4', 'model-sol', 'one', 3, 3, 0, 30, 0, 0, 20, 0, 0, 0, 4, 5, 6, 7)",
    ),
];

async fn fill(database: &AnyPool, rows: &str) {
    let rows = if database.connect_options().database_url.scheme() == "sqlite" {
        rows.to_owned()
    } else {
        rows.replace("x'", "'\\x")
    };
    sqlx::raw_sql(AssertSqlSafe(rows)).execute(database).await.expect("rows");
}

/// A store has the rows of all versions up to this one, and works.
async fn holds(store: &SqlStore, version: i64) {
    for (of, _) in ROWS.iter().filter(|(of, _)| *of <= version) {
        match of {
            1 => keys_and_usage(store).await,
            2 => places(store).await,
            3 => tasks_and_notifications(store).await,
            4 => files(store).await,
            5 => copies_and_answers(store).await,
            6 => nodes(store).await,
            7 => writers(store).await,
            8 => shared_configuration(store).await,
            9 => unpriced_requests(store).await,
            10 => failures_and_times(store).await,
            other => panic!("the rows of version {other} are not checked"),
        }
    }
    assert!(store.damage().await.expect("an answer").is_empty());
}

async fn keys_and_usage(store: &SqlStore) {
    assert_eq!(store.pepper_check(Digest([0; 32])).await.expect("a store"), Digest([0x11; 32]));
    let keys = store.keys_in_use().await.expect("a store");
    let key = keys.first().expect("a key");
    assert_eq!((key.key.name.as_str(), key.digest, keys.len()), ("ci", Digest([0x44; 32]), 1));
    assert_eq!(key.old, Some((Digest([0x22; 32]), 1_795_003_600)));
    assert_eq!((key.key.rotated, key.key.expires), (Some(1_795_000_000), Some(1_990_000_000)));
    assert_eq!(key.key.limits.requests_per_minute, Some(60));
    assert_eq!(store.list_keys(true).await.expect("a store").len(), 2);
    let revision = store.revision().await.expect("a store");
    store.revoke_key("key_1", 1_800_000_000).await.expect("a store").expect("a key");
    assert!(store.revision().await.expect("a store") > revision);

    let mut query = UsageQuery::default();
    (query.from, query.by) = (Some("2026-07-01".to_owned()), Some("key".to_owned()));
    let resolved = query.read("2026-08-02".parse().expect("a day")).expect("a query");
    let rows = store.usage(&resolved).await.expect("a store");
    let row = rows.first().expect("a row");
    assert_eq!((row.requests, row.input_tokens, row.output_tokens, row.reasoning_tokens), (4, 40, 40, 5));
    let (_, month) = store.spent("2026-07-31".parse().expect("a day")).await.expect("a store")["key_1"];
    assert_eq!(month.cost, 9_007_199_254_740_993);
}

async fn places(store: &SqlStore) {
    let places = store.places().await.expect("a store");
    let places: Vec<_> = places.iter().map(|place| (&*place.id, place.holder.key)).collect();
    assert_eq!(places, [("resp_1", Some(7)), ("resp_2", None)]);
}

async fn tasks_and_notifications(store: &SqlStore) {
    let lease = Duration::from_mins(1);
    let resumed = store.resume_tasks(lease, 10).await.expect("a store").pop().expect("a task");
    assert_eq!(
        (&*resumed.task.id, &*resumed.task_payload, resumed.lease.number),
        ("task_1", "what to do", 4)
    );
    let ended = store.task("key_1", "task_2").await.expect("a store").expect("a task");
    assert!(matches!(ended.state, TaskState::Failed(problem) if problem.message == "why"));
    let due = store.due_deliveries(lease, 10).await.expect("a store").pop().expect("a notification");
    assert_eq!((&*due.notice.id, due.attempts, due.lease.number), ("msg_1", 2, 5));
    assert!(
        store.end_task(&resumed.lease, &TaskState::failed("x"), Some(&due.notice)).await.is_err(),
        "it is there"
    );
    assert!(store.end_task(&resumed.lease, &TaskState::failed("x"), None).await.expect("a store"));
}

async fn files(store: &SqlStore) {
    let taken = FileTotals { files: 1, bytes: 5 };
    assert_eq!(store.taken_by_files("key_1").await.expect("a store"), (taken, taken));
    let first = store.first_to_expire(None, 10).await.expect("a store");
    assert_eq!(first[0].file.name.as_str(), "0123456789abcdef0123456789abcdef.mp4");
}

async fn copies_and_answers(store: &SqlStore) {
    let found = store.copy("key_1", "resp_1", None).await.expect("a store");
    assert_eq!(found, StoredCopy::Other { stamp: -7, content: vec![1, 2, 3] });
    let (slot, owner) = ("slot_1".to_owned(), "key_1".into());
    let keyed = KeyedRequest { slot, operation: "create_video", owner, fingerprint: [7; 32] };
    let reserved = store.reserve(&keyed, Duration::from_mins(1)).await.expect("a store");
    assert_eq!(reserved, ReplaySlot::Answered(b"made".to_vec()));
}

async fn nodes(store: &SqlStore) {
    let nodes = store.nodes(4_000_000_000).await.expect("a store");
    let node = nodes.first().expect("a gateway");
    assert_eq!((&*node.name, node.in_flight, node.leases, node.config), ("one", 2, 3, None));
}

async fn writers(store: &SqlStore) {
    let day = "2030-01-01".parse().expect("a day");
    let (key, model, upstream) = ("key_1".into(), "model-sol".into(), "one".into());
    let rows = Rows::from([(
        UsageKey { day, key, model, upstream },
        Totals { requests: 1, input: 7, ..Totals::default() },
    )]);
    for (number, tokens) in [(5, None), (6, Some(7))] {
        let batch = Batch { writer: "writer_1".into(), number };
        store.add_usage(&batch, &rows).await.expect("a store");
        let spent = store.spent(day).await.expect("a store");
        assert_eq!(spent.get("key_1").map(|(today, _)| today.tokens), tokens);
    }
}

/// Failures and times were not recorded.
async fn unpriced_requests(store: &SqlStore) {
    let mut query = UsageQuery::default();
    (query.from, query.key) = (Some("2026-07-01".to_owned()), Some("key_3".to_owned()));
    let resolved = query.read("2026-08-02".parse().expect("a day")).expect("a query");
    let [row] = store.usage(&resolved).await.expect("a store").try_into().expect("one row");
    assert_eq!((row.requests, row.unpriced), (3, 2));
    assert_eq!([row.failed, row.timed, row.first_byte_ms, row.latency_ms], [0; 4]);
}

async fn failures_and_times(store: &SqlStore) {
    let mut query = UsageQuery::default();
    (query.from, query.key) = (Some("2026-07-01".to_owned()), Some("key_4".to_owned()));
    let resolved = query.read("2026-08-02".parse().expect("a day")).expect("a query");
    let [row] = store.usage(&resolved).await.expect("a store").try_into().expect("one row");
    assert_eq!([row.failed, row.timed, row.first_byte_ms, row.latency_ms], [4, 5, 6, 7]);
}

async fn shared_configuration(store: &SqlStore) {
    let revisions = store.config_revisions(9).await.expect("a store");
    assert_eq!((revisions.len(), revisions[0].number, revisions[0].author.as_str()), (1, 1, "somebody"));
    let document = store.config_document(1).await.expect("a store");
    assert_eq!(document.as_deref(), Some("a document"));
}

#[tokio::test]
async fn file_of_the_first_migrations_keeps_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    // A path that is spelled differently in a URL.
    let file = folder.path().join("50% of ? a #.db");
    let options = SqliteConnectOptions::new().filename(&file).create_if_missing(true);
    let mut before = SqliteConnection::connect_with(&options).await.expect("a database");
    sqlx::raw_sql(include_str!("sqlite-0002.sql")).execute(&mut before).await.expect("its rows");
    before.close().await.expect("closed");
    holds(&SqlStore::in_file(&file).expect("a database"), 2).await;
}

#[tokio::test]
async fn sqlite_file_of_each_version_keeps_its_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    for version in 1..LATEST {
        let file = folder.path().join(format!("{version}.db"));
        let before = of_version(&format!("sqlite://{}?mode=rwc", file.display()), version).await;
        for (_, rows) in ROWS.iter().filter(|(of, _)| *of <= version) {
            fill(&before, rows).await;
        }
        before.close().await;
        holds(&SqlStore::in_file(&file).expect("a database"), version).await;
    }
}

#[test]
fn every_version_but_the_latest_has_example_rows() {
    assert!(ROWS.iter().map(|(version, _)| *version).eq(1..LATEST), "add rows of version {}", LATEST - 1);
}

mod postgres {
    use super::*;

    fn store(url: &str) -> SqlStore {
        SqlStore::at(&StoreUrl::new(url).expect("an address")).expect("a store")
    }

    /// The address of a database of its own.
    async fn database(server: &Postgres, name: &str) -> String {
        let all = AnyPool::connect(&server.url()).await.expect("a server");
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&all)
            .await
            .expect("a database");
        all.close().await;
        server.url().replace("/postgres?", &format!("/{name}?"))
    }

    #[tokio::test]
    async fn postgres_database_of_each_version_keeps_its_rows() {
        sqlx::any::install_default_drivers();
        let server = Postgres::start();
        let first = database(&server, "first").await;
        let before = AnyPool::connect(&first).await.expect("a database");
        sqlx::raw_sql(include_str!("postgres-0002.sql")).execute(&before).await.expect("its rows");
        before.close().await;
        holds(&store(&first), 2).await;
        for version in 1..LATEST {
            let url = database(&server, &format!("v{version}")).await;
            let before = of_version(&url, version).await;
            for (_, rows) in ROWS.iter().filter(|(of, _)| *of <= version) {
                fill(&before, rows).await;
            }
            before.close().await;
            holds(&store(&url), version).await;
        }
    }
}

#[tokio::test]
async fn file_of_a_newer_version_is_rejected() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.db");
    let store = SqlStore::in_file(&file).expect("a database");
    store.revision().await.expect("a store");
    let options = SqliteConnectOptions::new().filename(&file);
    let mut newer = SqliteConnection::connect_with(&options).await.expect("a connection");
    let mode: (String,) = sqlx::query_as("PRAGMA journal_mode").fetch_one(&mut newer).await.expect("a mode");
    assert_eq!(mode.0, "wal");
    let add = "INSERT INTO _sqlx_migrations VALUES (9999, 'more', '2030-01-01', TRUE, x'00', 1)";
    sqlx::raw_sql(add).execute(&mut newer).await.expect("added");
    newer.close().await.expect("closed");
    let store = SqlStore::in_file(&file).expect("a database");
    let error = store.revision().await.expect_err("a newer version").to_string();
    assert!(error.contains("the database was created by a newer version of the gateway"), "{error}");
}
