//! The records of generated files.

use std::time::Duration;

use gatewright_system::clock::unix_seconds;

use super::kinds::Shared;
use crate::DurableStore;
use crate::file_name::{FileKind, FileName};
use crate::traits::{ExpiringFile, FileRecord, FileTotals};

in_every_store! {
    file_totals_are_reported_overall_and_per_key
    files_are_listed_by_expiry
    recording_a_file_twice_keeps_one_entry
    removed_files_free_their_space
    files_of_concurrent_processes_are_all_recorded
    file_expiry_uses_the_stores_clock
}

const GIB: u64 = 1024 * 1024 * 1024;

/// Longer than a test takes.
const LONG: Duration = Duration::from_hours(1);

fn file(owner: &str, bytes: u64) -> FileRecord {
    FileRecord { name: FileName::random(FileKind::Mp4), owner: owner.into(), bytes }
}

/// With a lifetime longer than a test takes.
async fn add(store: &dyn DurableStore, files: &[FileRecord]) {
    store.add_files(files, LONG).await.expect("a store");
}

/// Adds a file with a multiple of that lifetime.
async fn add_for(store: &dyn DurableStore, times: u32, file: &FileRecord) -> u64 {
    store.add_files(std::slice::from_ref(file), times * LONG).await.expect("a store")
}

async fn remove(store: &dyn DurableStore, files: &[FileRecord]) {
    let names: Vec<FileName> = files.iter().map(|file| file.name.clone()).collect();
    store.remove_files(&names).await.expect("a store");
}

/// Files and bytes of all, and of a key.
async fn taken(store: &dyn DurableStore, owner: &str) -> [(u64, u64); 2] {
    let (all, own) = store.taken_by_files(owner).await.expect("a store");
    [all, own].map(|FileTotals { files, bytes }| (files, bytes))
}

async fn first(store: &dyn DurableStore, owner: Option<&str>, most: u32) -> Vec<ExpiringFile> {
    store.first_to_expire(owner, most).await.expect("a store")
}

fn names(files: &[ExpiringFile]) -> Vec<&FileName> {
    files.iter().map(|one| &one.file.name).collect()
}

/// Whether this many seconds are `times` as long, give or take a test's duration.
fn is_left(left: u64, times: u32) -> bool {
    (times * LONG).as_secs().checked_sub(left).is_some_and(|passed| passed < 60)
}

async fn file_totals_are_reported_overall_and_per_key(store: Shared) {
    assert_eq!(taken(&*store.other, "a").await, [(0, 0), (0, 0)]);
    // More than fits into 32 bits.
    add(&*store.one, &[file("a", 3 * GIB), file("b", 5), file("a", 7 * GIB)]).await;
    assert_eq!(taken(&*store.other, "a").await, [(3, 10 * GIB + 5), (2, 10 * GIB)]);
    assert_eq!(taken(&*store.other, "b").await, [(3, 10 * GIB + 5), (1, 5)]);
    assert_eq!(taken(&*store.other, "nobody").await, [(3, 10 * GIB + 5), (0, 0)]);
}

async fn files_are_listed_by_expiry(store: Shared) {
    let (late, early, other) = (file("a", 1), file("a", 2), file("b", 3));
    for (times, file) in [(3, &late), (1, &early), (2, &other)] {
        add_for(&*store.one, times, file).await;
    }
    let store = &*store.other;
    assert_eq!(names(&first(store, None, 9).await), [&early.name, &other.name, &late.name]);
    assert_eq!(names(&first(store, None, 2).await), [&early.name, &other.name]);
    assert_eq!(names(&first(store, Some("a"), 9).await), [&early.name, &late.name]);
    assert!(first(store, None, 0).await.is_empty() && first(store, Some("nobody"), 9).await.is_empty());
    let [read] = first(store, Some("b"), 1).await.try_into().expect("one file");
    assert!(is_left(read.left, 2), "{read:?}");
    assert_eq!((read.file.name, &*read.file.owner, read.file.bytes), (other.name, "b", 3));
}

async fn recording_a_file_twice_keeps_one_entry(store: Shared) {
    let (again, other) = (file("a", 5), file("a", 5));
    add(&*store.one, &[again.clone(), other.clone()]).await;
    add_for(&*store.other, 2, &again).await;
    assert_eq!(taken(&*store.one, "a").await, [(2, 10), (2, 10)]);
    let all = first(&*store.one, None, 9).await;
    assert_eq!(names(&all), [&other.name, &again.name]);
    assert!(is_left(all[1].left, 2), "{all:?}");
    remove(&*store.one, std::slice::from_ref(&again)).await;
    assert_eq!(taken(&*store.other, "a").await, [(1, 5), (1, 5)]);
}

async fn removed_files_free_their_space(store: Shared) {
    let files = [file("a", 1), file("a", 2), file("b", 4)];
    add(&*store.one, &files).await;
    let has = async |at: usize| store.other.has_file(&files[at].name).await.expect("a store");
    // A file that is not recorded counts as removed.
    remove(&*store.other, &[files[0].clone(), file("a", 9), files[2].clone()]).await;
    assert_eq!([has(0).await, has(1).await, has(2).await], [false, true, false]);
    remove(&*store.one, &files).await;
    assert_eq!((has(1).await, taken(&*store.other, "a").await), (false, [(0, 0), (0, 0)]));
    assert!(!store.one.has_file(&FileName::random(FileKind::Png)).await.expect("a store"));
}

async fn files_of_concurrent_processes_are_all_recorded(store: Shared) {
    let files: Vec<_> = (0..40).map(|_| file("a", 1)).collect();
    let (some, others) = files.split_at(20);
    tokio::join!(add(&*store.one, some), add(&*store.other, others));
    assert_eq!(taken(&*store.one, "a").await, [(40, 40), (40, 40)]);
    // Both remove the same files, in opposite order.
    let backwards: Vec<_> = files.iter().rev().cloned().collect();
    tokio::join!(remove(&*store.one, &files), remove(&*store.other, &backwards));
    assert!(first(&*store.one, None, 99).await.is_empty());
}

async fn file_expiry_uses_the_stores_clock(store: Shared) {
    let (gone, there) = (file("a", 1), file("a", 2));
    let clock = async || store.other.clock().await.expect("a store") / 1000;
    let before = clock().await;
    // The clocks of this test and of the store are those of one machine.
    assert!(before.abs_diff(unix_seconds()) < 60, "{before}");
    let expires = [add_for(&*store.one, 0, &gone).await, add_for(&*store.one, 1, &there).await];
    let after = clock().await;
    for (expires, lifetime) in expires.into_iter().zip([0, LONG.as_secs()]) {
        assert!((before + lifetime..=after + lifetime).contains(&expires), "{expires}");
    }
    let found = first(&*store.other, None, 9).await;
    assert_eq!((names(&found), found[0].left), (vec![&gone.name, &there.name], 0));
    assert!(is_left(found[1].left, 1), "{found:?}");
}
