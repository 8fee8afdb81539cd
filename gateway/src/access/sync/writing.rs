//! Writes usage into the store, including what earlier processes left in their journals.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gatewright_protocol::conversation::Usage;
use gatewright_store::{Batch, Rows, StoreError, UsageKey, UsageStore, WRITER_KNOWN_FOR, last_write};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::observe::Metrics;
use crate::usage::{Journal, Ledger, RecoveredJournal};

/// How long to wait until the journal is on the disk, which may hang.
const MAX_SYNC_TIME: Duration = Duration::from_secs(1);
/// Maximum age of a journal that is still written into the store: until shortly before the store forgets its writer.
const JOURNALED_FOR: Duration = WRITER_KNOWN_FOR.saturating_sub(Duration::from_hours(5 * 24));

/// See the module.
pub(crate) struct UsageWriter {
    ledger: Arc<Ledger>,
    store: Arc<dyn UsageStore + Send + Sync>,
    metrics: Arc<Metrics>,
    /// The last write also waits for rows in flight.
    waiting: Mutex<PendingUsage>,
}

/// What the store doesn't have yet, as far as is known.
struct PendingUsage {
    /// What earlier processes left in their journals.
    inherited: Vec<RecoveredJournal>,
    batch: Batch,
    /// The rows of the batch in flight. Nothing is added to them: the store may have them even if it did not
    /// confirm it.
    sending: Rows,
    /// Those of the next batch.
    next: Rows,
}

impl UsageWriter {
    /// `folder`: for journals, if usage is to survive a killed process.
    pub(crate) fn new(
        store: Arc<dyn UsageStore + Send + Sync>,
        metrics: Arc<Metrics>,
        folder: Option<&Path>,
    ) -> Self {
        let writer: Arc<str> = Uuid::new_v4().simple().to_string().into();
        let inherited = folder.map(|folder| Journal::inherited(folder, JOURNALED_FOR)).unwrap_or_default();
        let ledger = Ledger::new(folder.map(|folder| Journal::open(folder, &writer)));
        for one in &inherited {
            let requests = one.requests();
            tracing::info!(requests, "writing usage that a stopped gateway left behind to the store");
            ledger.inherit(requests);
        }
        let batch = Batch { writer, number: 0 };
        let waiting = PendingUsage { inherited, batch, sending: Rows::new(), next: Rows::new() };
        Self { ledger: Arc::new(ledger), store, metrics, waiting: Mutex::new(waiting) }
    }

    /// Where requests record their usage.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }

    /// Writes waiting usage. What the store does not accept waits again under the same number, so it counts once, whether
    /// or not it was added.
    pub(crate) async fn write(&self) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock().await;
        let waiting = &mut *waiting;
        self.gather(&mut waiting.next, waiting.sending.len(), self.ledger.take());
        // Done first, because the store may be slow, and the journal signals only once that it is filling up.
        self.make_room(waiting);
        let written = self.send(waiting).await;
        if written.is_err() {
            self.ledger.failed();
            self.make_room(waiting);
            self.sync_journal().await;
        }
        written
    }

    /// The last write: if nothing is waiting, there is no journal either. Errors: the store fails, or doesn't respond in time;
    /// the journal keeps the usage.
    pub(crate) async fn finish(&self) -> Result<(), StoreError> {
        if let Err(error) = last_write(self.write()).await {
            // A write that was cancelled has not done it.
            self.sync_journal().await;
            return Err(error);
        }
        if let Some(journal) = self.ledger.journal()
            && self.waiting.lock().await.next.is_empty()
        {
            journal.end();
        }
        Ok(())
    }

    async fn sync_journal(&self) {
        let ledger = Arc::clone(&self.ledger);
        let synced = tokio::task::spawn_blocking(move || ledger.journal().map(Journal::sync));
        _ = tokio::time::timeout(MAX_SYNC_TIME, synced).await;
    }

    async fn send(&self, waiting: &mut PendingUsage) -> Result<(), StoreError> {
        while let Some(one) = waiting.inherited.last() {
            for (number, rows) in &one.batches {
                let batch = Batch { writer: Arc::clone(&one.writer), number: *number };
                self.store.add_usage(&batch, rows).await?;
                self.ledger.stored(rows);
            }
            // Removed only now: if the process is killed before, the next one finds the journal unchanged.
            waiting.inherited.pop().into_iter().for_each(RecoveredJournal::taken);
        }
        if !waiting.sending.is_empty() {
            self.send_batch(waiting).await?;
        }
        if !waiting.next.is_empty() {
            let (number, fresh) = self.ledger.seal();
            self.gather(&mut waiting.next, waiting.sending.len(), fresh);
            waiting.batch.number = number;
            std::mem::swap(&mut waiting.sending, &mut waiting.next);
            self.send_batch(waiting).await?;
        }
        Ok(())
    }

    async fn send_batch(&self, waiting: &mut PendingUsage) -> Result<(), StoreError> {
        let PendingUsage { batch, sending, next, .. } = &mut *waiting;
        let mut adding = self.store.add_usage(batch, sending);
        loop {
            tokio::select! {
                biased;
                added = &mut adding => {
                    added?;
                    break;
                }
                // Many requests arrived while the store was slow.
                () = self.journal_fills() => self.journal_anew(batch.number, sending, next),
            }
        }
        drop(adding);
        self.ledger.stored(sending);
        sending.clear();
        self.journal_anew(batch.number, sending, next);
        Ok(())
    }

    /// Waits until the journal has little room for further requests.
    pub(super) async fn journal_fills(&self) {
        match self.ledger.journal() {
            Some(journal) => journal.fills().await,
            None => std::future::pending().await,
        }
    }

    /// Adds recorded usage to the next batch. `sending`: number of rows in flight before it.
    fn gather(&self, next: &mut Rows, sending: usize, fresh: Rows) {
        self.count(&fresh);
        self.ledger.queue(next, fresh, sending);
    }

    fn make_room(&self, waiting: &mut PendingUsage) {
        if self.ledger.journal().is_some_and(Journal::wants_sums) {
            self.journal_anew(waiting.batch.number, &waiting.sending, &mut waiting.next);
        }
    }

    /// Rewrites the journal with what the store doesn't have: the rows of the batch in flight, and the next ones.
    fn journal_anew(&self, number: u64, sending: &Rows, next: &mut Rows) {
        let Some(journal) = self.ledger.journal() else { return };
        journal.write_sums(move || {
            let (mark, fresh) = self.ledger.begin_part();
            self.gather(next, sending.len(), fresh);
            (mark.part, vec![(number, sending), (mark.batch, &*next)])
        });
    }

    /// Counts tokens in the metrics, outside of request handling.
    fn count(&self, rows: &Rows) {
        for (UsageKey { model, upstream, .. }, totals) in rows {
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

#[cfg(test)]
mod tests;
