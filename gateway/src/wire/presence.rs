//! Whether the client of a request is still connected.

use tokio_util::sync::CancellationToken;

/// Signals that a client has closed its side of the connection. A client that only stopped sending looks the same, so
/// work that costs nothing may continue for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence(CancellationToken);

impl Presence {
    /// The client is gone.
    pub(crate) fn end(&self) {
        self.0.cancel();
    }

    /// Whether the client is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when the client is gone.
    pub(crate) async fn ended(&self) {
        self.0.cancelled().await;
    }
}
