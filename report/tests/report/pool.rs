//! Many documents at once.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gatewright_report::{Outcome, Pool, Source, Validator};

use crate::bases;

/// A pool whose results are verdicts.
fn judging<K: Send + 'static>(threads: usize, ordered: bool) -> Pool<K, bool> {
    Pool::new(&Validator::default(), threads, ordered, |_, _, outcome| outcome.valid).expect("threads")
}

fn documents(count: usize) -> impl Iterator<Item = (usize, Source)> {
    let minimal = bases::text("minimal").into_bytes();
    (0..count).map(move |index| {
        let document = if index % 3 == 0 { b"{}".to_vec() } else { minimal.clone() };
        (index, Source::Bytes(document))
    })
}

#[test]
fn ordered_results_arrive_in_document_order() {
    let pool = judging(4, true);
    let judged: Vec<_> = pool.run(documents(500)).collect();
    assert_eq!(judged.len(), 500);
    for (index, one) in judged.into_iter().enumerate() {
        assert_eq!((one.index, one.key), (index, index));
        assert_eq!(one.result.expect("bytes are readable"), index % 3 != 0);
    }
}

#[test]
fn unordered_results_are_complete() {
    let pool = judging(4, false);
    let seen: BTreeSet<usize> = pool.run(documents(500)).map(|one| one.index).collect();
    assert_eq!(seen, (0..500).collect());
}

#[test]
fn documents_are_read_ahead_only_up_to_a_limit() {
    let taken = AtomicUsize::new(0);
    let pool = judging(2, true);
    let counted = documents(1000).inspect(|_| {
        taken.fetch_add(1, Ordering::Relaxed);
    });
    let mut results = pool.run(counted);
    for fetched in 1..=100 {
        results.next().expect("a result");
        let taken = taken.load(Ordering::Relaxed);
        assert!(taken <= fetched + 16, "{taken} taken, {fetched} fetched");
    }
}

#[test]
fn unreadable_file_retains_its_position() {
    let pool = judging(2, true);
    let failed = io::Error::other("gone");
    let sources =
        [Source::File("missing.json".into()), Source::Failed(failed), Source::Bytes(b"[]".to_vec())];
    let results = pool.run(sources.map(|source| ((), source)));
    let results: Vec<_> = results.map(|one| one.result.map_err(|error| error.kind())).collect();
    assert_eq!(results, [Err(io::ErrorKind::NotFound), Err(io::ErrorKind::Other), Ok(false)]);
}

#[test]
fn thread_panic_reaches_the_caller_without_a_deadlock() {
    let make = |key: &usize, _: &[u8], _: Outcome| assert!(*key != 5, "document 5");
    let pool = Pool::new(&Validator::default(), 2, true, make).expect("threads");
    let run = std::panic::AssertUnwindSafe(|| pool.run(documents(20)).count());
    let panic = std::panic::catch_unwind(run).expect_err("the panic arrives");
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"document 5"));
}

#[test]
fn waiting_ends_at_its_timeout() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let make = move |(): &(), _: &[u8], _: Outcome| {
        wait.lock().expect("one thread").recv().expect("the test lets go");
    };
    let mut pool = Pool::new(&Validator::default(), 1, false, make).expect("threads");
    assert!(pool.fetch(None).is_none(), "nothing is pending");
    pool.submit((), Source::Bytes(Vec::new()));
    assert!(pool.fetch(Some(Duration::from_millis(10))).is_none());
    assert_eq!(pool.pending(), 1);
    go.send(()).expect("the thread waits");
    assert!(pool.fetch(None).is_some());
    assert_eq!(pool.pending(), 0);
}
