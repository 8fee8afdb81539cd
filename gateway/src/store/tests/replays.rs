//! Answers by idempotency keys.

use super::kinds::Shared;
use crate::clock::millis;
use crate::store::Store;
use crate::store::durable::{Keyed, Lease, MOST_ANSWER_BYTES, MOST_ANSWERS, Reserved, UNANSWERED_FOR};

in_every_store! {
    one_of_several_at_once_is_the_first
    an_answer_is_given_again_until_it_expires
    a_key_is_freed_by_who_has_its_lease_alone
    a_lease_that_ran_out_is_taken_over_and_the_one_before_changes_nothing
    an_answer_that_is_late_is_kept_unless_its_lease_is_forgotten
    answers_are_remembered_within_bounds_of_count_bytes_and_time
    the_answers_of_a_key_leave_room_to_others
}

const LATER: u64 = 60_000;

fn keyed(slot: &str, owner: &str) -> Keyed {
    Keyed { slot: slot.to_owned(), operation: "create_video", owner: owner.into(), fingerprint: [7; 32] }
}

async fn reserve(store: &dyn Store, slot: &str, now: u64) -> Reserved {
    store.reserve(&keyed(slot, "key"), now, now + LATER).await.expect("a store")
}

async fn first(store: &dyn Store, keyed: &Keyed, now: u64) -> Lease {
    match store.reserve(keyed, now, now + LATER).await.expect("a store") {
        Reserved::First(lease) => lease,
        other => panic!("{}: {other:?}", keyed.slot),
    }
}

async fn answer(store: &dyn Store, keyed: &Keyed, now: u64, answer: &[u8], hundredths: u8) {
    let lease = first(store, keyed, now).await;
    assert!(store.keep_answer(&lease, answer, now + LATER, hundredths).await.expect("a store"));
}

async fn one_of_several_at_once_is_the_first(shared: Shared) {
    let asking: Vec<_> = (0..16)
        .map(|number| {
            let store = std::sync::Arc::clone(if number % 2 == 0 { &shared.one } else { &shared.other });
            tokio::spawn(async move { reserve(&*store, "a", 0).await })
        })
        .collect();
    let mut first = 0;
    for asked in asking {
        match asked.await.expect("no panic") {
            Reserved::First(_) => first += 1,
            other => assert_eq!(other, Reserved::UnderWay),
        }
    }
    assert_eq!(first, 1);
}

async fn an_answer_is_given_again_until_it_expires(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    answer(one, &keyed("a", "key"), 0, b"\0made\xff", 100).await;
    assert_eq!(reserve(other, "a", LATER - 1).await, Reserved::Answered(b"\0made\xff".to_vec()));
    let another = Keyed { fingerprint: [8; 32], ..keyed("a", "key") };
    assert_eq!(other.reserve(&another, 1, 2).await.expect("a store"), Reserved::Other);
    one.forget_replays(LATER - 1).await.expect("a store");
    assert!(matches!(reserve(other, "a", LATER - 1).await, Reserved::Answered(_)));
    // What has expired is as if it were not there, whether or not it was removed.
    first(other, &another, LATER).await;
    answer(one, &keyed("b", "key"), 0, b"", 100).await;
    one.forget_replays(LATER).await.expect("a store");
    first(other, &keyed("b", "key"), 1).await;
}

async fn a_key_is_freed_by_who_has_its_lease_alone(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    let lease = first(one, &keyed("a", "key"), 0).await;
    let foreign = Lease { number: lease.number.wrapping_add(1), ..lease.clone() };
    other.free_key(&foreign).await.expect("a store");
    assert_eq!(reserve(other, "a", 1).await, Reserved::UnderWay);
    other.free_key(&lease).await.expect("a store");
    let next = first(other, &keyed("a", "key"), 1).await;
    assert!(other.keep_answer(&next, b"made", LATER, 100).await.expect("a store"));
    // What is answered is not freed any more.
    one.free_key(&next).await.expect("a store");
    assert_eq!(reserve(one, "a", 1).await, Reserved::Answered(b"made".to_vec()));
}

async fn a_lease_that_ran_out_is_taken_over_and_the_one_before_changes_nothing(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    let before = first(one, &keyed("a", "key"), 0).await;
    one.renew_keys(std::slice::from_ref(&before), 2 * LATER).await.expect("a store");
    assert_eq!(reserve(other, "a", 2 * LATER - 1).await, Reserved::UnderWay);
    let another = Keyed { fingerprint: [8; 32], ..keyed("a", "key") };
    let next = first(other, &another, 2 * LATER).await;
    assert!(!one.keep_answer(&before, b"late", 9 * LATER, 100).await.expect("a store"));
    one.free_key(&before).await.expect("a store");
    one.renew_keys(std::slice::from_ref(&before), 9 * LATER).await.expect("a store");
    assert!(other.keep_answer(&next, b"made", 4 * LATER, 100).await.expect("a store"));
    let again = one.reserve(&another, 3 * LATER, 9 * LATER).await.expect("a store");
    assert_eq!(again, Reserved::Answered(b"made".to_vec()));
    // A gateway that comes back after its key was forgotten finds that of another request.
    let before = first(one, &keyed("b", "key"), 0).await;
    one.forget_replays(LATER + millis(UNANSWERED_FOR)).await.expect("a store");
    let next = first(other, &keyed("b", "key"), LATER).await;
    assert!(!one.keep_answer(&before, b"late", 9 * LATER, 100).await.expect("a store"));
    assert!(other.keep_answer(&next, b"made", 9 * LATER, 100).await.expect("a store"));
}

async fn an_answer_that_is_late_is_kept_unless_its_lease_is_forgotten(shared: Shared) {
    let (one, other) = (&*shared.one, &*shared.other);
    let gone = LATER + millis(UNANSWERED_FOR);
    let lease = first(one, &keyed("a", "key"), 0).await;
    other.forget_replays(gone - 1).await.expect("a store");
    assert!(one.keep_answer(&lease, b"late", 9 * gone, 100).await.expect("a store"));
    assert_eq!(reserve(other, "a", gone).await, Reserved::Answered(b"late".to_vec()));
    let lease = first(one, &keyed("b", "key"), 0).await;
    other.forget_replays(gone).await.expect("a store");
    assert!(!one.keep_answer(&lease, b"late", 9 * gone, 100).await.expect("a store"));
    assert!(matches!(reserve(other, "b", gone).await, Reserved::First(_)));
}

async fn answers_are_remembered_within_bounds_of_count_bytes_and_time(shared: Shared) {
    let store = &*shared.one;
    for number in 0..=MOST_ANSWERS as u64 {
        answer(store, &keyed(&number.to_string(), "key"), number, b"x", 100).await;
    }
    assert!(matches!(reserve(store, "0", 1).await, Reserved::First(_)));
    assert!(matches!(reserve(store, "1", 1).await, Reserved::Answered(_)));
    // Another operation has room of its own.
    let other = Keyed { operation: "create_response", ..keyed("other", "key") };
    answer(store, &other, 5_000, b"x", 100).await;
    assert!(matches!(reserve(store, "1", 1).await, Reserved::Answered(_)));
    let large = vec![b'x'; MOST_ANSWER_BYTES / 4];
    for number in 0..4_u64 {
        answer(store, &keyed(&format!("large {number}"), "key"), 6_000 + number, &large, 100).await;
    }
    assert!(matches!(reserve(store, "large 0", 1).await, Reserved::First(_)));
    assert!(matches!(reserve(store, "large 1", 1).await, Reserved::Answered(_)));
    store.forget_replays(9 * LATER).await.expect("a store");
    assert!(matches!(reserve(store, "large 1", 1).await, Reserved::First(_)));
}

async fn the_answers_of_a_key_leave_room_to_others(shared: Shared) {
    let store = &*shared.one;
    answer(store, &keyed("other", "other"), 0, b"x", 1).await;
    for number in 0..=10_u64 {
        answer(store, &keyed(&number.to_string(), "key"), 1 + number, b"x", 1).await;
    }
    assert!(matches!(reserve(store, "0", 1).await, Reserved::First(_)));
    assert!(matches!(reserve(store, "1", 1).await, Reserved::Answered(_)));
    assert!(matches!(reserve(store, "other", 1).await, Reserved::Answered(_)));
}
