//! A disk that is full or read-only. It is a small one of its own: the test runs once more, in a namespace where it may
//! mount one.

use std::path::Path;
use std::process::Command;

use super::*;
use crate::store::Kind;
use crate::store::files::tests::{in_folder, keep, keep_for, names, refusal, served};

const INSIDE: &str = "GATEWRIGHT_TEST_MAY_MOUNT";

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().expect("a program");
    assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn a_full_or_read_only_disk_is_told_and_nothing_of_a_file_stays() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        return runtime.expect("a runtime").block_on(on_a_small_disk());
    }
    let program = std::env::current_exe().expect("this program");
    let test = "store::files::full_disk_tests::a_full_or_read_only_disk_is_told_and_nothing_of_a_file_stays";
    let done = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "--"])
        .arg(program)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("unshare, of util-linux");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

async fn on_a_small_disk() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = folder.path().join("files");
    std::fs::create_dir(&disk).expect("a folder");
    let place = disk.to_str().expect("text");
    run("mount", &["-t", "tmpfs", "-o", "size=256k", "tmpfs", place]);
    let files = in_folder(folder.path(), 100 * 1024 * 1024);
    let kept = keep(&files, "key", &[1_000]).await.expect("room");
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
    let mut room = files.reserve(&"key".into(), 100, 0).await.expect("room");
    let mut file = room.write(Kind::Mp4).await.expect("begun");
    let piece = vec![7; 1024 * 1024];
    let mut written = Ok(());
    while written.is_ok() {
        written = file.put(&piece).await;
    }
    is_full(written.expect_err("a full disk"), folder.path());
    drop(file);
    drop(room);
    nothing_else_stays().await;
    // It was not the last word: the disk has room again once a write that was under way has ended, too.
    let more = loop {
        match keep(&files, "key", &[1_000]).await {
            Ok(kept) => break kept,
            Err(_) => tokio::task::yield_now().await,
        }
    };
    assert_eq!(served(&files, &more[0]).await, Ok(vec![7; 1_000]));

    run("mount", &["-o", "remount,ro", place]);
    let refused = keep(&files, "key", &[10]).await.expect_err("read-only");
    assert_eq!(refusal(refused), (503, Some(30)));
    assert_eq!(served(&files, &kept[0]).await, Ok(vec![7; 1_000]));
    // What cannot be removed goes on taking its room.
    assert_eq!(files.remove_expired().await.expect("a store"), 0);
}

/// The client learns that the disk is full, and nothing of where it is.
fn is_full(error: ApiError, folder: &Path) {
    let message = error.to_string();
    assert!(message.contains("disk") && !message.contains(folder.to_str().expect("text")), "{message}");
    assert_eq!(refusal(error), (503, Some(30)));
}
