//! Answers by idempotency keys.

use std::time::Duration;

use super::kinds::Shared;
use crate::DurableStore;
use crate::traits::{AnswerQuota, KeyedRequest, Lease, ReplaySlot, UNANSWERED_FOR};

in_every_store! {
    one_of_several_concurrent_requests_gets_the_lease
    repeating_a_reservation_returns_its_lease
    answer_is_replayed_until_it_expires
    key_is_freed_only_by_its_lease_holder
    expired_lease_is_taken_over_and_its_old_holder_changes_nothing
    late_answer_is_kept_unless_its_lease_is_forgotten
    answers_are_bounded_in_count_bytes_and_time
    answers_of_a_key_are_limited_to_its_share
}

const WHILE: Duration = Duration::from_mins(10);
/// Shorter than that by more than the tests take.
const SHORTER: Duration = Duration::from_mins(8);

/// Number of answers of an operation kept in these tests.
const ANSWERS: usize = 160;

fn room(percent: u8) -> AnswerQuota {
    AnswerQuota { answers: ANSWERS, percent }
}

pub(crate) fn keyed(slot: &str, owner: &str) -> KeyedRequest {
    KeyedRequest {
        slot: slot.to_owned(),
        operation: "create_video",
        owner: owner.into(),
        fingerprint: [7; 32],
    }
}

async fn reserve(store: &dyn DurableStore, slot: &str) -> ReplaySlot {
    store.reserve(&keyed(slot, "key"), WHILE).await.expect("a store")
}

async fn first(store: &dyn DurableStore, keyed: &KeyedRequest) -> Lease {
    match store.reserve(keyed, WHILE).await.expect("a store") {
        ReplaySlot::First(lease) => lease,
        other => panic!("{}: {other:?}", keyed.slot),
    }
}

/// It did not learn that it has the lease: the store was slower than its timeout.
async fn repeating_a_reservation_returns_its_lease(store: Shared) {
    let keyed = keyed("a", "key");
    let ask = async |number: i64| store.one.reserve_as(&keyed, number, WHILE).await.expect("a store");
    let lease = || Lease { id: "a".to_owned(), number: 7 };
    assert_eq!(ask(7).await, ReplaySlot::First(lease()));
    assert_eq!(ask(8).await, ReplaySlot::UnderWay);
    assert_eq!(ask(7).await, ReplaySlot::First(lease()));
    assert!(keep(&*store.other, &lease(), b"made").await);
    // A late repetition changes nothing.
    assert_eq!(ask(7).await, ReplaySlot::Answered(b"made".to_vec()));
}

async fn keep(store: &dyn DurableStore, lease: &Lease, answer: &[u8]) -> bool {
    store.keep_answer(lease, answer, WHILE, room(100)).await.expect("a store")
}

async fn answer(store: &dyn DurableStore, keyed: &KeyedRequest, answer: &[u8], percent: u8) {
    let lease = first(store, keyed).await;
    assert!(store.keep_answer(&lease, answer, WHILE, room(percent)).await.expect("a store"));
}

/// Waits until a key is free: a database evicts old answers in the background.
async fn becomes_free(store: &dyn DurableStore, slot: &str) {
    let started = std::time::Instant::now();
    while !matches!(reserve(store, slot).await, ReplaySlot::First(_)) {
        assert!(started.elapsed() < Duration::from_mins(1), "{slot} stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn age(store: &dyn DurableStore, by: Duration) {
    store.age_replays(by).await.expect("a store");
}

async fn forget(store: &dyn DurableStore) {
    store.forget_replays().await.expect("a store");
}

async fn one_of_several_concurrent_requests_gets_the_lease(shared: Shared) {
    let requests: Vec<_> = (0..16)
        .map(|number| {
            let store = std::sync::Arc::clone(if number % 2 == 0 { &shared.one } else { &shared.other });
            tokio::spawn(async move { reserve(&*store, "a").await })
        })
        .collect();
    let mut first = 0;
    for request in requests {
        match request.await.expect("no panic") {
            ReplaySlot::First(_) => first += 1,
            other => assert_eq!(other, ReplaySlot::UnderWay),
        }
    }
    assert_eq!(first, 1);
}

async fn answer_is_replayed_until_it_expires(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    answer(one, &keyed("a", "key"), b"\0made\xff", 100).await;
    age(one, SHORTER).await;
    assert_eq!(reserve(other, "a").await, ReplaySlot::Answered(b"\0made\xff".to_vec()));
    let another = KeyedRequest { fingerprint: [8; 32], ..keyed("a", "key") };
    assert_eq!(other.reserve(&another, WHILE).await.expect("a store"), ReplaySlot::Other);
    forget(one).await;
    assert!(matches!(reserve(other, "a").await, ReplaySlot::Answered(_)));
    // Expired entries are ignored, whether or not they have been removed.
    age(one, WHILE).await;
    first(other, &another).await;
    answer(one, &keyed("b", "key"), b"", 100).await;
    age(one, WHILE).await;
    forget(one).await;
    first(other, &keyed("b", "key")).await;
}

async fn key_is_freed_only_by_its_lease_holder(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    let lease = first(one, &keyed("a", "key")).await;
    let foreign = Lease { number: lease.number.wrapping_add(1), ..lease.clone() };
    other.free_key(&foreign).await.expect("a store");
    assert_eq!(reserve(other, "a").await, ReplaySlot::UnderWay);
    other.free_key(&lease).await.expect("a store");
    let next = first(other, &keyed("a", "key")).await;
    assert!(keep(other, &next, b"made").await);
    // An answered key is no longer freed.
    one.free_key(&next).await.expect("a store");
    assert_eq!(reserve(one, "a").await, ReplaySlot::Answered(b"made".to_vec()));
}

async fn expired_lease_is_taken_over_and_its_old_holder_changes_nothing(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    let renew = async |lease| one.renew_keys(std::slice::from_ref(lease), 2 * WHILE).await.expect("a store");
    let before = first(one, &keyed("a", "key")).await;
    renew(&before).await;
    age(other, WHILE + SHORTER).await;
    assert_eq!(reserve(other, "a").await, ReplaySlot::UnderWay);
    age(other, WHILE).await;
    let another = KeyedRequest { fingerprint: [8; 32], ..keyed("a", "key") };
    let next = first(other, &another).await;
    assert!(!keep(one, &before, b"late").await);
    one.free_key(&before).await.expect("a store");
    renew(&before).await;
    assert!(keep(other, &next, b"made").await);
    let again = one.reserve(&another, WHILE).await.expect("a store");
    assert_eq!(again, ReplaySlot::Answered(b"made".to_vec()));
    // A gateway that comes back after its key was removed finds another request under it.
    let before = first(one, &keyed("b", "key")).await;
    age(one, WHILE + UNANSWERED_FOR).await;
    forget(one).await;
    let next = first(other, &keyed("b", "key")).await;
    assert!(!keep(one, &before, b"late").await);
    assert!(keep(other, &next, b"made").await);
}

async fn late_answer_is_kept_unless_its_lease_is_forgotten(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    let lease = first(one, &keyed("a", "key")).await;
    age(other, SHORTER + UNANSWERED_FOR).await;
    forget(other).await;
    assert!(keep(one, &lease, b"late").await);
    assert_eq!(reserve(other, "a").await, ReplaySlot::Answered(b"late".to_vec()));
    let lease = first(one, &keyed("b", "key")).await;
    age(other, WHILE + UNANSWERED_FOR).await;
    forget(other).await;
    assert!(!keep(one, &lease, b"late").await);
    assert!(matches!(reserve(other, "b").await, ReplaySlot::First(_)));
}

async fn answers_are_bounded_in_count_bytes_and_time(shared: Shared) {
    let store = &*shared.one;
    let second = Duration::from_secs(1);
    // A database counts them only now and then.
    let some_more = ANSWERS / 10;
    for number in 0..ANSWERS + some_more {
        answer(store, &keyed(&number.to_string(), "key"), b"x", 100).await;
        // Which of two answers from the same millisecond is older is undefined.
        if number == 0 || number + 1 == some_more {
            age(store, second).await;
        }
    }
    becomes_free(store, "0").await;
    let newer = some_more.to_string();
    assert!(matches!(reserve(store, &newer).await, ReplaySlot::Answered(_)));
    // Another operation has its own space.
    for number in 0..some_more {
        let operation = "create_response";
        answer(store, &KeyedRequest { operation, ..keyed(&format!("other {number}"), "key") }, b"x", 100)
            .await;
    }
    assert!(matches!(reserve(store, &newer).await, ReplaySlot::Answered(_)));
    let large = vec![b'x'; room(100).of_all().1 / 4];
    for number in 0..4 {
        age(store, second).await;
        answer(store, &keyed(&format!("large {number}"), "key"), &large, 100).await;
    }
    becomes_free(store, "large 0").await;
    assert!(matches!(reserve(store, "large 1").await, ReplaySlot::Answered(_)));
    age(store, WHILE).await;
    forget(store).await;
    assert!(matches!(reserve(store, "large 1").await, ReplaySlot::First(_)));
}

async fn answers_of_a_key_are_limited_to_its_share(shared: Shared) {
    let store = &*shared.one;
    // 16 for each key.
    answer(store, &keyed("other", "other"), b"x", 10).await;
    for number in 0..=16 {
        age(store, Duration::from_secs(1)).await;
        answer(store, &keyed(&number.to_string(), "key"), b"x", 10).await;
    }
    becomes_free(store, "0").await;
    assert!(matches!(reserve(store, "1").await, ReplaySlot::Answered(_)));
    assert!(matches!(reserve(store, "other").await, ReplaySlot::Answered(_)));
}
