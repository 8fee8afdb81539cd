//! Keeps memory and store in step: reads keys that change, and writes usage.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;
use uuid::Uuid;

use super::gatekeeper::Gatekeeper;
use super::hanging::BEAT;
use crate::conversation::Usage;
use crate::observe::Metrics;
use crate::store::{Batch, StoreError, UsageStore};
use crate::supervised::supervise;
use crate::usage::{Ledger, Place, Rows};

/// How often the keys are compared with the store and usage is written: a change is seen within a second, also where the store
/// tells nothing of it.
const PAUSE: Duration = Duration::from_millis(500);

/// How often the keys are read at most where the store tells of changes.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for the store to tell of a change.
const REST: Duration = PAUSE.saturating_sub(LEAST_PAUSE);

/// How often the spending of keys with budgets is compared with the store, where other processes write theirs. What one of them
/// spends counts here after this time and the pause between two writes.
const SPENDING_PAUSE: Duration = Duration::from_secs(1);

/// Starts the tasks. They end when the gatekeeper is gone. Needs a Tokio runtime.
pub(crate) fn start(gatekeeper: &Arc<Gatekeeper>, writer: &Arc<Writer>) {
    let alive = Arc::downgrade(gatekeeper);
    let (writer, living) = (Arc::clone(writer), Weak::clone(&alive));
    supervise("usage", PAUSE, move || write_usage(Arc::clone(&writer), Weak::clone(&living)));
    let beating = Weak::clone(&alive);
    supervise("hanging", PAUSE, move || beat(Weak::clone(&beating)));
    supervise("keys", PAUSE, move || follow_keys(Weak::clone(&alive)));
}

/// Writes usage into the store.
pub(crate) struct Writer {
    ledger: Arc<Ledger>,
    store: Arc<dyn UsageStore + Send + Sync>,
    metrics: Arc<Metrics>,
    /// Whoever writes last also waits for the rows that are on their way.
    waiting: Mutex<Waiting>,
}

/// What the store does not have yet, as far as is known.
struct Waiting {
    batch: Batch,
    /// The rows of the batch. Nothing is added to them: the store may have them though it did not say so.
    sending: Rows,
    /// Those of the next batch.
    next: Rows,
}

impl Writer {
    pub(crate) fn new(
        ledger: Arc<Ledger>,
        store: Arc<dyn UsageStore + Send + Sync>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let batch = Batch { writer: Uuid::new_v4().simple().to_string().into(), number: 0 };
        let waiting = Waiting { batch, sending: Rows::new(), next: Rows::new() };
        Self { ledger, store, metrics, waiting: Mutex::new(waiting) }
    }

    /// Writes the usage that waits. What the store does not take waits again, under the same number: whether or not it was
    /// added, it counts once.
    pub(crate) async fn write(&self) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock().await;
        let Waiting { batch, sending, next } = &mut *waiting;
        let fresh = self.ledger.take();
        self.count(&fresh);
        self.ledger.queue(next, fresh, sending.len());
        loop {
            if sending.is_empty() {
                if next.is_empty() {
                    return Ok(());
                }
                std::mem::swap(sending, next);
                batch.number += 1;
            }
            if let Err(error) = self.store.add_usage(batch, sending).await {
                self.ledger.failed();
                return Err(error);
            }
            self.ledger.stored(sending);
            sending.clear();
        }
    }

    /// Counts tokens in the metrics, off the way of requests.
    fn count(&self, rows: &Rows) {
        for (Place { model, upstream, .. }, totals) in rows {
            let usage = Usage {
                input: Some(totals.input),
                output: Some(totals.output),
                cached: Some(totals.cached),
                cache_write: Some(totals.cache_write),
                reasoning: Some(totals.reasoning),
            };
            self.metrics.tokens(model, upstream, &usage);
        }
    }
}

async fn write_usage(writer: Arc<Writer>, alive: Weak<Gatekeeper>) {
    let mut writing = Log::of("usage is not written; it waits in memory");
    let mut following = Log::of("what other gateways spend of budgets is not seen");
    let mut next = Instant::now();
    loop {
        // Asked first: what came before the end is still written.
        let last = alive.strong_count() == 0;
        let outcome = writer.write().await;
        writing.note(&outcome);
        if last {
            return;
        }
        // Right after its own was written, the sums of the store lack least.
        let begun = Instant::now();
        if outcome.is_ok()
            && begun >= next
            && let Some(gatekeeper) = alive.upgrade()
        {
            following.note(&gatekeeper.follow_spending().await);
            // A store with much usage is not kept busy by this.
            next = begun + SPENDING_PAUSE.max(begun.elapsed() * 20);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn beat(alive: Weak<Gatekeeper>) {
    while let Some(gatekeeper) = alive.upgrade() {
        gatekeeper.hanging().beat();
        drop(gatekeeper);
        tokio::time::sleep(BEAT).await;
    }
}

async fn follow_keys(alive: Weak<Gatekeeper>) {
    let mut log = Log::of("changes of keys are not seen; those in memory stay valid");
    while let Some(gatekeeper) = alive.upgrade() {
        let has_hung = gatekeeper.hanging().beat();
        let outcome = gatekeeper.refresh().await;
        if has_hung {
            gatekeeper.hanging().is_over();
        }
        log.note(&outcome);
        let store = Arc::clone(gatekeeper.store());
        drop(gatekeeper);
        // Many changes in a row are read together.
        tokio::time::sleep(LEAST_PAUSE).await;
        _ = tokio::time::timeout(REST, store.keys_changed()).await;
    }
}

/// Says when the store fails, and when it works again, once each.
struct Log {
    consequence: &'static str,
    failing: bool,
}

impl Log {
    fn of(consequence: &'static str) -> Self {
        Self { consequence, failing: false }
    }

    fn note(&mut self, outcome: &Result<(), StoreError>) {
        match outcome {
            Err(error) if !self.failing => tracing::warn!("{error}: {}", self.consequence),
            Ok(()) if self.failing => tracing::info!("the store works again"),
            _ => {}
        }
        self.failing = outcome.is_err();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::store::{MemoryStore, SpentByKey, Stored};
    use crate::usage::{Asked, Day, Totals, UsageRow};

    /// Adds usage, and says that it failed while it is told to.
    #[derive(Default)]
    struct Silent {
        store: MemoryStore,
        says_nothing: AtomicBool,
    }

    impl UsageStore for Silent {
        fn add_usage<'s>(&'s self, batch: &'s Batch, rows: &'s Rows) -> Stored<'s, ()> {
            Box::pin(async move {
                self.store.add_usage(batch, rows).await?;
                if self.says_nothing.load(Ordering::Relaxed) {
                    return Err(StoreError::Failed("no answer".to_owned()));
                }
                Ok(())
            })
        }

        fn usage<'s>(&'s self, asked: &'s Asked) -> Stored<'s, Vec<UsageRow>> {
            self.store.usage(asked)
        }

        fn spent(&self, day: Day) -> Stored<'_, SpentByKey> {
            self.store.spent(day)
        }
    }

    #[tokio::test]
    async fn usage_that_the_store_took_without_saying_so_counts_once() {
        let (ledger, store) = (Arc::<Ledger>::default(), Arc::<Silent>::default());
        let writer = Writer::new(Arc::clone(&ledger), Arc::clone(&store) as _, Arc::default());
        let spend = |input| {
            let (key, model, upstream) = ("k".into(), "m".into(), "u".into());
            let place = Place { day: Day::of(0), key, model, upstream };
            ledger.add(place, &Totals { requests: 1, input, ..Totals::default() });
        };
        let counted = async || store.spent(Day::of(0)).await.expect("a store")["k"].0.tokens;
        let silent = |is_so| store.says_nothing.store(is_so, Ordering::Relaxed);
        silent(true);
        for input in [1, 10] {
            spend(input);
            writer.write().await.expect_err("it said nothing");
            // What came meanwhile is not sent before it is known what became of the first.
            assert_eq!(counted().await, 1);
        }
        silent(false);
        writer.write().await.expect("a store");
        assert_eq!(counted().await, 11);
        spend(100);
        silent(true);
        writer.write().await.expect_err("it said nothing");
        silent(false);
        spend(1_000);
        writer.write().await.expect("a store");
        assert_eq!(counted().await, 1_111);
        assert_eq!(ledger.counters().states(), [("stored", 4.0), ("lost", 0.0), ("waiting", 0.0)]);
    }
}
