//! Notifications that wait for delivery (section 6): written in the transaction that ends their task, so that none is lost
//! and none reports something that didn't happen.

use std::time::Duration;

use super::StoreFuture;
use super::leases::Lease;

/// Maximum number of delivered notifications, and of those given up; the oldest are removed first.
pub(crate) const MAX_TOLD: usize = 10_000;
/// How long they are kept.
pub(crate) const TOLD_FOR: Duration = Duration::from_hours(30 * 24);

/// A notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The id of the message, the same at each attempt.
    pub(crate) id: String,
    pub(crate) task: String,
    /// Id of the API key of the task.
    pub(crate) owner: String,
    pub(crate) url: String,
    /// The task object, as JSON.
    pub(crate) body: String,
}

/// A notification that is due.
#[derive(Debug, Clone)]
pub(crate) struct DueDelivery {
    pub(crate) notice: Notice,
    pub(crate) lease: Lease,
    /// Number of failed attempts.
    pub(crate) attempts: u32,
}

/// The outcome of an attempt.
#[derive(Debug, Clone)]
pub(crate) enum DeliveryOutcome {
    Delivered,
    /// It is due again after this time.
    Again {
        after: Duration,
        problem: String,
    },
    /// It was the last attempt.
    Dead {
        problem: String,
    },
}

/// A notification as operators see it. Times are in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) notice: Notice,
    pub(crate) status: Status,
    pub(crate) created: u64,
    pub(crate) attempts: u32,
    pub(crate) problem: Option<String>,
    pub(crate) due: Option<u64>,
    pub(crate) ended: Option<u64>,
}

/// The state of a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Pending,
    Delivered,
    /// Given up.
    Dead,
}

impl Status {
    pub(crate) const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The store of notifications. As for tasks, the store's clock counts.
pub(crate) trait DeliveryStore {
    /// Takes leases on at most `most` notifications that are due, the longest waiting first. Each is due again when its
    /// lease expires, unless the outcome of the attempt is recorded before.
    fn due_deliveries(&self, last: Duration, most: usize) -> StoreFuture<'_, Vec<DueDelivery>>;

    /// Time until a notification is due.
    fn next_delivery(&self) -> StoreFuture<'_, Option<Duration>>;

    /// Records the outcome of an attempt. False if somebody else has taken the next lease.
    fn attempted<'s>(&'s self, lease: &'s Lease, attempted: &'s DeliveryOutcome) -> StoreFuture<'s, bool>;

    /// The newest notifications first, at most [`LONGEST_LIST`](super::LONGEST_LIST). `status`: only those
    /// with this status.
    fn deliveries(&self, status: Option<Status>) -> StoreFuture<'_, Vec<Delivery>>;

    /// Makes a notification due now, as if it had never been attempted, whatever its state. False if there is none.
    fn redeliver<'s>(&'s self, id: &'s str) -> StoreFuture<'s, bool>;

    /// Removes notifications that were delivered or given up [`TOLD_FOR`] ago, and the oldest ones beyond the
    /// limit.
    fn forget_deliveries(&self) -> StoreFuture<'_, ()>;

    /// Makes all notifications and their leases older by this much, for tests.
    #[cfg(test)]
    fn age_deliveries(&self, by: Duration) -> StoreFuture<'_, ()>;
}
