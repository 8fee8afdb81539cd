//! Counters that several gateways share, on a Redis or Valkey server: each key's requests and tokens per minute, concurrent
//! requests, and budget spending. A request asks once and waits a bounded time; the server decides in one step, by its own
//! clock. While the server is away, each gateway counts for itself, and when it is back, it adopts at least what each
//! gateway has counted.

mod link;
mod pending;
mod scripts;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gatewright_config::{CounterServer, InvalidCountersUrl};
use gatewright_store::{KeyLimits, Spent, SpentSoFar};
use gatewright_system::{random_bytes, supervise};
use redis::aio::MultiplexedConnection;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::task::AbortOnDropHandle;

use self::link::{Link, explained};
use self::pending::{KeyBatch, MAX_REPORTED, PendingUpdates, UsageDelta};
pub(crate) use self::scripts::{KeySnapshot, LimitVerdict};
use self::scripts::{ScriptReply, Scripts};

/// Pause between two reports: whatever accumulates in between is reported together.
const PAUSE: Duration = Duration::from_millis(10);
/// Time limit of a report. No request waits for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many keys are reported concurrently.
const AT_ONCE: usize = 64;

/// The counters; they stop when this is dropped.
pub(crate) struct SharedCounters {
    shared: Arc<CountersInner>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

struct CountersInner {
    link: Arc<Link>,
    scripts: Scripts,
    timeout: Duration,
    lease: Duration,
    /// Distinguishes this gateway's slots from those of others.
    node: String,
    next: AtomicU64,
    waiting: Mutex<PendingUpdates>,
    something: Notify,
    local: AtomicU64,
}

impl SharedCounters {
    /// Connects in the background. Needs a Tokio runtime. Errors: the address can't be used.
    pub(crate) fn start(server: &CounterServer) -> Result<Self, InvalidCountersUrl> {
        let link = Arc::new(Link::new(&server.url, server.timeout)?);
        let node = u64::from_le_bytes(*random_bytes().first_chunk().expect("32 bytes"));
        let shared = Arc::new(CountersInner {
            link: Arc::clone(&link),
            scripts: Scripts::default(),
            timeout: server.timeout,
            lease: server.lease,
            node: format!("{node:x}"),
            next: AtomicU64::new(0),
            waiting: Mutex::default(),
            something: Notify::new(),
            local: AtomicU64::new(0),
        });
        let teller = Arc::clone(&shared);
        let tasks = [
            supervise("connection to the counters", PATIENCE, move || link::keep(Arc::clone(&link))),
            supervise("counters", PATIENCE, move || report_pending(Arc::clone(&teller))),
        ];
        Ok(Self { shared, _tasks: tasks.map(AbortOnDropHandle::new) })
    }

    /// Decides on a key's request. `None`: the server is away, or doesn't answer in time.
    pub(crate) async fn ask(
        &self,
        key: &Arc<str>,
        limits: &KeyLimits,
        seen: KeySnapshot,
        place: Option<&ConcurrencySlot>,
    ) -> Option<ScriptReply> {
        let shared = &*self.shared;
        let answer = shared.ask(key, limits, seen, place.map(|place| place.number)).await;
        if answer.is_none() {
            shared.local.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    /// A slot among a key's concurrent requests, which has not been granted yet.
    pub(crate) fn place(&self, key: &Arc<str>) -> ConcurrencySlot {
        let number = self.shared.next.fetch_add(1, Ordering::Relaxed);
        ConcurrencySlot { shared: Arc::clone(&self.shared), key: Arc::clone(key), number, is_refused: false }
    }

    /// Counts what a key's request consumed. `so_far`: the total spent, including it.
    pub(crate) fn add(&self, key: &Arc<str>, limits: &KeyLimits, spent: Spent, so_far: SpentSoFar) {
        // Without a server, the gateway's own counters have it, and it is reported once the server is back.
        let is_reported = limits.tokens_per_minute.is_some() || limits.have_budget();
        if !is_reported || !self.is_present() || spent == Spent::default() {
            return;
        }
        let mut waiting = self.shared.waiting();
        if let Some(limit) = limits.tokens_per_minute {
            waiting.add_tokens(key, limit, spent.tokens);
        }
        if limits.have_budget() {
            waiting.add_spent(key, spent, so_far);
        }
        drop(waiting);
        self.shared.something.notify_one();
    }

    /// Whether the server answers.
    pub(crate) fn is_present(&self) -> bool {
        self.shared.link.get().is_some()
    }

    /// How many times the server was lost. Usage counted without it must be reported.
    pub(crate) fn losses(&self) -> u64 {
        self.shared.link.losses()
    }

    /// How many requests were decided without the server.
    pub(crate) fn judged_locally(&self) -> u64 {
        self.shared.local.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for SharedCounters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("SharedCounters")
            .field("is_present", &self.is_present())
            .finish_non_exhaustive()
    }
}

impl CountersInner {
    fn waiting(&self) -> MutexGuard<'_, PendingUpdates> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(
        &self,
        key: &Arc<str>,
        limits: &KeyLimits,
        seen: KeySnapshot,
        place: Option<u64>,
    ) -> Option<ScriptReply> {
        let connection = self.link.get()?;
        // Reported first: a client that sends its next request when its answer has ended finds its slot free.
        let (news, freed) = self.waiting().take(key);
        let (place, free) = (place.map(|place| self.name(place)), self.names(freed.places()));
        let script_call = self.scripts.judge(key, limits, seen, &news, place.as_deref(), self.lease, &free);
        let answer = self.within(self.timeout, &connection, script_call.call(&connection)).await?;
        if !freed.is_empty() {
            self.waiting().forget_freed(key, &freed);
        }
        Some(answer)
    }

    /// Waits for the server, and drops the connection if it fails or takes too long.
    async fn within<T>(
        &self,
        time: Duration,
        connection: &Arc<MultiplexedConnection>,
        call: impl Future<Output = redis::RedisResult<T>>,
    ) -> Option<T> {
        match timeout(time, call).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.link.lose(connection, &explained(&error));
                None
            }
            Err(_) => {
                self.link.lose(connection, "it did not respond in time");
                None
            }
        }
    }

    /// The server's name for a slot.
    fn name(&self, place: u64) -> String {
        format!("{}-{place:x}", self.node)
    }

    fn names(&self, places: impl IntoIterator<Item = u64>) -> Vec<String> {
        places.into_iter().map(|place| self.name(place)).collect()
    }

    /// Reports everything that is waiting. `renew`: also reports which slots are still held.
    async fn report_pending(&self, renew: bool) {
        let Some(connection) = self.link.get() else { return };
        let batches = self.waiting().batches();
        for some in batches.chunks(AT_ONCE) {
            let calls = some.iter().map(|batch| self.report_batch(batch, &connection));
            let reported = futures_util::future::join_all(calls).await;
            if reported.contains(&false) {
                return;
            }
        }
        let holding = if renew { self.waiting().holding() } else { Vec::new() };
        for some in holding.chunks(AT_ONCE) {
            let renewed = some.iter().map(|key| self.renew(key, &connection));
            if futures_util::future::join_all(renewed).await.contains(&false) {
                return;
            }
        }
    }

    /// Renews the slots that a key holds right now. Returns whether the server has been updated.
    async fn renew(&self, key: &Arc<str>, connection: &Arc<MultiplexedConnection>) -> bool {
        let mut first = 0;
        loop {
            let taken = self.waiting().renew(key, first);
            let Some(last) = taken.last() else { return true };
            first = last + 1;
            // Slots taken in the meantime have a full lease.
            let is_last = taken.len() < MAX_REPORTED;
            let settled =
                self.scripts.settle(key, &UsageDelta::default(), self.lease, &[], &self.names(taken));
            let settled = self.within(PATIENCE, connection, settled.call(connection)).await;
            self.waiting().renewed(key);
            if settled.is_none() || is_last {
                return settled.is_some();
            }
        }
    }

    /// Returns whether the server has been updated.
    async fn report_batch(&self, batch: &KeyBatch, connection: &Arc<MultiplexedConnection>) -> bool {
        let KeyBatch { key, news, freed } = batch;
        let free = self.names(freed.places());
        let settled = self.scripts.settle(key, news, self.lease, &free, &[]);
        let settled = self.within(PATIENCE, connection, settled.call(connection)).await;
        if settled.is_some() {
            self.waiting().forget_freed(key, freed);
        }
        settled.is_some()
    }
}

/// Reports tokens and slots to the server as they come; and slots still held, before their lease ends and when the server is
/// back, since it may have lost everything.
async fn report_pending(shared: Arc<CountersInner>) {
    let pause = shared.lease / 3;
    let mut renewal = Instant::now() + pause;
    loop {
        let renew = tokio::select! {
            // Under load, there is always something to report.
            biased;
            () = shared.link.is_back() => true,
            () = sleep_until(renewal) => true,
            () = shared.something.notified() => false,
        };
        if renew {
            renewal = Instant::now() + pause;
        }
        shared.report_pending(renew).await;
        tokio::time::sleep(PAUSE).await;
    }
}

/// A slot among the concurrent requests of its key, on the server, until it is dropped.
pub(crate) struct ConcurrencySlot {
    shared: Arc<CountersInner>,
    key: Arc<str>,
    number: u64,
    is_refused: bool,
}

impl ConcurrencySlot {
    /// The request proceeds: from now on, the gateway reports to the server that the slot is held.
    pub(crate) fn hold(&self) {
        self.shared.waiting().hold(&self.key, self.number);
    }

    /// The server has rejected the request and granted no slot.
    pub(crate) fn refused(mut self) {
        self.is_refused = true;
    }
}

impl Drop for ConcurrencySlot {
    fn drop(&mut self) {
        if !self.is_refused {
            self.shared.waiting().free(&self.key, self.number);
            self.shared.something.notify_one();
        }
    }
}

impl fmt::Debug for ConcurrencySlot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConcurrencySlot").field("number", &self.number).finish_non_exhaustive()
    }
}
