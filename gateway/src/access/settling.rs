//! Keeps memory and store in step: reads keys that change, and writes usage.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::gatekeeper::Gatekeeper;
use super::hanging::BEAT;
use crate::conversation::Usage;
use crate::observe::Metrics;
use crate::store::{Store, StoreError};
use crate::supervised::supervise;
use crate::usage::{Ledger, Place, Rows};

/// How often the keys are compared with the store and usage is written: a change is seen within a second, also where the store
/// tells nothing of it.
const PAUSE: Duration = Duration::from_millis(500);

/// How often the keys are read at most where the store tells of changes.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// How long to wait for the store to tell of a change.
const REST: Duration = PAUSE.saturating_sub(LEAST_PAUSE);

/// How often the spending of keys with budgets is compared with the store, where other processes write theirs.
const SPENDING_PAUSE: Duration = Duration::from_secs(5);

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
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    /// What the store does not have yet. Whoever writes last also waits for the rows that are on their way.
    waiting: Mutex<Rows>,
}

impl Writer {
    pub(crate) fn new(ledger: Arc<Ledger>, store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { ledger, store, metrics, waiting: Mutex::default() }
    }

    /// Writes the usage that waits. If the store does not take it, it waits again.
    pub(crate) async fn write(&self) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock().await;
        let fresh = self.ledger.take();
        self.count(&fresh);
        self.ledger.queue(&mut waiting, fresh);
        if waiting.is_empty() {
            return Ok(());
        }
        match self.store.add_usage(&waiting).await {
            Ok(()) => self.ledger.stored(&waiting),
            Err(error) => {
                self.ledger.failed();
                return Err(error);
            }
        }
        waiting.clear();
        Ok(())
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
    let mut log = Log::of("usage is not written; it waits in memory");
    loop {
        // Asked first: what came before the end is still written.
        let last = alive.strong_count() == 0;
        log.note(&writer.write().await);
        if last {
            return;
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
    let mut next = Instant::now() + SPENDING_PAUSE;
    while let Some(gatekeeper) = alive.upgrade() {
        let has_hung = gatekeeper.hanging().beat();
        let mut outcome = gatekeeper.refresh().await;
        if has_hung {
            gatekeeper.hanging().is_over();
        }
        let begun = Instant::now();
        if outcome.is_ok() && begun >= next {
            outcome = gatekeeper.follow_spending().await;
            // A store with much usage is not kept busy by this.
            next = begun + SPENDING_PAUSE.max(begun.elapsed() * 20);
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
