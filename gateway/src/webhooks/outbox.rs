//! Delivery of notifications about finished videos (section 6) from the store, at least once, with one id each. An
//! unacknowledged notification is retried for a day, then given up; operators can have it retried.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use gatewright::webhook::Secret;
use gatewright_store::{DeliveryOutcome, DueDelivery, DurableStore, Notice, Task};
use gatewright_system::clock::monotonic_millis;
use gatewright_system::supervise;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use super::delivery_stats::{DeliveryStats, LEASE};
use super::sender::Sender;
use super::ssrf_guard::MAX_ATTEMPTS;
use crate::wire::ApiError;

/// Number of attempts: with a first pause of one second, the last is some 25 hours after the first.
const ATTEMPTS: u32 = 12;
/// Factor by which each pause exceeds the previous one.
const GROWTH: u32 = 3;
/// How often the store is polled for notifications from others.
const POLL: Duration = Duration::from_secs(2);
/// Pause while the store does not answer.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// Longest description of a problem, in characters.
const MAX_PROBLEM_CHARS: usize = 200;

/// A notification of the end of a task. `record`: the task object (2.7).
pub(crate) fn notice(task: &Task, url: &str, record: &Value) -> Notice {
    Notice {
        id: format!("msg_{}", Uuid::new_v4().simple()),
        task: task.id.clone(),
        owner: task.owner.to_string(),
        url: url.to_owned(),
        body: record.to_string(),
    }
}

/// See the module.
pub(crate) struct Outbox {
    store: Arc<dyn DurableStore>,
    sender: Sender,
    /// Pause before the second attempt.
    first_pause: Duration,
    attempts: Arc<Semaphore>,
    /// Wakes the task that looks for due notifications.
    look: Notify,
    /// Whether the store failed to answer last time.
    failing: AtomicBool,
    /// The outcomes of attempts made here.
    known: DeliveryStats,
}

impl Outbox {
    /// Starts a task that delivers due notifications until the outbox is dropped. `secrets`: the current one first. Needs
    /// a Tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn DurableStore>,
        secrets: Vec<Secret>,
        first_pause: Duration,
        allow_private: bool,
    ) -> Arc<Self> {
        let sender = Sender::new(secrets, allow_private);
        let attempts = Arc::new(Semaphore::new(MAX_ATTEMPTS));
        let (look, failing, known) = Default::default();
        let outbox = Arc::new(Self { store, sender, first_pause, attempts, look, failing, known });
        let weak = Arc::downgrade(&outbox);
        supervise("notifications", STORE_PAUSE, move || deliver(Weak::clone(&weak)));
        outbox
    }

    /// Accepts or rejects the `webhook_url` of a request.
    pub(crate) fn check(&self, url: &str) -> Result<(), ApiError> {
        self.sender.check(url)
    }

    /// Looks for notifications immediately.
    pub(crate) fn look(&self) {
        self.look.notify_one();
    }

    /// Number of notifications in each state, as far as this process knows, without asking the store.
    pub(crate) fn states(&self) -> [(&'static str, usize); 4] {
        self.known.states(monotonic_millis())
    }

    /// Resolves when nothing remains to be attempted or, if notifications are durable, when nothing is due or in
    /// progress.
    pub(crate) async fn settled(&self, lasting: bool) {
        loop {
            let next = self.store.next_delivery().await;
            let is_trying = self.attempts.available_permits() < MAX_ATTEMPTS;
            match next {
                Ok(None) if !is_trying => return,
                Ok(Some(wait)) if lasting && !is_trying && !wait.is_zero() => return,
                Err(_) if lasting => return,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Removes notifications that ended long ago.
    pub(crate) async fn forget(&self) {
        if let Err(error) = self.store.forget_deliveries().await {
            tracing::warn!("{error}: old notifications are not removed");
        }
    }

    /// Starts attempts for due notifications. Returns the time until the next one may be due.
    async fn turn(self: &Arc<Self>) -> Duration {
        // Taken before anything is leased, so that observers see that something is in progress.
        let mut places = Vec::new();
        while let Ok(place) = Arc::clone(&self.attempts).try_acquire_owned() {
            places.push(place);
        }
        if places.is_empty() {
            return POLL;
        }
        let mut next = self.store.next_delivery().await;
        let mut due = Vec::new();
        // Taking leases writes, which blocks others, so it happens only if there is something to take.
        if matches!(next, Ok(Some(wait)) if wait.is_zero()) {
            next = match self.store.due_deliveries(LEASE, places.len()).await {
                Ok(taken) => {
                    due = taken;
                    self.store.next_delivery().await
                }
                Err(error) => Err(error),
            };
        }
        for (due, place) in due.into_iter().zip(places.drain(..)) {
            let outbox = Arc::clone(self);
            tokio::spawn(async move {
                outbox.try_once(due).await;
                drop(place);
                outbox.look();
            });
        }
        let was_failing = self.failing.swap(next.is_err(), Ordering::Relaxed);
        match next {
            Ok(Some(wait)) => wait.min(POLL),
            Ok(None) => POLL,
            Err(error) => {
                if !was_failing {
                    tracing::warn!("{error}: notifications are delayed");
                }
                STORE_PAUSE
            }
        }
    }

    async fn try_once(&self, DueDelivery { notice, lease, attempts }: DueDelivery) {
        let (task, attempt) = (&*notice.task, attempts + 1);
        let _sends = self.known.sends(&notice.id);
        let attempted = match self.sender.attempt(&notice).await {
            Ok(()) => {
                tracing::debug!(task, attempt, "webhook delivered");
                DeliveryOutcome::Delivered
            }
            Err(problem) => {
                tracing::warn!(task, attempt, problem, "webhook not delivered");
                let problem = problem.chars().take(MAX_PROBLEM_CHARS).collect();
                match pause(self.first_pause, attempt) {
                    Some(after) => DeliveryOutcome::Again { after, problem },
                    None => DeliveryOutcome::Dead { problem },
                }
            }
        };
        self.known.note(&notice.id, &attempted, monotonic_millis());
        // If the store does not record this, it is sent again with the same id: delivery is at least once.
        if let Err(error) = self.store.attempted(&lease, &attempted).await {
            tracing::warn!(task, "{error}: the outcome of a notification is not recorded");
        }
    }
}

/// The pause after this many attempts, plus or minus a fifth, so that a receiver that was away doesn't get everything at
/// once. None after the last one.
fn pause(first: Duration, attempts: u32) -> Option<Duration> {
    let factor = GROWTH.saturating_pow(attempts.saturating_sub(1));
    (attempts < ATTEMPTS).then(|| first.saturating_mul(factor).mul_f64(rand::random_range(0.8..1.2)))
}

async fn deliver(outbox: Weak<Outbox>) {
    while let Some(outbox) = outbox.upgrade() {
        let pause = outbox.turn().await;
        _ = tokio::time::timeout(pause, outbox.look.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_continue_for_about_a_day() {
        let pauses: Vec<Duration> =
            (1..).map_while(|attempts| pause(Duration::from_secs(1), attempts)).collect();
        assert_eq!(pauses.len(), 11);
        assert!(pauses.is_sorted());
        let whole: Duration = pauses.iter().sum();
        assert!((Duration::from_hours(19)..Duration::from_hours(30)).contains(&whole), "{whole:?}");
    }

    /// Retries of notifications that one receiver missed are spread: from a fifth earlier to a fifth later.
    #[test]
    fn retry_pauses_are_jittered() {
        for attempts in 1..ATTEMPTS {
            let middle = Duration::from_secs(3_u64.pow(attempts - 1));
            let part = |_| {
                let pause = pause(Duration::from_secs(1), attempts).expect("another attempt");
                pause.as_secs_f64() / middle.as_secs_f64()
            };
            let mut parts: Vec<f64> = (0..1_000).map(part).collect();
            parts.sort_by(f64::total_cmp);
            let (first, last) = (parts[0], parts[parts.len() - 1]);
            // With a thousand samples, the chance that none falls into a tenth of the range is 10^-45.
            assert!((0.8..0.84).contains(&first) && last > 1.16 && last <= 1.2, "{first} to {last}");
            parts.dedup();
            assert!(parts.len() > 900, "{attempts}: {}", parts.len());
        }
        assert_eq!(pause(Duration::from_secs(1), ATTEMPTS), None);
    }
}
