//! Data about a request's client that is not part of the request.

use std::sync::Arc;

use super::connection_slots::Activity;
use crate::wire::Presence;

/// The client of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    /// Whether it is still there.
    pub(super) presence: Presence,
    /// The activity of its connection.
    pub(super) activity: Arc<Activity>,
    /// Whether it uses TLS.
    pub(super) is_tls: bool,
}
