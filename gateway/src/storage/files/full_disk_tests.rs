//! A disk that is full or read-only.

use std::path::Path;

use gatewright_store::FileKind;
use gatewright_test_stores::{make_read_only, may_mount, mount};

use super::*;
use crate::storage::files::tests::{in_folder, keep, keep_for, names, refusal, served};

#[test]
fn full_or_read_only_disk_is_an_error_and_leaves_no_partial_file() {
    let test =
        "storage::files::full_disk_tests::full_or_read_only_disk_is_an_error_and_leaves_no_partial_file";
    if may_mount(test) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(on_a_small_disk());
    }
}

async fn on_a_small_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("files");
    mount(&disk, "256k");
    let files = in_folder(folder.path(), 100 * 1024 * 1024);
    let saved = keep(&files, "key", &[1_000]).await.expect("room");
    keep_for(&files, "key", &[10], Duration::ZERO).await.expect("room");
    let before = names(folder.path());
    let nothing_else_stays = async || {
        while names(folder.path()) != before {
            tokio::task::yield_now().await;
        }
        assert_eq!(files.promised(), (0, 0));
    };

    is_full(keep(&files, "key", &[1_000, 300_000]).await.expect_err("a full disk"), folder.path());
    nothing_else_stays().await;
    let mut room = files.reserve(&"key".into(), KeyFileQuota::ALL, 0).await.expect("room");
    let mut file = room.write(FileKind::Mp4).await.expect("started");
    let piece = vec![7; 1024 * 1024];
    let mut written = Ok(());
    while written.is_ok() {
        written = file.put(&piece).await;
    }
    is_full(written.expect_err("a full disk"), folder.path());
    drop(file);
    drop(room);
    nothing_else_stays().await;
    // May take several attempts: the disk has room again only once a write in progress has ended, too.
    let more = loop {
        match keep(&files, "key", &[1_000]).await {
            Ok(saved) => break saved,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(served(&files, &more[0]).await, Ok(vec![7; 1_000]));

    make_read_only(&disk);
    let refused = keep(&files, "key", &[10]).await.expect_err("read-only");
    assert_eq!(refusal(refused), (503, Some(30)));
    assert_eq!(served(&files, &saved[0]).await, Ok(vec![7; 1_000]));
    // A file that can't be removed still takes up space.
    assert_eq!(files.remove_expired().await.expect("a store"), 0);
}

/// The client learns that the disk is full, but not where it is.
fn is_full(error: ApiError, folder: &Path) {
    let message = error.to_string();
    assert!(message.contains("disk") && !message.contains(folder.to_str().expect("text")), "{message}");
    assert_eq!(refusal(error), (503, Some(30)));
}
