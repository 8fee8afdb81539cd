//! Where a response is from.

use std::sync::Arc;

/// Which model and upstream a response is from: an extension of the response.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// As the client called it.
    pub(crate) model: Arc<str>,
    pub(crate) upstream: Arc<str>,
}
