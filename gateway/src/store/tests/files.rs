//! What generated files there are.

use super::kinds::Shared;
use crate::store::Store;
use crate::store::durable::{FileRecord, Taken};
use crate::store::file_name::{FileName, Kind};

in_every_store! {
    what_files_take_is_told_for_all_and_for_each_key
    those_that_expire_first_come_first
    a_file_that_is_told_again_is_the_same_one
    files_that_are_removed_make_room
    files_of_two_processes_at_once_are_all_there
}

const GIB: u64 = 1024 * 1024 * 1024;

fn file(owner: &str, bytes: u64, expires: u64) -> FileRecord {
    FileRecord { name: FileName::random(Kind::Mp4), owner: owner.into(), bytes, expires }
}

async fn add(store: &dyn Store, files: &[FileRecord]) {
    store.add_files(files).await.expect("a store");
}

async fn remove(store: &dyn Store, files: &[FileRecord]) {
    store.remove_files(files).await.expect("a store");
}

/// Files and bytes of all, and of a key.
async fn taken(store: &dyn Store, owner: &str) -> [(u64, u64); 2] {
    let (all, own) = store.taken_by_files(owner).await.expect("a store");
    [all, own].map(|Taken { files, bytes }| (files, bytes))
}

async fn first(store: &dyn Store, owner: Option<&str>, most: u32) -> Vec<FileRecord> {
    store.first_to_expire(owner, most).await.expect("a store")
}

fn names(files: &[FileRecord]) -> Vec<&FileName> {
    files.iter().map(|file| &file.name).collect()
}

async fn what_files_take_is_told_for_all_and_for_each_key(store: Shared) {
    assert_eq!(taken(&*store.other, "a").await, [(0, 0), (0, 0)]);
    // More than 32 bits hold.
    add(&*store.one, &[file("a", 3 * GIB, 1), file("b", 5, 2), file("a", 7 * GIB, 3)]).await;
    assert_eq!(taken(&*store.other, "a").await, [(3, 10 * GIB + 5), (2, 10 * GIB)]);
    assert_eq!(taken(&*store.other, "b").await, [(3, 10 * GIB + 5), (1, 5)]);
    assert_eq!(taken(&*store.other, "nobody").await, [(3, 10 * GIB + 5), (0, 0)]);
}

async fn those_that_expire_first_come_first(store: Shared) {
    let (late, early, other) = (file("a", 1, 30), file("a", 2, 10), file("b", 3, 20));
    add(&*store.one, &[late.clone(), early.clone(), other.clone()]).await;
    let store = &*store.other;
    assert_eq!(names(&first(store, None, 9).await), [&early.name, &other.name, &late.name]);
    assert_eq!(names(&first(store, None, 2).await), [&early.name, &other.name]);
    assert_eq!(names(&first(store, Some("a"), 9).await), [&early.name, &late.name]);
    assert!(first(store, None, 0).await.is_empty() && first(store, Some("nobody"), 9).await.is_empty());
    let [read] = first(store, Some("b"), 1).await.try_into().expect("one file");
    assert_eq!((read.name, &*read.owner, read.bytes, read.expires), (other.name, "b", 3, 20));
}

async fn a_file_that_is_told_again_is_the_same_one(store: Shared) {
    let (again, other) = (file("a", 5, 10), file("a", 5, 20));
    add(&*store.one, &[again.clone(), other.clone()]).await;
    let later = FileRecord { expires: 30, ..again.clone() };
    add(&*store.other, std::slice::from_ref(&later)).await;
    assert_eq!(taken(&*store.one, "a").await, [(2, 10), (2, 10)]);
    let all = first(&*store.one, None, 9).await;
    assert_eq!((names(&all), all[1].expires), (vec![&other.name, &later.name], 30));
    // It is gone, whatever expiry the one who removes it knows of.
    remove(&*store.one, std::slice::from_ref(&again)).await;
    assert_eq!(taken(&*store.other, "a").await, [(1, 5), (1, 5)]);
}

async fn files_that_are_removed_make_room(store: Shared) {
    let files = [file("a", 1, 1), file("a", 2, 2), file("b", 4, 3)];
    add(&*store.one, &files).await;
    let has = async |at: usize| store.other.has_file(&files[at].name).await.expect("a store");
    // One that nobody knows is removed already.
    remove(&*store.other, &[files[0].clone(), file("a", 9, 9), files[2].clone()]).await;
    assert_eq!([has(0).await, has(1).await, has(2).await], [false, true, false]);
    remove(&*store.one, &files).await;
    assert_eq!((has(1).await, taken(&*store.other, "a").await), (false, [(0, 0), (0, 0)]));
    assert!(!store.one.has_file(&FileName::random(Kind::Png)).await.expect("a store"));
}

async fn files_of_two_processes_at_once_are_all_there(store: Shared) {
    let files: Vec<_> = (0..40).map(|expires| file("a", 1, expires)).collect();
    let (some, others) = files.split_at(20);
    tokio::join!(add(&*store.one, some), add(&*store.other, others));
    assert_eq!(taken(&*store.one, "a").await, [(40, 40), (40, 40)]);
    // Both remove the same ones, in another order.
    let backwards: Vec<_> = files.iter().rev().cloned().collect();
    tokio::join!(remove(&*store.one, &files), remove(&*store.other, &backwards));
    assert!(first(&*store.one, None, 99).await.is_empty());
}
