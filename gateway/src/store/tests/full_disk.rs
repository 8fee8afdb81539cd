//! A disk that is full, and has room again.

use crate::store::SqlStore;
use crate::store::durable::{Batch, UsageStore as _};
use crate::store::small_disk::{may_mount, mount};
use crate::usage::{Day, Place, Rows, Totals};

/// More than there are connections.
const OFTEN: u64 = 40;

#[test]
fn a_store_works_again_when_its_disk_has_room_again() {
    if may_mount("store::tests::full_disk::a_store_works_again_when_its_disk_has_room_again") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(on_a_small_disk());
    }
}

fn rows(count: u64) -> Rows {
    let place = |number: u64| Place {
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
    // As far as there is room.
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
