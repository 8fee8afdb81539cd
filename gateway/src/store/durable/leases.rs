//! Who works on a task, or on a notification.

/// The right to change a task or a delivery, until somebody takes the next one. The higher number wins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Lease {
    /// Of the task, or of the delivery.
    pub(crate) id: String,
    pub(crate) number: i64,
}
