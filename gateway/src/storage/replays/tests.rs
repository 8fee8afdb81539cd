use gatewright::operations::{CREATE_RESPONSE, CREATE_VIDEO, ErrorStyle};
use gatewright_store::SqlStore;

use super::*;

const STREAM: &str = "stream";
const ROOM: AnswerQuota = AnswerQuota { answers: 1_000, percent: 100 };

/// Replays over a durable store.
fn lasting(store: &Arc<dyn DurableStore>) -> Arc<Replays> {
    let sealer = Arc::new(Sealer::new([7; 32]));
    Arc::new(Replays::new(Arc::clone(store), Some(sealer), [9; 32]))
}

fn in_memory() -> Arc<Replays> {
    Arc::new(Replays::new(Arc::new(SqlStore::in_memory()), None, [9; 32]))
}

fn headers(key: &str) -> HeaderMap {
    HeaderMap::from_iter([(KEY_HEADER, HeaderValue::from_str(key).expect("a value"))])
}

async fn begin(replays: &Arc<Replays>, key: &str, body: &str) -> Result<ReplayDecision, ApiError> {
    let caller = "key_1".into();
    let (operation, path, query) = (&CREATE_VIDEO, &[][..], &[][..]);
    let request =
        IdempotentRequest { operation, caller: &caller, path, query, body: body.as_bytes(), form: None };
    replays.begin(&headers(key), request).await
}

/// Executes a request, which must be the first.
async fn answer(replays: &Arc<Replays>, key: &str, body: &str, response: Response) -> Response {
    match begin(replays, key, body).await {
        Ok(ReplayDecision::First(turn)) => turn.answered(response, ROOM).await,
        _ => panic!("{key} is not the first"),
    }
}

fn text(text: &str) -> Response {
    Response::new(Body::from(text.to_owned()))
}

async fn is_first(replays: &Arc<Replays>, key: &str) -> bool {
    matches!(begin(replays, key, "{}").await, Ok(ReplayDecision::First(_)))
}

/// The replayed answer, or the status of the rejection.
async fn again(replays: &Arc<Replays>, key: &str, body: &str) -> Result<String, u16> {
    match begin(replays, key, body).await {
        Ok(ReplayDecision::Again(response)) => {
            assert_eq!(response.headers()[REPLAYED_HEADER], "true");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            Ok(String::from_utf8(body.to_vec()).expect("text"))
        }
        Ok(_) => panic!("carried out"),
        Err(error) => Err(error.into_response(ErrorStyle::Standard).status().as_u16()),
    }
}

#[tokio::test]
async fn repeat_replays_conflict_is_409_and_mismatch_is_422() {
    let replays = in_memory();
    let Ok(ReplayDecision::First(turn)) = begin(&replays, "k", "{}").await else { panic!("not the first") };
    assert_eq!(again(&replays, "k", "{}").await, Err(409));
    assert_eq!(again(&replays, "k", "{ }").await, Err(422));
    turn.answered(text("made"), ROOM).await;
    assert_eq!(again(&replays, "k", "{}").await.as_deref(), Ok("made"));
    assert_eq!(again(&replays, "k", "{ }").await, Err(422));
    assert!(is_first(&replays, "another").await);
    // Keys are scoped per operation and API key.
    for (operation, caller) in [(&CREATE_RESPONSE, "key_1"), (&CREATE_VIDEO, "key_2")] {
        let caller = caller.into();
        let request =
            IdempotentRequest { operation, caller: &caller, path: &[], query: &[], body: b"{}", form: None };
        assert!(matches!(replays.begin(&headers("k"), request).await, Ok(ReplayDecision::First(_))));
    }
}

#[tokio::test]
async fn request_without_a_stored_answer_may_be_retried() {
    let replays = in_memory();
    drop(begin(&replays, "dropped", "{}").await);
    tokio::task::yield_now().await;
    assert!(is_first(&replays, "dropped").await);
    for code in [500, 503, 429, 408] {
        let mut response = text("later");
        *response.status_mut() = StatusCode::from_u16(code).expect("a status");
        answer(&replays, "passes", "{}", response).await;
        assert!(is_first(&replays, "passes").await, "{code}");
        tokio::task::yield_now().await;
    }
    let events = futures_util::stream::iter([Ok::<_, std::io::Error>("data: 1\n\n")]);
    answer(&replays, STREAM, "{}", Response::new(Body::from_stream(events))).await;
    assert!(is_first(&replays, STREAM).await);
    answer(&replays, "long", "{}", text(&"x".repeat(MAX_ANSWER_BYTES + 1))).await;
    assert!(is_first(&replays, "long").await);
}

#[tokio::test]
async fn answers_replay_on_another_gateway_and_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || -> Arc<dyn DurableStore> {
        Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"))
    };
    let (one, other) = (lasting(&open()), lasting(&open()));
    let Ok(ReplayDecision::First(turn)) = begin(&one, "k", "{}").await else { panic!("not the first") };
    assert_eq!(again(&other, "k", "{}").await, Err(409));
    assert_eq!(again(&other, "k", "{ }").await, Err(422));
    turn.answered(text("a canary sings"), ROOM).await;
    assert_eq!(again(&other, "k", "{}").await.as_deref(), Ok("a canary sings"));
    drop((one, other));
    assert_eq!(again(&lasting(&open()), "k", "{}").await.as_deref(), Ok("a canary sings"));
    // Neither key nor request nor answer is readable there.
    for entry in std::fs::read_dir(folder.path()).expect("a folder") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        assert!(!String::from_utf8_lossy(&bytes).contains("canary"));
    }
}

#[tokio::test]
async fn store_false_answers_replay_only_on_their_gateway() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn DurableStore> =
        Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
    let (one, other) = (lasting(&store), lasting(&store));
    let body = r#"{"store":false,"input":"hello"}"#;
    answer(&one, "k", body, text("made")).await;
    assert_eq!(again(&one, "k", body).await.as_deref(), Ok("made"));
    let mut rows = 0;
    store
        .export(&mut |line| {
            rows += usize::from(line.contains("replays"));
            Ok(())
        })
        .await
        .expect("rows");
    assert_eq!(rows, 0);
    answer(&other, "k", body, text("made anew")).await;
    assert_eq!(again(&one, "k", body).await.as_deref(), Ok("made"));
}

#[tokio::test]
async fn keys_hold_locally_and_answers_queue_while_the_store_is_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, away) = (folder.path().join("a.db"), folder.path().join("away"));
    let store: Arc<dyn DurableStore> = Arc::new(SqlStore::in_file(&file).expect("a database"));
    let replays = lasting(&store);
    let Ok(ReplayDecision::First(turn)) = begin(&replays, "before", "{}").await else {
        panic!("not the first")
    };
    std::fs::rename(&file, &away).expect("taken");
    let started = std::time::Instant::now();
    turn.answered(text("one"), ROOM).await;
    answer(&replays, "meanwhile", "{}", text("two")).await;
    let Ok(ReplayDecision::First(turn)) = begin(&replays, "long", "{}").await else {
        panic!("not the first")
    };
    assert_eq!(again(&replays, "long", "{}").await, Err(409));
    for (key, answer) in [("before", "one"), ("meanwhile", "two")] {
        assert_eq!(again(&replays, key, "{}").await.as_deref(), Ok(answer));
    }
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    std::fs::rename(&away, &file).expect("put back");
    turn.answered(text("three"), ROOM).await;
    // Once it is back, the store has everything, including requests started without it.
    while !replays.waiting().is_empty() {
        assert!(started.elapsed() < Duration::from_mins(1), "it is not written");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let other = lasting(&store);
    for (key, answer) in [("before", "one"), ("meanwhile", "two"), ("long", "three")] {
        assert_eq!(again(&other, key, "{}").await.as_deref(), Ok(answer));
    }
}

#[tokio::test]
async fn stored_answer_wins_over_one_made_during_an_outage() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn DurableStore> =
        Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
    let (one, other) = (lasting(&store), lasting(&store));
    one.health.fails("it is away");
    answer(&one, "k", "{}", text("made without it")).await;
    answer(&other, "k", "{}", text("made with it")).await;
    let started = std::time::Instant::now();
    while !one.waiting().is_empty() {
        assert!(started.elapsed() < Duration::from_mins(1), "it waits forever");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(again(&lasting(&store), "k", "{}").await.as_deref(), Ok("made with it"));
    // Each replays its earlier answer.
    assert_eq!(again(&one, "k", "{}").await.as_deref(), Ok("made without it"));
}

#[tokio::test]
async fn known_keys_are_not_executed_again_during_an_outage() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, away) = (folder.path().join("a.db"), folder.path().join("away"));
    let store: Arc<dyn DurableStore> = Arc::new(SqlStore::in_file(&file).expect("a database"));
    let replays = lasting(&store);
    answer(&replays, "ended", "{}", text("one")).await;
    let Ok(ReplayDecision::First(turn)) = begin(&replays, "long", "{}").await else {
        panic!("not the first")
    };
    let Ok(ReplayDecision::First(left)) = begin(&replays, "left", "{}").await else {
        panic!("not the first")
    };
    assert!(turn.lease.is_some() && left.lease.is_some());
    std::fs::rename(&file, &away).expect("taken");
    assert!(is_first(&replays, "another").await && replays.health.rests());
    assert_eq!(again(&replays, "ended", "{}").await.as_deref(), Ok("one"));
    assert_eq!(again(&replays, "ended", "{ }").await, Err(422));
    assert_eq!(again(&replays, "long", "{}").await, Err(409));
    turn.answered(text("two"), ROOM).await;
    assert_eq!(again(&replays, "long", "{}").await.as_deref(), Ok("two"));
    // A request without an answer may be executed again.
    drop(left);
    assert!(is_first(&replays, "left").await);
}

#[tokio::test]
async fn client_disconnect_does_not_cancel_storing_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn DurableStore> =
        Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
    let (one, other) = (lasting(&store), lasting(&store));
    let Ok(ReplayDecision::First(turn)) = begin(&one, "k", "{}").await else { panic!("not the first") };
    assert!(turn.answered(text("made"), ROOM).now_or_never().is_none());
    let started = std::time::Instant::now();
    while again(&one, "k", "{}").await != Ok("made".to_owned()) {
        assert!(started.elapsed() < Duration::from_secs(20), "it is not stored");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(again(&other, "k", "{}").await.as_deref(), Ok("made"));
    assert!(one.held().is_empty());
}

#[tokio::test]
async fn running_request_keeps_its_lease_and_a_dead_gateway_loses_it() {
    let store: Arc<dyn DurableStore> = Arc::new(SqlStore::in_memory());
    let replays = lasting(&store);
    let Ok(ReplayDecision::First(turn)) = begin(&replays, "k", "{}").await else { panic!("not the first") };
    let leases: Vec<Lease> = replays.held().iter().cloned().collect();
    let reserve_elsewhere = async || {
        let caller = "key_1".into();
        let request = IdempotentRequest {
            operation: &CREATE_VIDEO,
            caller: &caller,
            path: &[],
            query: &[],
            body: b"{}",
            form: None,
        };
        store.reserve_as(&replays.keyed("k", request), rand::random(), LEASE).await.expect("a store")
    };
    let expire = async || store.renew_keys(&leases, Duration::ZERO).await.expect("a store");
    assert_eq!(reserve_elsewhere().await, ReplaySlot::UnderWay);
    expire().await;
    replays.renew().await;
    assert_eq!(reserve_elsewhere().await, ReplaySlot::UnderWay);
    expire().await;
    assert!(matches!(reserve_elsewhere().await, ReplaySlot::First(_)));
    // The gateway that comes back too late changes nothing in the store, but its client gets what it paid for, each time it asks here.
    let response = turn.answered(text("late"), ROOM).await;
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "late");
    assert!(replays.held().is_empty());
    assert_eq!(reserve_elsewhere().await, ReplaySlot::UnderWay);
    assert_eq!(again(&replays, "k", "{}").await.as_deref(), Ok("late"));
}

#[tokio::test]
async fn gateway_in_memory_leaves_its_store_alone() {
    let store: Arc<dyn DurableStore> = Arc::new(SqlStore::in_memory());
    let replays = Arc::new(Replays::new(Arc::clone(&store), None, [9; 32]));
    answer(&replays, "k", "{}", text("made")).await;
    assert_eq!(again(&replays, "k", "{}").await.as_deref(), Ok("made"));
    let caller = "key_1".into();
    let (operation, path, query) = (&CREATE_VIDEO, &[][..], &[][..]);
    let request = IdempotentRequest { operation, caller: &caller, path, query, body: b"{}", form: None };
    let stored = store.reserve_as(&replays.keyed("k", request), 1, LEASE).await.expect("a store");
    assert!(matches!(stored, ReplaySlot::First(_)), "{stored:?}");
}

#[tokio::test]
async fn gateway_that_stalled_for_longer_than_its_lease_gives_the_answer_of_the_one_that_took_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn DurableStore> =
        Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
    let (one, other) = (lasting(&store), lasting(&store));
    let Ok(ReplayDecision::First(turn)) = begin(&one, "k", "{}").await else { panic!("not the first") };
    let leases: Vec<Lease> = one.held().iter().cloned().collect();
    store.renew_keys(&leases, Duration::ZERO).await.expect("a store");
    answer(&other, "k", "{}", text("theirs")).await;
    let response = turn.answered(text("mine"), ROOM).await;
    assert_eq!(response.headers()[REPLAYED_HEADER], "true");
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "theirs");
    assert!(one.held().is_empty());
    for gateway in [&one, &other, &lasting(&store)] {
        assert_eq!(again(gateway, "k", "{}").await.as_deref(), Ok("theirs"));
    }
}

#[tokio::test]
async fn lease_that_was_lost_and_that_nobody_took_still_stores_its_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let store: Arc<dyn DurableStore> =
        Arc::new(SqlStore::in_file(&folder.path().join("a.db")).expect("a database"));
    let one = lasting(&store);
    let Ok(ReplayDecision::First(turn)) = begin(&one, "k", "{}").await else { panic!("not the first") };
    let leases: Vec<Lease> = one.held().iter().cloned().collect();
    for lease in &leases {
        store.free_key(lease).await.expect("a store");
    }
    let response = turn.answered(text("mine"), ROOM).await;
    assert_eq!((response.status(), leases.len()), (StatusCode::OK, 1));
    assert_eq!(again(&lasting(&store), "k", "{}").await.as_deref(), Ok("mine"));
}

#[test]
fn idempotency_key_is_one_visible_ascii_value() {
    let read = |values: &[&[u8]]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(KEY_HEADER, HeaderValue::from_bytes(value).expect("a header value"));
        }
        key(&headers).map(|key| key.map(str::len)).map_err(drop)
    };
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[b"k-1"]), Ok(Some(3)));
    assert_eq!(read(&[&[b'k'; 255]]), Ok(Some(255)));
    for values in [&[&b""[..]][..], &[b"a b"], &[b"\xc3\xa9"], &[&[b'k'; 256]], &[b"a", b"b"]] {
        assert!(read(values).is_err(), "{values:?}");
    }
}
