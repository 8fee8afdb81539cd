//! A database that dies in each statement, before or after executing it, and one whose clock is wrong (3, 6, 2.10): answers
//! already given stay valid, nothing is done or counted twice, and the gateway goes on.

use std::time::{Duration, Instant};

use gatewright_gateway::{Config, StoreUrl};
use gatewright_test_stores::{Death, Network, Postgres};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;

use super::{PATIENCE, RESPONSES, admin, ask, chat, create, node, retrieve, until};
use crate::support::{Server, read, start_with, stride};

/// More statements than any of this takes.
const MOST: u32 = 40;
/// A wrong clock: longer than a lease, and shorter than anything is kept.
const WRONG_MS: [i64; 3] = [600_000, -600_000, 0];

/// A database on a network, a gateway that reaches it there, and one that reaches it directly.
struct Scene {
    _store: Postgres,
    network: Network,
    one: Server,
    other: Server,
}

impl Scene {
    async fn start() -> Self {
        let (store, network) = (Postgres::start(), Network::new());
        let url = StoreUrl::new(&network.url_of(&store)).expect("an address");
        let one = start_with(Config { store: Some(url), ..node(&store) }).await;
        let other = start_with(node(&store)).await;
        Self { _store: store, network, one, other }
    }

    /// Does something at each statement that kills its connection, until it needs no more of them. The gateway's own work in
    /// the background may take some of the deaths.
    async fn at_each_statement(&self, does: impl AsyncFn(&str)) {
        for death in [Death::Before, Death::After] {
            let mut killed = 0;
            for statement in (1..MOST).step_by(stride(2)) {
                self.network.kill_at(death, statement);
                does(&format!("{death:?}-{statement}").to_lowercase()).await;
                let is_over = !self.network.has_killed();
                self.network.kill_at(death, 0);
                if is_over {
                    break;
                }
                killed += 1;
            }
            assert!(killed > 1, "{killed} statements of {death:?}");
        }
    }
}

/// Asks again until the database answers.
async fn definite(request: impl AsyncFn() -> (u16, Value)) -> (u16, Value) {
    let started = Instant::now();
    loop {
        let (status, answer) = request().await;
        if status != 503 {
            return (status, answer);
        }
        assert!(started.elapsed() < PATIENCE, "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn acknowledged_keys_survive_a_database_crash_at_any_statement() {
    let scene = Scene::start().await;
    let (one, other) = (&scene.one, &scene.other);
    scene
        .at_each_statement(async |name| {
            let (status, made) = read(admin(one, Method::POST, "/keys").json(&json!({ "name": name }))).await;
            let secret = if status == 201 {
                made["secret"].as_str().expect("a secret").to_owned()
            } else {
                assert_eq!(status, 503, "{name}: {made}");
                // It may exist although its secret was never returned.
                let path = format!("/keys/{name}/rotate");
                let (status, rotated) =
                    definite(async || read(admin(one, Method::POST, &path).json(&json!({}))).await).await;
                match status {
                    200 => rotated["secret"].as_str().expect("a secret").to_owned(),
                    _ => create(one, json!({ "name": name })).await,
                }
            };
            until(other, &secret, 200).await;
        })
        .await;
    scene
        .at_each_statement(async |name| {
            let name = format!("gone-{name}");
            let secret = create(other, json!({ "name": name })).await;
            let path = format!("/keys/{name}");
            let revoke = async || read(admin(one, Method::DELETE, &path)).await;
            let (status, answer) = revoke().await;
            if status != 200 {
                assert_eq!(status, 503, "{name}: {answer}");
                assert!(matches!(definite(revoke).await.0, 200 | 404), "{name}");
            }
            until(other, &secret, 401).await;
        })
        .await;
}

#[tokio::test]
async fn stored_and_repeated_responses_are_the_same_wherever_the_database_dies() {
    let scene = Scene::start().await;
    let (one, other) = (&scene.one, &scene.other);
    scene
        .at_each_statement(async |name| {
            let keyed = async |node: &Server| {
                read(node.post(RESPONSES, &ask(name)).header("idempotency-key", name)).await
            };
            // No request waits for the database, or is rejected because of it.
            let (status, first) = keyed(one).await;
            assert_eq!(status, 200, "{name}: {first}");
            let id = first["id"].as_str().expect("an id").to_owned();
            let started = Instant::now();
            while retrieve(other, &id).await != (200, first.clone()) {
                assert!(started.elapsed() < PATIENCE, "{name}: the other one does not find it");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            assert_eq!(keyed(one).await, (200, first.clone()), "{name}");
        })
        .await;
}

/// How many requests a key has made, as a gateway reports it.
async fn counted(node: &Server, key: &str) -> u64 {
    let (_, report) = read(admin(node, Method::GET, &format!("/usage?key={key}"))).await;
    report["usage"].as_array().into_iter().flatten().filter_map(|row| row["requests"].as_u64()).sum()
}

#[tokio::test]
async fn usage_counts_once_wherever_the_database_dies() {
    let scene = Scene::start().await;
    let secret = create(&scene.one, json!({ "name": "ci" })).await;
    let sent = std::cell::Cell::new(0);
    scene
        .at_each_statement(async |name| {
            let (status, answer) = chat(&scene.one, &secret).await;
            assert_eq!(status, 200, "{name}: {answer}");
            sent.set(sent.get() + 1);
            // Until it is written: a death may delay that.
            let started = Instant::now();
            while counted(&scene.other, "ci").await < sent.get() {
                assert!(started.elapsed() < PATIENCE, "{name}: usage is lost");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
    // What counts twice might do so only later.
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(counted(&scene.other, "ci").await, sent.get());
}

/// Lets the clock of a database be wrong: the gateways' statements find this function before the one of the system.
async fn lie(connection: &mut PgConnection, by_ms: i64) {
    let statement = format!(
        "CREATE OR REPLACE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS \
         $$ SELECT pg_catalog.clock_timestamp() + interval '{by_ms} ms' $$; \
         ALTER ROLE CURRENT_USER SET search_path = public, pg_catalog"
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(connection).await.expect("a lie");
}

#[tokio::test]
async fn wrong_database_clock_loses_and_repeats_nothing() {
    let store = Postgres::start();
    let mut connection = PgConnection::connect(&store.url()).await.expect("a connection");
    lie(&mut connection, 0).await;
    let (one, other) = (start_with(node(&store)).await, start_with(node(&store)).await);
    let revoked = create(&one, json!({ "name": "revoked" })).await;
    until(&other, &revoked, 200).await;
    assert_eq!(read(admin(&one, Method::DELETE, "/keys/revoked")).await.0, 200);
    let used = create(&one, json!({ "name": "used" })).await;
    let mut earlier = Vec::new();
    for (by_ms, requests) in WRONG_MS.into_iter().zip(1..) {
        lie(&mut connection, by_ms).await;
        let name = format!("wrong by {by_ms} ms");
        let first = one.ask(RESPONSES, &ask(&name)).await;
        earlier.push((first["id"].as_str().expect("an id").to_owned(), first));
        for (id, first) in &earlier {
            for node in [&one, &other] {
                assert_eq!(retrieve(node, id).await, (200, first.clone()), "{name}");
            }
        }
        let video =
            json!({ "model": "video_model_3", "prompt": "a comet", "duration": 3, "resolution": "720p" });
        let task = one.ask("/v1/videos/generations", &video).await;
        let path = format!("/v1/videos/generations/{}", task["id"].as_str().expect("an id"));
        let started = Instant::now();
        loop {
            let (status, task) = read(other.get(&path)).await;
            assert!(status == 200 && task["status"] != "failed", "{name}: {task}");
            if task["status"] == "completed" {
                break;
            }
            assert!(started.elapsed() < PATIENCE, "{name}: {task}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(chat(&one, &used).await.0, 200, "{name}");
        let started = Instant::now();
        while counted(&other, "used").await != requests {
            assert!(started.elapsed() < PATIENCE, "{name}: usage is lost, or counts twice");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        for node in [&one, &other] {
            assert_eq!(
                read(node.bare(Method::GET, "/v1/models").bearer_auth(&revoked)).await.0,
                401,
                "{name}"
            );
        }
        let made = create(&one, json!({ "name": format!("made-{requests}") })).await;
        until(&other, &made, 200).await;
    }
    let films: i64 =
        sqlx::query_scalar("SELECT count(*) FROM files").fetch_one(&mut connection).await.expect("a count");
    assert_eq!(films, 3, "each video was made once");
    // The gateways did meet the wrong clock.
    lie(&mut connection, WRONG_MS[0]).await;
    let statement =
        "SELECT CAST(extract(epoch FROM clock_timestamp() - pg_catalog.clock_timestamp()) AS BIGINT)";
    let mut fresh = PgConnection::connect(&store.url()).await.expect("a connection");
    let by: i64 = sqlx::query_scalar(statement).fetch_one(&mut fresh).await.expect("a difference");
    assert_eq!(by, WRONG_MS[0] / 1000);
}
