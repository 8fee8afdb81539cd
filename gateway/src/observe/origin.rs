//! Where a response is from.

use std::sync::{Arc, OnceLock};

/// Which model and upstream a response is from: an extension of the response.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The id of the model.
    pub(crate) model: Arc<str>,
    upstream: Upstream,
}

#[derive(Debug, Clone)]
enum Upstream {
    Known(Arc<str>),
    /// The response has begun before an upstream answered.
    Sought(Arc<OnceLock<Arc<str>>>),
}

impl Origin {
    pub(crate) fn new(model: Arc<str>, upstream: Arc<str>) -> Self {
        Self { model, upstream: Upstream::Known(upstream) }
    }

    /// Of a response that begins before an upstream has answered; [`found`](Self::found) tells which one did.
    pub(crate) fn sought(model: Arc<str>) -> Self {
        Self { model, upstream: Upstream::Sought(Arc::default()) }
    }

    /// The response is from there. Does nothing if its upstream is known.
    pub(crate) fn found(&self, other: &Self) {
        if let (Upstream::Sought(place), Some(upstream)) = (&self.upstream, other.upstream()) {
            _ = place.set(Arc::clone(upstream));
        }
    }

    /// The upstream, as far as it is known.
    pub(crate) fn upstream(&self) -> Option<&Arc<str>> {
        match &self.upstream {
            Upstream::Known(upstream) => Some(upstream),
            Upstream::Sought(place) => place.get(),
        }
    }
}
