//! Leases on tasks and notifications.

/// The right to change a task or a delivery until somebody takes the next lease. The higher number wins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    /// Id of the task or the delivery.
    pub(crate) id: String,
    pub(crate) number: i64,
}
