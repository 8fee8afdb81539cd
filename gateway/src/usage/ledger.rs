//! Usage that isn't in the store yet.
//!
//! Requests with the same key, model, upstream and day are added up here. So an outage of hours takes no more memory than one of
//! a second, and nothing is lost. If there is a [`Journal`], the same usage is there, too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gatewright_store::{Rows, Totals, UsageKey};

use super::Journal;
use super::journal::UsageGroup;

/// Maximum number of rows waiting for the store. Usage beyond that is lost, and counted as lost.
const MAX_ROWS: usize = 100_000;

/// The ledger's metrics.
#[derive(Debug, Default)]
pub(crate) struct LedgerCounters {
    /// Requests recorded since the start.
    recorded: AtomicU64,
    /// Requests that the store has.
    stored: AtomicU64,
    /// Requests that were lost because too many rows were waiting.
    lost: AtomicU64,
    /// Requests recorded since the start whose cost is unknown.
    unpriced: AtomicU64,
    /// Failed writes.
    failures: AtomicU64,
}

impl LedgerCounters {
    /// Number of requests by the state of their usage, since the start.
    pub(crate) fn states(&self) -> [(&'static str, f64); 3] {
        // Read `recorded` last: it is never less than the others.
        let (stored, lost) = (read(&self.stored), read(&self.lost));
        [("stored", stored), ("lost", lost), ("waiting", (read(&self.recorded) - stored - lost).max(0.0))]
    }

    /// Requests since the start whose cost is unknown.
    pub(crate) fn unpriced(&self) -> u64 {
        self.unpriced.load(Ordering::Relaxed)
    }

    /// Failed attempts to write usage.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

#[expect(clippy::cast_precision_loss, reason = "as metrics are")]
fn read(counter: &AtomicU64) -> f64 {
    counter.load(Ordering::Relaxed) as f64
}

/// Usage that has not been sent to the store yet. The lock is held only for an addition, never while the store works or a
/// file is written.
#[derive(Debug)]
pub(crate) struct Ledger {
    fresh: Mutex<UnstoredUsage>,
    journal: Option<Journal>,
    counters: LedgerCounters,
}

#[derive(Debug)]
struct UnstoredUsage {
    rows: Rows,
    mark: UsageGroup,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Ledger {
    /// `journal`: holds the usage until the store has it.
    pub(crate) fn new(journal: Option<Journal>) -> Self {
        let fresh = UnstoredUsage { rows: Rows::new(), mark: UsageGroup { batch: 1, part: 1 } };
        Self { fresh: Mutex::new(fresh), journal, counters: LedgerCounters::default() }
    }

    /// Records what a request consumed.
    pub(crate) fn add(&self, place: &UsageKey, totals: &Totals) {
        self.counters.recorded.fetch_add(totals.requests, Ordering::Relaxed);
        self.counters.unpriced.fetch_add(totals.unpriced, Ordering::Relaxed);
        let (is_entered, mark) = {
            let mut fresh = self.lock();
            (self.enter(&mut fresh.rows, place, totals, MAX_ROWS), fresh.mark)
        };
        // A client could fill the journal with requests that fail: those alone are in its next sums.
        if let Some(journal) = self.journal.as_ref().filter(|_| is_entered && totals.requests > 0) {
            journal.add(mark, place, totals);
        }
    }

    pub(crate) fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Takes what has been recorded since the last call.
    pub(crate) fn take(&self) -> Rows {
        std::mem::take(&mut self.lock().rows)
    }

    /// The same, and completes the batch: later records belong to the next one. Returns its number.
    pub(crate) fn seal(&self) -> (u64, Rows) {
        let mut fresh = self.lock();
        let number = fresh.mark.batch;
        fresh.mark.batch += 1;
        (number, std::mem::take(&mut fresh.rows))
    }

    /// Takes the same, and starts a new part. Returns the mark of later records.
    pub(crate) fn begin_part(&self) -> (UsageGroup, Rows) {
        let mut fresh = self.lock();
        fresh.mark.part += 1;
        (fresh.mark, std::mem::take(&mut fresh.rows))
    }

    /// Counts requests that another process recorded and that wait for the store here.
    pub(crate) fn inherit(&self, requests: u64) {
        self.counters.recorded.fetch_add(requests, Ordering::Relaxed);
    }

    /// Adds rows to those waiting for the store. `sent`: how many others are on their way to it.
    pub(crate) fn queue(&self, waiting: &mut Rows, fresh: Rows, sent: usize) {
        for (place, totals) in fresh {
            self.enter(waiting, &place, &totals, MAX_ROWS.saturating_sub(sent));
        }
    }

    /// Counts these as stored.
    pub(crate) fn stored(&self, rows: &Rows) {
        let requests = rows.values().map(|totals| totals.requests).sum();
        self.counters.stored.fetch_add(requests, Ordering::Relaxed);
    }

    /// Counts a failed write.
    pub(crate) fn failed(&self) {
        self.counters.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn counters(&self) -> &LedgerCounters {
        &self.counters
    }

    /// Adds a row. False: too many rows are waiting.
    fn enter(&self, rows: &mut Rows, place: &UsageKey, totals: &Totals, most: usize) -> bool {
        if let Some(row) = rows.get_mut(place) {
            row.add(totals);
            return true;
        }
        let has_room = rows.len() < most;
        if has_room {
            rows.insert(place.clone(), *totals);
        } else {
            self.counters.lost.fetch_add(totals.requests, Ordering::Relaxed);
        }
        has_room
    }

    fn lock(&self) -> MutexGuard<'_, UnstoredUsage> {
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use gatewright_store::Day;

    use super::*;

    fn place(model: &str) -> UsageKey {
        UsageKey { day: Day::of(0), key: "k".into(), model: model.into(), upstream: "u".into() }
    }

    const ONE: Totals = Totals {
        requests: 1,
        complete: 0,
        estimated: 0,
        input: 5,
        cached: 0,
        cache_write: 0,
        output: 2,
        reasoning: 0,
        cost: 1,
        unpriced: 0,
        failed: 0,
        timed: 1,
        first_byte_ms: 3,
        latency_ms: 4,
    };

    #[test]
    fn requests_accumulate_while_the_store_is_away() {
        let ledger = Ledger::default();
        let mut waiting = Rows::new();
        ledger.add(&place("a"), &ONE);
        ledger.queue(&mut waiting, ledger.take(), 0);
        ledger.failed();
        ledger.add(&place("a"), &ONE);
        ledger.add(&place("b"), &ONE);
        assert_eq!(ledger.counters().states(), [("stored", 0.0), ("lost", 0.0), ("waiting", 3.0)]);
        ledger.queue(&mut waiting, ledger.take(), 0);
        let two = Totals { requests: 2, input: 10, output: 4, cost: 2, ..ONE };
        assert_eq!(waiting[&place("a")], Totals { timed: 2, first_byte_ms: 6, latency_ms: 8, ..two });
        assert_eq!(waiting[&place("b")], ONE);
        ledger.stored(&waiting);
        assert_eq!(ledger.counters().states(), [("stored", 3.0), ("lost", 0.0), ("waiting", 0.0)]);
        assert!(ledger.counters().failures() > 0);
    }

    #[test]
    fn waiting_rows_are_bounded_and_losses_counted() {
        let ledger = Ledger::default();
        for number in 0..=MAX_ROWS {
            ledger.add(&place(&number.to_string()), &ONE);
        }
        // A row that is already waiting still counts.
        ledger.add(&place("0"), &ONE);
        assert_eq!(ledger.counters().states()[1], ("lost", 1.0));
        let rows = ledger.take();
        assert_eq!((rows.len(), rows[&place("0")].requests), (MAX_ROWS, 2));
        // Those on their way to the store are waiting, too.
        let mut waiting = Rows::new();
        ledger.queue(&mut waiting, rows, MAX_ROWS - 1);
        assert_eq!(waiting.len(), 1);
    }
}
