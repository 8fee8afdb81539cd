//! A disk that is full and then has room again.

use std::time::Duration;

use gatewright_test_stores::{may_mount, mount};

use crate::SqlStore;
use crate::keys::{Digest, NewKey};
use crate::traits::{
    AnswerQuota, Batch, KeyRecord, KeyStore as _, KeyedRequest, Lease, ReplaySlot, ReplayStore as _,
    UsageStore as _,
};
use crate::usage::{Day, Rows, Totals, UsageKey};

/// More than there are connections.
const OFTEN: u64 = 40;

#[test]
fn store_recovers_when_its_disk_has_room_again() {
    if may_mount("tests::full_disk::store_recovers_when_its_disk_has_room_again") {
        run(on_a_small_disk());
    }
}

#[test]
fn writes_to_a_full_disk_are_not_acknowledged() {
    if may_mount("tests::full_disk::writes_to_a_full_disk_are_not_acknowledged") {
        run(changes_on_a_full_disk());
    }
}

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(test);
}

fn rows(count: u64) -> Rows {
    let place = |number: u64| UsageKey {
        day: Day::of(0),
        key: format!("{number:0>500}").into(),
        model: "m".into(),
        upstream: "u".into(),
    };
    let totals = Totals { requests: 1, ..Totals::default() };
    (0..count).map(|number| (place(number), totals)).collect()
}

async fn on_a_small_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    mount(&disk, "2m");
    let store = SqlStore::in_file(&disk.join("a.db")).expect("a database");
    store.add_usage(&Batch::first(), &rows(1)).await.expect("room");
    let ballast = disk.join("ballast");
    // As much as fits.
    _ = std::fs::write(&ballast, vec![0; 4 * 1024 * 1024]);
    for _ in 0..OFTEN {
        let error = store.add_usage(&Batch::first(), &rows(200)).await.expect_err("a full disk").to_string();
        assert!(error.contains("full"), "{error}");
    }
    std::fs::remove_file(&ballast).expect("room");
    for _ in 0..OFTEN {
        store.add_usage(&Batch::first(), &rows(1)).await.expect("room again");
    }
}

/// Everything acknowledged is visible to the next process that opens the file. Keys are revoked and rotated, and idempotency
/// keys are reserved.
async fn changes_on_a_full_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("disk");
    mount(&disk, "2m");
    let file = disk.join("a.db");
    let store = SqlStore::in_file(&file).expect("a database");
    let mut ids = Vec::new();
    for number in 0..OFTEN {
        let key = NewKey::new(format!("key {number}")).issue(1);
        ids.push(key.id.clone());
        let record = KeyRecord { key, digest: digest(number), old: None };
        store.add_key(record).await.expect("room").expect("added");
    }
    let ballast = disk.join("ballast");
    _ = std::fs::write(&ballast, vec![0; 4 * 1024 * 1024]);
    let (mut revoked, mut rotated, mut reserved): (Vec<&str>, Vec<&str>, Vec<Lease>) = Default::default();
    let mut refused = 0;
    let (half, rest) = ids.split_at(ids.len() / 2);
    for (number, (one, other)) in (OFTEN..).zip(half.iter().zip(rest)) {
        match store.revoke_key(one, 2).await {
            Ok(_) => revoked.push(one),
            Err(_) => refused += 1,
        }
        match store.rotate_key(other, digest(number), 2, None).await {
            Ok(_) => rotated.push(other),
            Err(_) => refused += 1,
        }
        match store.reserve(&keyed(number), WHILE).await {
            Ok(ReplaySlot::First(lease)) => reserved.push(lease),
            Ok(taken) => panic!("{taken:?}"),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0, "the disk is full");
    std::fs::remove_file(&ballast).expect("room");
    let next = SqlStore::in_file(&file).expect("a database");
    let keys = next.list_keys(true).await.expect("a store");
    let find = |id: &str| keys.iter().find(|key| &*key.id == id).expect("a key");
    assert!(revoked.iter().all(|id| find(id).revoked.is_some()), "a key that was revoked is in use");
    assert!(rotated.iter().all(|id| find(id).rotated.is_some()), "a key that was rotated has its old secret");
    for lease in reserved {
        let room = AnswerQuota { answers: 1_000, percent: 100 };
        assert!(next.keep_answer(&lease, b"x", WHILE, room).await.expect("room"), "a lease is lost");
    }
}

const WHILE: Duration = Duration::from_mins(10);

fn digest(number: u64) -> Digest {
    Digest([u8::try_from(number).expect("few"); 32])
}

fn keyed(number: u64) -> KeyedRequest {
    let slot = number.to_string();
    KeyedRequest { slot, operation: "create_video", owner: "key".into(), fingerprint: [7; 32] }
}
