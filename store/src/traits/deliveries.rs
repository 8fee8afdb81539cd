//! Notifications that wait for delivery (section 6): written in the transaction that ends their task, so that none is lost
//! and none reports something that didn't happen.

use std::time::Duration;

use super::StoreFuture;
use super::leases::Lease;

/// Maximum number of delivered notifications, and of those given up; the oldest are removed first.
pub(crate) const MAX_DELIVERIES: usize = 10_000;
/// How long they are kept.
pub(crate) const DELIVERY_RETENTION: Duration = Duration::from_hours(30 * 24);

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The id of the message, the same at each attempt.
    pub id: String,
    /// Id of the task that ended.
    pub task: String,
    /// Id of the API key of the task.
    pub owner: String,
    /// Where it is sent.
    pub url: String,
    /// The task object, as JSON.
    pub body: String,
}

/// A notification that is due.
#[derive(Debug, Clone)]
pub struct DueDelivery {
    /// What is sent.
    pub notice: Notice,
    /// The right to attempt it.
    pub lease: Lease,
    /// Number of failed attempts.
    pub attempts: u32,
}

/// The outcome of an attempt.
#[derive(Debug, Clone)]
pub enum DeliveryOutcome {
    /// The receiver acknowledged it.
    Delivered,
    /// It is due again after this time.
    Again {
        /// The pause until then.
        after: Duration,
        /// Why it was not acknowledged.
        problem: String,
    },
    /// It was the last attempt.
    Dead {
        /// Why it was not acknowledged.
        problem: String,
    },
}

/// A notification as operators see it. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What is sent.
    pub notice: Notice,
    /// Whether it waits.
    pub status: Status,
    /// When its task ended.
    pub created: u64,
    /// Number of attempts; from 0 again once it is redelivered.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub problem: Option<String>,
    /// When the next attempt is due, if it waits.
    pub due: Option<u64>,
    /// When it was delivered or given up.
    pub ended: Option<u64>,
}

/// The state of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It waits for an attempt.
    Pending,
    /// The receiver acknowledged it.
    Delivered,
    /// Given up.
    Dead,
}

impl Status {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// As operators see it: `pending`, `delivered` or `dead`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    /// The state with a [`name`](Self::name).
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The store of notifications. As for tasks, the store's clock counts.
pub trait DeliveryStore {
    /// Takes leases on at most `most` notifications that are due, the longest waiting first. Each is due again when its
    /// lease expires, unless the outcome of the attempt is recorded before.
    fn due_deliveries(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<DueDelivery>>;

    /// Time until a notification is due.
    fn next_delivery(&self) -> StoreFuture<'_, Option<Duration>>;

    /// Records the outcome of an attempt. False if another process has taken the next lease.
    fn attempted<'s>(&'s self, lease: &'s Lease, attempted: &'s DeliveryOutcome) -> StoreFuture<'s, bool>;

    /// The newest notifications first, at most [`MAX_LISTED`](super::MAX_LISTED). `status`: only those
    /// with this status.
    fn deliveries(&self, status: Option<Status>) -> StoreFuture<'_, Vec<Delivery>>;

    /// Makes a notification due now, as if it had never been attempted, whatever its state. False if there is none.
    fn redeliver<'s>(&'s self, id: &'s str) -> StoreFuture<'s, bool>;

    /// Removes notifications that were delivered or given up `DELIVERY_RETENTION` ago, and the oldest ones beyond the
    /// limit.
    fn forget_deliveries(&self) -> StoreFuture<'_, ()>;

    /// Makes all notifications and their leases older by this much, for tests.
    #[cfg(test)]
    fn age_deliveries(&self, by: Duration) -> StoreFuture<'_, ()>;
}
