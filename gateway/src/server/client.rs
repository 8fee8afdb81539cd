//! What is known of the client of a request, beside what it sends.

use std::sync::Arc;

use super::places::Activity;
use crate::wire::Presence;

/// The client of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    /// Whether it is still there.
    pub(super) presence: Presence,
    /// What its connection is doing.
    pub(super) activity: Arc<Activity>,
    /// Whether it came over TLS.
    pub(super) is_tls: bool,
}
