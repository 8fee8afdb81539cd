//! Keeps memory and store in sync: reads keys that change, and writes usage.

mod writing;

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use gatewright_store::StoreError;
use gatewright_system::supervise;

pub(crate) use self::writing::UsageWriter;
use super::authenticator::Authenticator;
use super::stall_detector::BEAT;

/// How often the keys are compared with the store and usage is written: a change is noticed within a second, even if the
/// store doesn't notify of it.
const PAUSE: Duration = Duration::from_millis(500);

/// Minimum interval between reads of the keys when the store notifies of changes.
const LEAST_PAUSE: Duration = Duration::from_millis(100);

/// How long one read of the keys may take at first. A connection that hangs must not hide changes for as long as the store's own time
/// limit; if reading takes longer, the next attempt gets twice the time.
const REFRESH_TIME: Duration = Duration::from_secs(2);
const MAX_REFRESH_TIME: Duration = Duration::from_mins(1);

/// How long to wait for a notification from the store.
const REST: Duration = PAUSE.saturating_sub(LEAST_PAUSE);

/// How often the spending of keys with budgets is read from the store if other processes write theirs. What one of them
/// spends counts here after this interval plus the pause between two writes.
const SPENDING_PAUSE: Duration = Duration::from_secs(1);

/// The longest interval between two such reads, if they take long.
const MAX_SPENDING_PAUSE: Duration = Duration::from_secs(3);

/// Starts the tasks. They end when the authenticator is dropped. Needs a Tokio runtime.
pub(crate) fn start(authenticator: &Arc<Authenticator>, writer: &Arc<UsageWriter>) {
    let alive = Arc::downgrade(authenticator);
    let (writing, living) = (Arc::clone(writer), Weak::clone(&alive));
    supervise("usage", PAUSE, move || write_usage(Arc::clone(&writing), Weak::clone(&living)));
    let following = Weak::clone(&alive);
    supervise("spending", PAUSE, move || follow_spending(Weak::clone(&following)));
    let beating = Weak::clone(&alive);
    supervise("hanging", PAUSE, move || beat(Weak::clone(&beating)));
    let writer = Arc::clone(writer);
    supervise("keys", PAUSE, move || follow_keys(Weak::clone(&alive), Arc::clone(&writer)));
}

async fn write_usage(writer: Arc<UsageWriter>, alive: Weak<Authenticator>) {
    let mut log = FailureLog::of("usage is not written yet");
    loop {
        // Checked first, so that everything recorded before the end is still written.
        let last = alive.strong_count() == 0;
        let outcome = if last { writer.finish().await } else { writer.write().await };
        log.note(&outcome);
        if last {
            return;
        }
        // Many requests may fill the journal sooner.
        _ = tokio::time::timeout(PAUSE, writer.journal_fills()).await;
    }
}

/// Apart from the writes: one that hangs or fails must not hide what other gateways spend.
async fn follow_spending(alive: Weak<Authenticator>) {
    let mut log = FailureLog::of("the spending of other gateways is not counted against budgets");
    while let Some(authenticator) = alive.upgrade() {
        let started = Instant::now();
        log.note(&authenticator.follow_spending().await);
        drop(authenticator);
        // This doesn't keep a store with much usage busy. After an outage, the store is read again soon.
        let interval = (started.elapsed() * 20).clamp(SPENDING_PAUSE, MAX_SPENDING_PAUSE);
        tokio::time::sleep(interval.saturating_sub(started.elapsed())).await;
    }
}

async fn beat(alive: Weak<Authenticator>) {
    while let Some(authenticator) = alive.upgrade() {
        authenticator.hanging().beat();
        drop(authenticator);
        tokio::time::sleep(BEAT).await;
    }
}

async fn follow_keys(alive: Weak<Authenticator>, writer: Arc<UsageWriter>) {
    let mut log = FailureLog::of("changes to keys are not seen; the keys in memory stay valid");
    // Leftover usage counts in the budgets of the keys. A store that is away has no keys either.
    _ = writer.write().await;
    drop(writer);
    let mut patience = REFRESH_TIME;
    while let Some(authenticator) = alive.upgrade() {
        let hangs = authenticator.hanging().beat();
        let outcome = if let Ok(outcome) = tokio::time::timeout(patience, authenticator.refresh()).await {
            patience = REFRESH_TIME;
            outcome
        } else {
            let late = format!("the keys were not read within {patience:?}");
            patience = (patience * 2).min(MAX_REFRESH_TIME);
            Err(StoreError::Failed(late))
        };
        authenticator.hanging().reloaded(hangs);
        log.note(&outcome);
        let store = Arc::clone(authenticator.store());
        drop(authenticator);
        // Combines changes in quick succession into one read.
        tokio::time::sleep(LEAST_PAUSE).await;
        _ = tokio::time::timeout(REST, store.keys_changed()).await;
    }
}

/// Logs when the store fails, and when it works again, once each.
struct FailureLog {
    consequence: &'static str,
    failing: bool,
}

impl FailureLog {
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
    use gatewright::{ApiKey, operations};
    use gatewright_store::{
        Batch, Day, KeyLimits, NewKey, ResolvedUsageQuery, Rows, SpentByKey, StoreFuture, Totals, UsageKey,
        UsageRow, UsageStore,
    };
    use http::{HeaderMap, HeaderValue, header};
    use tokio::sync::Notify;

    use super::super::data::Data;
    use super::super::registry::Registry;
    use super::*;
    use crate::usage::LimitExceeded;

    /// Long enough for a busy machine; no passing test reaches it.
    const PATIENCE: Duration = Duration::from_mins(1);

    /// Never confirms a write, and has nothing to read.
    #[derive(Default)]
    struct HangingWrites {
        hangs: Notify,
    }

    impl UsageStore for HangingWrites {
        fn add_usage<'s>(&'s self, _: &'s Batch, _: &'s Rows) -> StoreFuture<'s, ()> {
            self.hangs.notify_one();
            Box::pin(std::future::pending())
        }

        fn usage<'s>(&'s self, _: &'s ResolvedUsageQuery) -> StoreFuture<'s, Vec<UsageRow>> {
            Box::pin(std::future::ready(Ok(Vec::new())))
        }

        fn spent(&self, _: Day) -> StoreFuture<'_, SpentByKey> {
            Box::pin(std::future::ready(Ok(SpentByKey::new())))
        }
    }

    /// Polls until there is a result.
    async fn until<T>(mut poll: impl AsyncFnMut() -> Option<T>) -> T {
        let waiting = async {
            loop {
                if let Some(found) = poll().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("it becomes true")
    }

    #[tokio::test]
    async fn spending_of_other_gateways_is_followed_while_our_own_write_hangs() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = Data::open(Some(folder.path()), None, None).expect("a folder");
        let limits = KeyLimits { tokens_per_day: Some(100), ..KeyLimits::default() };
        let mut new = NewKey::new("k");
        new.limits = limits;
        let issued = Registry::new(data.clone()).create(new).await.expect("a key");
        let slow = Arc::new(HangingWrites::default());
        let writer = Arc::new(UsageWriter::new(Arc::clone(&slow) as _, Arc::default(), None));
        let own = ApiKey::new("gw-own").expect("a key");
        let authenticator = Arc::new(Authenticator::new(data.clone(), &own, None, writer.ledger(), None));
        start(&authenticator, &writer);
        let admit = || {
            let bearer = HeaderValue::from_str(&format!("Bearer {}", issued.secret.expose())).expect("ASCII");
            let mut headers = HeaderMap::from_iter([(header::AUTHORIZATION, bearer)]);
            authenticator.admit(&operations::CREATE_CHAT_COMPLETION, &mut headers, &mut Vec::new())
        };
        let caller = until(async || admit().ok()).await;
        assert!(caller.begin().await.is_ok());

        let place = |key: &str| UsageKey {
            day: Day::today(),
            key: key.into(),
            model: "m".into(),
            upstream: "u".into(),
        };
        let totals = Totals { requests: 1, input: 100, ..Totals::default() };
        writer.ledger().add(&place("another"), &totals);
        slow.hangs.notified().await;
        let batch = Batch { writer: "another gateway".into(), number: 1 };
        data.store.add_usage(&batch, &[(place(caller.id()), totals)].into()).await.expect("a store");
        let exceeded = until(async || caller.begin().await.err()).await;
        assert_eq!(exceeded, LimitExceeded::TokensOfDay);
    }
}
