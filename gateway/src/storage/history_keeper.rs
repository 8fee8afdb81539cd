//! Stored responses that survive the process: a client continues its conversation after a restart or on another gateway of
//! the store, and no key can access another key's responses. A response is written before its end is reported. Lookups ask
//! the store, since a response may have been created, replaced or deleted elsewhere. While the store is away, this process
//! uses what it knows; answers are sent, and written when the store is back. Until then they are in the spool, if there is
//! one (`spooling.rs`).

mod copies;
mod spooling;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use gatewright_store::{
    COPIES_KEPT_FOR, CopyChange, DurableStore, LocationChange, MAX_PLACES, Sealer, Spool, StoreError,
    StoreHealth, StoredCopy, last_write,
};
use gatewright_system::clock::{millis, unix_millis};
use gatewright_system::supervise;
use tokio::sync::{Mutex, Notify, Semaphore, watch};
use tokio::time::{Instant, timeout};

use self::spooling::{RecoveredChanges, Spooling};
use super::history::{CopyLookup, CopyNote, History, is_id};

/// Maximum interval between writes, even if no request waits for them.
const PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of concurrent lookups in the store. Further ones wait.
const MAX_LOOK_UPS: usize = 4;
/// How many times a lookup is retried if the response changes here in the meantime.
const TRIES: u32 = 3;
/// Maximum size of copies written at once, in bytes.
const BATCH: usize = 8 * 1024 * 1024;
/// How often old copies are removed, and after how many bytes at the latest.
const SWEEPING: Duration = Duration::from_mins(1);
const SWEEPING_BYTES: usize = 16 * 1024 * 1024;
/// How long an answer waits for the spool, whose disk may hang.
const MAX_SAVING_TIME: Duration = Duration::from_secs(2);

/// Keeps the history and the store in sync.
pub(crate) struct HistoryKeeper {
    history: Arc<History>,
    store: Arc<dyn DurableStore>,
    sealer: Arc<Sealer>,
    /// The share of the space for copies that one API key may take, in percent.
    part: Box<dyn Fn() -> u8 + Send + Sync>,
    /// Changes that the store doesn't have yet.
    waiting: Mutex<PendingChanges>,
    /// Signals that a request waits for them to be written.
    wake: Notify,
    /// Number of changes written.
    written: watch::Sender<u64>,
    look_ups: Semaphore,
    health: StoreHealth,
    /// None: waiting changes are only in memory.
    spooling: Option<Spooling>,
}

#[derive(Default)]
struct PendingChanges {
    /// What earlier processes left behind.
    left: VecDeque<RecoveredChanges>,
    places: Vec<LocationChange>,
    notes: VecDeque<CopyNote>,
    copies: Vec<CopyChange>,
    /// Bytes of copies written since old ones were last removed.
    unswept: usize,
}

/// Marks a response whose content is stored: its end is not reported before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PendingStore;

/// The store does not answer in time which responses it has.
#[derive(Debug)]
pub(crate) struct StoreUnavailable;

impl HistoryKeeper {
    fn new(
        history: Arc<History>,
        store: Arc<dyn DurableStore>,
        sealer: Sealer,
        part: impl Fn() -> u8 + Send + Sync + 'static,
        spool: Option<Arc<Spool>>,
    ) -> Self {
        let spooling = spool.map(Spooling::new);
        let left = spooling.as_ref().map(Spooling::left).unwrap_or_default();
        if spooling.is_some() {
            history.spool(left.iter().map(RecoveredChanges::changes).sum());
        }
        let health = StoreHealth::new(
            &store,
            "stored responses of other gateways are not seen, and those of this gateway are not written yet",
        );
        Self {
            history,
            store,
            sealer: Arc::new(sealer),
            part: Box::new(part),
            waiting: Mutex::new(PendingChanges { left, ..PendingChanges::default() }),
            wake: Notify::new(),
            written: watch::Sender::new(0),
            look_ups: Semaphore::new(MAX_LOOK_UPS),
            health,
            spooling,
        }
    }

    /// Starts a task that loads what was stored and writes changes, until the keeper is dropped. `part`: the share of the
    /// space for copies that one API key may take, in percent. `spool`: where changes waiting for the store survive the
    /// process. Needs a Tokio runtime.
    pub(crate) fn start(
        history: Arc<History>,
        store: Arc<dyn DurableStore>,
        sealer: Sealer,
        part: impl Fn() -> u8 + Send + Sync + 'static,
        spool: Option<Arc<Spool>>,
    ) -> Arc<Self> {
        let keeper = Arc::new(Self::new(history, store, sealer, part, spool));
        if keeper.history.lasts() {
            let weak = Arc::downgrade(&keeper);
            supervise("stored responses", PAUSE, move || follow(Weak::clone(&weak)));
        }
        keeper
    }

    /// Number of changes that the store doesn't have yet: copies, places and removals. Does not wait for store
    /// operations.
    pub(crate) fn unwritten(&self) -> u64 {
        self.history.changed().saturating_sub(*self.written.borrow())
    }

    /// Waits until the store has all changes made so far. False if it doesn't accept them in time: then they are
    /// spooled.
    pub(crate) async fn written(self: &Arc<Self>) -> bool {
        if !self.history.lasts() {
            return true;
        }
        let (changed, mut written) = (self.history.changed(), self.written.subscribe());
        if *written.borrow() >= changed {
            return true;
        }
        self.wake.notify_one();
        let gone = |_| StoreError::Failed("the gateway is stopping".to_owned());
        let writing = async { written.wait_for(|count| *count >= changed).await.map(drop).map_err(gone) };
        if self.health.ask(writing).await.is_some() {
            return true;
        }
        if self.spooling.is_some() {
            let keeper = Arc::clone(self);
            // Continues even if the client disconnects.
            _ = timeout(MAX_SAVING_TIME, tokio::spawn(async move { keeper.save().await })).await;
        }
        false
    }

    /// Learns what the store knows of an API key's response. Errors: the store doesn't answer, and nothing is known
    /// here.
    pub(crate) async fn seek(self: &Arc<Self>, owner: &str, id: &str) -> Result<(), StoreUnavailable> {
        if !self.history.lasts() || !is_id(id) {
            return Ok(());
        }
        // Write own changes first, so that a response deleted here is not found again.
        for _ in 0..TRIES {
            if !self.written().await {
                break;
            }
            match self.look_up(owner, id).await {
                Some(true) => return Ok(()),
                // It changed here in the meantime.
                Some(false) => {}
                None => break,
            }
        }
        if self.history.get(owner, id).is_some() { Ok(()) } else { Err(StoreUnavailable) }
    }

    /// False: the response changed here in the meantime. None: the store doesn't answer in time, or too many
    /// requests are waiting for it.
    async fn look_up(&self, owner: &str, id: &str) -> Option<bool> {
        let _place = self.health.place(&self.look_ups).await?;
        self.health.ask(self.learn(owner, id)).await
    }

    async fn learn(&self, owner: &str, id: &str) -> Result<bool, StoreError> {
        let before = self.history.glance(owner, id);
        let place = self.store.place(owner, id).await?;
        let found = match self.store.copy(owner, id, before.stamp).await? {
            StoredCopy::None => CopyLookup::None,
            StoredCopy::Same => CopyLookup::Same,
            StoredCopy::Other { stamp, content } => {
                let documents = copies::open(&self.sealer, owner, id, content).await;
                if documents.is_none() {
                    tracing::error!(id, "the copy of a stored response cannot be read");
                }
                documents.map_or(CopyLookup::None, |documents| CopyLookup::Other { stamp, documents })
            }
        };
        Ok(self.history.learn(owner, id, before, place.map(|place| place.holder), found))
    }

    /// Loads what was stored, if that has not been done, and writes waiting changes. Errors: the store fails; the changes
    /// keep waiting, also in the
    /// spool.
    pub(crate) async fn settle(&self) -> Result<(), StoreError> {
        self.spooled_unless(self.settle_with_store()).await
    }

    /// Writes waiting changes for the last time. Errors: the store fails, or doesn't respond in time; the changes are in the
    /// spool, if it works.
    pub(crate) async fn finish(&self) -> Result<(), StoreError> {
        self.spooled_unless(last_write(self.settle_with_store())).await
    }

    async fn spooled_unless(
        &self,
        settling: impl Future<Output = Result<(), StoreError>>,
    ) -> Result<(), StoreError> {
        let settled = settling.await;
        if settled.is_err() {
            self.save().await;
        }
        settled
    }

    async fn settle_with_store(&self) -> Result<(), StoreError> {
        let mut waiting = self.waiting.lock().await;
        // These are older than everything here.
        self.hand_over(&mut waiting.left).await?;
        if !self.history.is_complete() {
            self.history.recall(self.store.places().await?);
        }
        // While the store is away, the history itself bounds the waiting changes.
        let changes = if waiting.notes.len() < MAX_PLACES { Some(self.history.take_changes()) } else { None };
        let count = changes.as_ref().map(|changes| changes.count);
        if let Some(changes) = changes {
            waiting.places.extend(changes.places);
            waiting.notes.extend(changes.copies);
        }
        // The newest matter most.
        let excess = waiting.places.len().saturating_sub(MAX_PLACES);
        waiting.places.drain(..excess);
        self.write(&mut waiting).await?;
        drop(waiting);
        if let Some(count) = count {
            self.written.send_replace(count);
            self.history.stored(count);
            if let Some(spooling) = &self.spooling {
                spooling.stored(count).await;
            }
        }
        Ok(())
    }

    /// Copies are written first: a lookup of a copy can't use a place.
    async fn write(&self, waiting: &mut PendingChanges) -> Result<(), StoreError> {
        loop {
            let mut bytes = waiting.copies.iter().map(copies::size).sum::<usize>();
            while bytes < BATCH
                && let Some(note) = waiting.notes.front().cloned()
            {
                let freed = copies::memory_of(&note);
                let change = copies::sealed(&self.sealer, note).await;
                bytes += copies::size(&change);
                waiting.copies.push(change);
                waiting.notes.pop_front();
                self.history.written(freed);
            }
            if waiting.copies.is_empty() {
                break;
            }
            self.store.change_copies(&waiting.copies).await?;
            waiting.unswept += bytes;
            waiting.copies.clear();
        }
        if !waiting.places.is_empty() {
            self.store.change_places(&waiting.places).await?;
            waiting.places.clear();
        }
        Ok(())
    }

    /// Removes old copies, and the oldest ones beyond the limit.
    async fn sweep(&self) -> Result<(), StoreError> {
        self.waiting.lock().await.unswept = 0;
        let kept_before = unix_millis().saturating_sub(millis(COPIES_KEPT_FOR));
        self.store.forget_copies(kept_before, (self.part)()).await
    }
}

async fn follow(keeper: Weak<HistoryKeeper>) {
    let mut failing = false;
    let mut sweep = Instant::now() + SWEEPING.mul_f64(rand::random_range(0.0..1.0));
    while let Some(keeper) = keeper.upgrade() {
        let settled = keeper.settle().await;
        match &settled {
            Err(error) if !failing => tracing::warn!("{error}: stored responses are not written yet"),
            Ok(()) if failing => tracing::info!("stored responses are written again"),
            _ => {}
        }
        failing = settled.is_err();
        let unswept = keeper.waiting.lock().await.unswept;
        if !failing && (Instant::now() >= sweep || unswept >= SWEEPING_BYTES) {
            if let Err(error) = keeper.sweep().await {
                tracing::warn!("{error}: old stored responses are not removed");
            }
            sweep = Instant::now() + SWEEPING.mul_f64(rand::random_range(0.8..1.0));
        }
        if failing {
            drop(keeper);
            tokio::time::sleep(PAUSE).await;
        } else {
            _ = tokio::time::timeout(PAUSE, keeper.wake.notified()).await;
        }
    }
}
