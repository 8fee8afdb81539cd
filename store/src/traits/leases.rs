//! Leases on tasks and notifications.

/// The right to change a task or a delivery until another process takes the next lease. The higher number wins.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Lease {
    /// Id of the task or the delivery.
    pub id: String,
    /// Distinguishes it from other leases with the id.
    pub number: i64,
}
