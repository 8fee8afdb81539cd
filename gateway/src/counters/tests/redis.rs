use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gatewright_config::{CounterServer, CountersUrl};
use gatewright_store::{Day, KeyLimits, Spent, SpentSoFar};
use gatewright_test_stores::Redis;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::counters::{KeySnapshot, LimitVerdict, SharedCounters};

/// Long enough for a busy machine; no passing test reaches it.
const PATIENCE: Duration = Duration::from_mins(1);

async fn counters(redis: &Redis, lease: Duration) -> Arc<SharedCounters> {
    let url = CountersUrl::new(&redis.url()).expect("an address");
    let counters =
        SharedCounters::start(&CounterServer { url, timeout: PATIENCE, lease }).expect("an address");
    until(|| counters.is_present()).await;
    Arc::new(counters)
}

async fn until(condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("it becomes true");
}

async fn verdict(counters: &SharedCounters, key: &Arc<str>, limits: &KeyLimits) -> LimitVerdict {
    let place = limits.concurrent_requests.map(|_| counters.place(key));
    let answer = counters.ask(key, limits, KeySnapshot::default(), place.as_ref()).await.expect("an answer");
    if let Some(place) = place {
        if answer.verdict == LimitVerdict::Granted {
            place.hold();
            // It stays taken.
            std::mem::forget(place);
        } else {
            place.refused();
        }
    }
    answer.verdict
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_requests_never_exceed_the_limit_across_gateways() {
    let redis = Redis::start();
    let nodes = [counters(&redis, PATIENCE).await, counters(&redis, PATIENCE).await];
    let limits = KeyLimits { concurrent_requests: Some(5), ..KeyLimits::default() };
    let (running, granted) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let mut requests = JoinSet::new();
    for client in 0..32 {
        let (node, limits) = (Arc::clone(&nodes[client % 2]), limits);
        let (running, granted) = (Arc::clone(&running), Arc::clone(&granted));
        requests.spawn(async move {
            let key: Arc<str> = "k".into();
            for _ in 0..30 {
                let place = node.place(&key);
                let answer =
                    node.ask(&key, &limits, KeySnapshot::default(), Some(&place)).await.expect("an answer");
                if answer.verdict != LimitVerdict::Granted {
                    place.refused();
                    continue;
                }
                place.hold();
                granted.fetch_add(1, Ordering::SeqCst);
                assert!(running.fetch_add(1, Ordering::SeqCst) < 5, "more than five run");
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                drop(place);
            }
        });
    }
    requests.join_all().await;
    assert!(granted.load(Ordering::SeqCst) >= 5);
    // In the end, all slots are free.
    let free = || redis.command("ZCARD gatewright:{k}:places") == ":0\r\n";
    until(free).await;
}

#[tokio::test]
async fn slots_of_a_dead_gateway_are_released_when_their_lease_expires() {
    let redis = Redis::start();
    let lease = Duration::from_secs(3);
    let (dead, living) = (counters(&redis, lease).await, counters(&redis, lease).await);
    let (key, limits) = (Arc::from("k"), KeyLimits { concurrent_requests: Some(2), ..KeyLimits::default() });
    assert_eq!(verdict(&dead, &key, &limits).await, LimitVerdict::Granted);
    assert_eq!(verdict(&living, &key, &limits).await, LimitVerdict::Granted);
    assert_eq!(verdict(&living, &key, &limits).await, LimitVerdict::Concurrent);
    drop(dead);
    tokio::time::sleep(lease * 3 / 2).await;
    // The slots of the live gateway are renewed, and the other one is free.
    assert_eq!(verdict(&living, &key, &limits).await, LimitVerdict::Granted);
    assert_eq!(verdict(&living, &key, &limits).await, LimitVerdict::Concurrent);
}

#[tokio::test]
async fn slots_and_requests_are_restored_after_the_server_loses_its_data() {
    let mut redis = Redis::start();
    let node = counters(&redis, Duration::from_secs(3)).await;
    let key: Arc<str> = "k".into();
    let limits =
        KeyLimits { concurrent_requests: Some(1), requests_per_minute: Some(2), ..KeyLimits::default() };
    assert_eq!(verdict(&node, &key, &limits).await, LimitVerdict::Granted);
    redis.stop();
    redis.resume();
    // Renewing the slot fails on the broken connection.
    until(|| node.losses() == 1 && node.is_present()).await;
    until(|| redis.command("ZCARD gatewright:{k}:places") == ":1\r\n").await;
    assert_eq!(verdict(&node, &key, &limits).await, LimitVerdict::Concurrent);
    let alone = KeyLimits { concurrent_requests: None, ..limits };
    let seen = KeySnapshot { requests: Duration::from_secs(30), ..KeySnapshot::default() };
    let answer = node.ask(&key, &alone, seen, None).await.expect("an answer");
    assert_eq!(answer.verdict, LimitVerdict::Granted);
    assert!(matches!(verdict(&node, &key, &alone).await, LimitVerdict::Requests(_)));
}

#[tokio::test]
async fn evicted_scripts_are_reloaded() {
    let redis = Redis::start();
    let node = counters(&redis, PATIENCE).await;
    let limits = KeyLimits { requests_per_minute: Some(2), ..KeyLimits::default() };
    let key = Arc::from("k");
    assert_eq!(verdict(&node, &key, &limits).await, LimitVerdict::Granted);
    assert_eq!(redis.command("SCRIPT FLUSH"), "+OK\r\n");
    assert_eq!(verdict(&node, &key, &limits).await, LimitVerdict::Granted);
    assert!(matches!(verdict(&node, &key, &limits).await, LimitVerdict::Requests(_)));
    assert_eq!(node.losses(), 0);
}

#[tokio::test]
async fn token_debt_of_all_gateways_is_capped_at_one_hour() {
    let redis = Redis::start();
    let nodes = [counters(&redis, PATIENCE).await, counters(&redis, PATIENCE).await];
    let limits = KeyLimits { tokens_per_minute: Some(1000), ..KeyLimits::default() };
    let key: Arc<str> = "k".into();
    let add = |node: &SharedCounters, tokens| {
        let spent = Spent { tokens, cost: 0 };
        node.add(&key, &limits, spent, SpentSoFar { day: Day::today(), today: spent, month: spent });
    };
    for node in &nodes {
        add(node, 1000);
    }
    // Twice the limit: a minute of debt.
    let waits = async |node: &SharedCounters| match verdict(node, &key, &limits).await {
        LimitVerdict::Tokens(wait) => wait,
        other => panic!("{other:?}"),
    };
    tokio::time::sleep(Duration::from_millis(200)).await;
    let wait = waits(&nodes[0]).await;
    assert!(wait > Duration::from_secs(50) && wait <= Duration::from_millis(60_060), "{wait:?}");
    add(&nodes[1], u64::MAX / 4);
    until(|| redis.command("PTTL gatewright:{k}:tokens").len() > ":3000000\r\n".len() - 1).await;
    assert!(waits(&nodes[0]).await <= Duration::from_millis(3_600_060));
}

#[tokio::test]
async fn tokens_sent_with_a_request_count_once() {
    let redis = Redis::start();
    let node = counters(&redis, PATIENCE).await;
    let limits = KeyLimits { tokens_per_minute: Some(1000), ..KeyLimits::default() };
    for (key, insists) in [("unknown", false), ("insists", true)] {
        let key: Arc<str> = key.into();
        // Half a minute, which the gateway has also counted itself.
        let seen = KeySnapshot { tokens: Duration::from_secs(30), insists, ..KeySnapshot::default() };
        node.shared.waiting().add_tokens(&key, 1000, 500);
        let answer = node.ask(&key, &limits, seen, None).await.expect("an answer");
        assert_eq!((answer.verdict, answer.tokens), (LimitVerdict::Granted, Duration::from_secs(30)));
        // What the server knows grows by what arrives.
        node.shared.waiting().add_tokens(&key, 1000, 100);
        let answer = node.ask(&key, &limits, KeySnapshot::default(), None).await.expect("an answer");
        assert!(answer.tokens > Duration::from_secs(30), "{answer:?}");
    }
}

fn day(text: &str) -> Day {
    text.parse().expect("a day")
}

/// Tokens at a thousand billionths each, to distinguish the two.
fn some(tokens: u64) -> Spent {
    Spent { tokens, cost: tokens * 1000 }
}

/// What was spent on a day, and earlier in its month.
fn so_far(day: Day, today: u64, before: u64) -> SpentSoFar {
    SpentSoFar { day, today: some(today), month: some(today + before) }
}

const BUDGETS: KeyLimits = KeyLimits {
    tokens_per_day: Some(100),
    cost_per_day: Some(0.001),
    tokens_per_month: Some(150),
    cost_per_month: Some(0.001),
    requests_per_minute: None,
    tokens_per_minute: None,
    concurrent_requests: None,
    file_bytes: None,
};

#[tokio::test]
async fn spending_on_one_gateway_counts_on_all_at_once() {
    let redis = Redis::start();
    let nodes = [counters(&redis, PATIENCE).await, counters(&redis, PATIENCE).await];
    let (key, today) = (Arc::from("k"), day("2026-07-31"));
    let ask = async |node: usize, limits: &KeyLimits, so_far| {
        let seen = KeySnapshot { spent: Some(so_far), ..KeySnapshot::default() };
        nodes[node].ask(&key, limits, seen, None).await.expect("an answer")
    };
    // The server adopts what the first gateway to ask knows.
    let answer = ask(0, &BUDGETS, so_far(today, 30, 60)).await;
    assert_eq!((answer.verdict, answer.today, answer.month), (LimitVerdict::Granted, some(30), some(90)));
    // It knows more than a gateway that has not read the store yet.
    let answer = ask(1, &BUDGETS, so_far(today, 5, 60)).await;
    assert_eq!((answer.verdict, answer.today, answer.month), (LimitVerdict::Granted, some(30), some(90)));
    // Spending without a request is reported soon, and once.
    nodes[1].add(&key, &BUDGETS, some(40), so_far(today, 70, 60));
    until(|| redis.command("HGET gatewright:{k}:spent:2026-07-31 tokens") == "$2\r\n70\r\n").await;
    let answer = ask(0, &BUDGETS, so_far(today, 30, 60)).await;
    assert_eq!((answer.verdict, answer.today, answer.month), (LimitVerdict::Granted, some(70), some(130)));
    // Known spending is sent along with a request.
    nodes[0].shared.waiting().add_spent(&key, some(20), so_far(today, 90, 60));
    let answer = ask(0, &BUDGETS, so_far(today, 90, 60)).await;
    assert_eq!((answer.verdict, answer.month), (LimitVerdict::TokensOfMonth, some(150)));
    for (limits, verdict) in [
        (KeyLimits { tokens_per_day: Some(90), ..KeyLimits::default() }, LimitVerdict::TokensOfDay),
        (KeyLimits { cost_per_day: Some(0.000_09), ..KeyLimits::default() }, LimitVerdict::CostOfDay),
        (KeyLimits { cost_per_month: Some(0.000_15), ..KeyLimits::default() }, LimitVerdict::CostOfMonth),
        (KeyLimits { cost_per_month: Some(0.000_151), ..KeyLimits::default() }, LimitVerdict::Granted),
    ] {
        assert_eq!(ask(1, &limits, so_far(today, 5, 60)).await.verdict, verdict);
    }
    // A new month starts at zero.
    let next = day("2026-08-01");
    let answer = ask(1, &BUDGETS, so_far(next, 0, 0)).await;
    assert_eq!((answer.verdict, answer.today, answer.month), (LimitVerdict::Granted, some(0), some(0)));
    // Its entries expire.
    assert!(redis.command("TTL gatewright:{k}:spent-since:2026-07-01").len() > ":100\r\n".len());
}

#[tokio::test]
async fn spending_is_restored_after_the_server_loses_its_data() {
    let mut redis = Redis::start();
    let node = counters(&redis, PATIENCE).await;
    let (key, today) = (Arc::from("k"), day("2026-07-31"));
    let seen = |tokens, insists| KeySnapshot {
        spent: Some(so_far(today, tokens, 0)),
        insists,
        ..KeySnapshot::default()
    };
    let ask = async |seen| node.ask(&key, &BUDGETS, seen, None).await.expect("an answer").today;
    assert_eq!(ask(seen(30, false)).await, some(30));
    // What this gateway knows without insisting adds nothing to what the server has.
    assert_eq!(ask(seen(40, false)).await, some(30));
    // It insists after the server was away.
    assert_eq!(ask(seen(40, true)).await, some(40));
    redis.stop();
    redis.resume();
    assert_eq!(node.ask(&key, &BUDGETS, seen(50, false), None).await, None);
    until(|| node.is_present()).await;
    node.add(&key, &BUDGETS, some(5), so_far(today, 55, 0));
    until(|| redis.command("HGET gatewright:{k}:spent:2026-07-31 tokens") == "$2\r\n55\r\n").await;
    assert_eq!(ask(seen(50, false)).await, some(55));
}

#[tokio::test]
async fn slots_are_reported_again_when_the_server_is_back() {
    let mut redis = Redis::start();
    // No renewal is due.
    let node = counters(&redis, PATIENCE * 10).await;
    let (key, limits) = (Arc::from("k"), KeyLimits { concurrent_requests: Some(1), ..KeyLimits::default() });
    assert_eq!(verdict(&node, &key, &limits).await, LimitVerdict::Granted);
    redis.stop();
    redis.resume();
    let other = Arc::from("other");
    assert_eq!(node.ask(&other, &limits, KeySnapshot::default(), None).await, None);
    until(|| redis.command("ZCARD gatewright:{k}:places") == ":1\r\n").await;
}

/// Delays a server's replies by this many milliseconds. Returns the address.
async fn slowed(redis: &Redis, delay: Arc<AtomicU64>) -> CountersUrl {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = CountersUrl::new(&redis.url()).expect("an address");
    let mut slow = url.as_url().clone();
    slow.set_port(Some(listener.local_addr().expect("an address").port())).expect("a port");
    slow.set_host(Some("127.0.0.1")).expect("a host");
    let port = url.as_url().port().expect("a port");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect(("127.0.0.1", port)).await.expect("the server");
            let (mut requests, mut answers) = client.into_split();
            let (mut answered, mut server_input) = server.into_split();
            tokio::spawn(async move { tokio::io::copy(&mut requests, &mut server_input).await });
            let delay = Arc::clone(&delay);
            tokio::spawn(async move {
                let mut bytes = vec![0; 4096];
                while let Ok(count @ 1..) = answered.read(&mut bytes).await {
                    tokio::time::sleep(Duration::from_millis(delay.load(Ordering::SeqCst))).await;
                    if answers.write_all(&bytes[..count]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    CountersUrl::new(slow.as_str()).expect("an address")
}

#[tokio::test]
async fn server_slower_than_the_timeout_is_not_used() {
    let redis = Redis::start();
    let delay = Arc::new(AtomicU64::new(300));
    let url = slowed(&redis, Arc::clone(&delay)).await;
    let server = CounterServer { url, timeout: Duration::from_millis(200), lease: PATIENCE };
    let node = SharedCounters::start(&server).expect("an address");
    // It replies to the first calls of a connection.
    until(|| redis.command("EXISTS gatewright:{#trial}:tokens") == ":1\r\n").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!node.is_present() && node.losses() == 0);
    delay.store(0, Ordering::SeqCst);
    until(|| node.is_present()).await;
}

#[tokio::test]
async fn server_out_of_memory_is_treated_as_away() {
    let redis = Redis::start();
    let node = counters(&redis, PATIENCE).await;
    let limits = KeyLimits { requests_per_minute: Some(2), ..KeyLimits::default() };
    redis.command("CONFIG SET maxmemory 1");
    let key = Arc::from("k");
    assert_eq!(node.ask(&key, &limits, KeySnapshot::default(), None).await, None);
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(!node.is_present());
    redis.command("CONFIG SET maxmemory 0");
    until(|| node.is_present()).await;
    assert_eq!(verdict(&node, &key, &limits).await, LimitVerdict::Granted);
}
