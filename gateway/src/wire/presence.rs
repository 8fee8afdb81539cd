//! Whether the client of a request is still there.

use tokio_util::sync::CancellationToken;

/// Tells when a client has closed its side of the connection. A client that only stopped sending looks the same: work
/// that costs nothing may go on for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presence(CancellationToken);

impl Presence {
    /// The client has gone.
    pub(crate) fn end(&self) {
        self.0.cancel();
    }

    /// Whether the client has gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Resolves when the client has gone.
    pub(crate) async fn ended(&self) {
        self.0.cancelled().await;
    }
}
