use std::io::Write as _;
use std::sync::Mutex as Lock;

use gatewright_store::{Day, ResolvedUsageQuery, SpentByKey, SqlStore, StoreFuture, Totals, UsageRow};
use gatewright_test_stores::{may_mount, mount};
use tempfile::TempDir;

use super::*;

/// What a store does with a batch.
#[derive(Default, Clone, Copy, PartialEq)]
enum Does {
    #[default]
    Take,
    /// Accepts it, but the confirmation is lost.
    TakeSilently,
    Refuse,
    /// Accepts it, after a while.
    TakeLate,
}

struct Fickle {
    store: SqlStore,
    does: Lock<Does>,
}

impl Default for Fickle {
    fn default() -> Self {
        Self { store: SqlStore::in_memory(), does: Lock::default() }
    }
}

impl Fickle {
    fn set(&self, does: Does) {
        *self.does.lock().expect("a lock") = does;
    }

    /// The number of tokens it has counted.
    async fn counted(&self) -> u64 {
        self.store.spent(Day::of(0)).await.expect("a store").get("k").map_or(0, |(today, _)| today.tokens)
    }
}

impl UsageStore for Fickle {
    fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> StoreFuture<'s, ()> {
        let does = *self.does.lock().expect("a lock");
        Box::pin(async move {
            if does == Does::TakeLate {
                tokio::time::sleep(Duration::from_millis(400)).await;
            }
            if does != Does::Refuse {
                self.store.add_usage(batch, rows).await?;
            }
            if matches!(does, Does::Take | Does::TakeLate) {
                Ok(())
            } else {
                Err(StoreError::Failed("no answer".to_owned()))
            }
        })
    }

    fn usage<'s>(&'s self, query: &'s ResolvedUsageQuery) -> StoreFuture<'s, Vec<UsageRow>> {
        self.store.usage(query)
    }

    fn spent(&self, day: Day) -> StoreFuture<'_, SpentByKey> {
        self.store.spent(day)
    }
}

fn begin(store: &Arc<Fickle>, folder: Option<&TempDir>) -> UsageWriter {
    UsageWriter::new(Arc::clone(store) as _, Arc::default(), folder.map(TempDir::path))
}

fn spend(writer: &UsageWriter, input: u64) {
    let (key, model, upstream) = ("k".into(), "m".into(), "u".into());
    let place = UsageKey { day: Day::of(0), key, model, upstream };
    writer.ledger().add(&place, &Totals { requests: 1, input, ..Totals::default() });
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn files(folder: &TempDir) -> usize {
    std::fs::read_dir(folder.path()).expect("a folder").count()
}

#[tokio::test]
async fn unacknowledged_usage_write_counts_once() {
    let store = Arc::<Fickle>::default();
    let writer = begin(&store, None);
    store.set(Does::TakeSilently);
    for input in [1, 10] {
        spend(&writer, input);
        writer.write().await.expect_err("it did not acknowledge");
        // Later usage is not sent before the outcome of the first batch is known.
        assert_eq!(store.counted().await, 1);
    }
    store.set(Does::Take);
    writer.write().await.expect("a store");
    assert_eq!(store.counted().await, 11);
    spend(&writer, 100);
    store.set(Does::TakeSilently);
    writer.write().await.expect_err("it did not acknowledge");
    store.set(Does::Take);
    spend(&writer, 1_000);
    writer.write().await.expect("a store");
    assert_eq!(store.counted().await, 1_111);
    let states = writer.ledger().counters().states();
    assert_eq!(states, [("stored", 4.0), ("lost", 0.0), ("waiting", 0.0)]);
}

#[tokio::test]
async fn journal_does_not_overflow_while_the_store_is_slow() {
    const REQUESTS: u64 = 60_000;
    let (folder, store) = (folder(), Arc::<Fickle>::default());
    let writer = begin(&store, Some(&folder));
    store.set(Does::TakeLate);
    let coming = async {
        for count in 0..REQUESTS {
            spend(&writer, 1);
            if count % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
    };
    let writing = async {
        loop {
            writer.write().await.expect("a store");
            writer.journal_fills().await;
        }
    };
    tokio::select! {
        () = coming => {}
        () = writing => {}
    }
    let journal = writer.ledger().journal().expect("a journal");
    assert_eq!(journal.missed(), 0);
    drop(writer);
    // If a process is killed then, later usage is left to the next one.
    let next = begin(&store, Some(&folder));
    next.write().await.expect("a store");
    assert_eq!(store.counted().await, REQUESTS);
}

#[tokio::test]
async fn usage_of_a_killed_process_counts_once_after_any_write_outcome() {
    for last in [Does::Take, Does::TakeSilently, Does::Refuse] {
        let (folder, store) = (folder(), Arc::<Fickle>::default());
        let killed = begin(&store, Some(&folder));
        spend(&killed, 1);
        killed.write().await.expect("a store");
        spend(&killed, 10);
        store.set(last);
        _ = killed.write().await;
        spend(&killed, 100);
        _ = killed.write().await;
        spend(&killed, 1_000);
        drop(killed);

        store.set(Does::Take);
        let next = begin(&store, Some(&folder));
        spend(&next, 10_000);
        next.write().await.expect("a store");
        assert_eq!(store.counted().await, 11_111);
        let [stored, lost, waiting] = next.ledger().counters().states().map(|(_, requests)| requests);
        assert!(stored >= 2.0 && lost == 0.0 && waiting == 0.0, "{stored} {lost} {waiting}");
        next.finish().await.expect("a store");
        assert_eq!(files(&folder), 0);
    }
}

#[tokio::test]
async fn usage_survives_a_process_killed_during_takeover() {
    let (folder, store) = (folder(), Arc::<Fickle>::default());
    let mut writer = begin(&store, Some(&folder));
    for (input, does) in
        [(1, Does::Refuse), (10, Does::TakeSilently), (100, Does::Refuse), (1_000, Does::Take)]
    {
        store.set(does);
        spend(&writer, input);
        assert_eq!(writer.write().await.is_ok(), does == Does::Take);
        drop(writer);
        writer = begin(&store, Some(&folder));
    }
    writer.write().await.expect("a store");
    assert_eq!((store.counted().await, files(&folder)), (1_111, 1));
}

#[tokio::test]
async fn journal_is_bounded_during_a_long_store_outage() {
    // More than one half of a journal file can hold.
    const EACH: u64 = 10_000;
    let (folder, store) = (folder(), Arc::<Fickle>::default());
    let killed = begin(&store, Some(&folder));
    store.set(Does::Refuse);
    for _ in 0..5 {
        for _ in 0..EACH {
            spend(&killed, 1);
        }
        killed.write().await.expect_err("it is away");
    }
    assert_eq!(killed.ledger().journal().map(Journal::missed), Some(0));
    drop(killed);
    store.set(Does::Take);
    begin(&store, Some(&folder)).write().await.expect("a store");
    assert_eq!(store.counted().await, 5 * EACH);
}

/// The space for a journal is allocated when it is created.
#[test]
fn journal_accepts_usage_after_the_disk_fills_up() {
    let name = "access::sync::writing::tests::journal_accepts_usage_after_the_disk_fills_up";
    if may_mount(name) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(on_a_small_disk());
    }
}

async fn on_a_small_disk() {
    let (folder, store) = (folder(), Arc::<Fickle>::default());
    mount(folder.path(), "8m");
    let killed = begin(&store, Some(&folder));
    let ballast = folder.path().join("ballast");
    let mut filling = std::fs::File::create(&ballast).expect("a file");
    while filling.write_all(&[0; 4096]).is_ok() {}
    store.set(Does::Refuse);
    for _ in 0..1_000 {
        spend(&killed, 1);
    }
    killed.write().await.expect_err("it is away");
    assert_eq!(killed.ledger().journal().map(Journal::missed), Some(0));
    drop(killed);
    // The next process has the journal of the previous one, but not its own.
    let next = begin(&store, Some(&folder));
    spend(&next, 1);
    assert_eq!(next.ledger().journal().map(Journal::missed), Some(1));
    store.set(Does::Take);
    next.write().await.expect("a store");
    assert_eq!(store.counted().await, 1_001);
}
