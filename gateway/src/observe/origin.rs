//! Where a response comes from.

use std::sync::{Arc, OnceLock};

/// Maximum length of the name of a model that doesn't exist, in characters: it may be any text of the client.
const MAX_MODEL_CHARS: usize = 100;

/// The model and upstream that a response comes from: an extension of the response.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The model id.
    pub(crate) model: Arc<str>,
    upstream: OriginUpstream,
}

#[derive(Debug, Clone)]
enum OriginUpstream {
    Known(Arc<str>),
    /// The response began before an upstream answered.
    Sought(Arc<OnceLock<Arc<str>>>),
}

impl Origin {
    pub(crate) fn new(model: Arc<str>, upstream: Arc<str>) -> Self {
        Self { model, upstream: OriginUpstream::Known(upstream) }
    }

    /// For a response that begins before an upstream has answered; [`found`](Self::found) sets which one did.
    pub(crate) fn sought(model: Arc<str>) -> Self {
        Self { model, upstream: OriginUpstream::Sought(Arc::default()) }
    }

    /// For a request whose model doesn't exist. `name`: as the client wrote it.
    pub(crate) fn unknown(name: &str) -> Self {
        // It reaches logs and span names.
        let shown = name.chars().filter(|character| !character.is_control());
        Self::sought(shown.take(MAX_MODEL_CHARS).collect::<String>().into())
    }

    /// For a failed request. `upstream`: the one that failed.
    pub(crate) fn failed(model: Arc<str>, upstream: Option<Arc<str>>) -> Self {
        match upstream {
            Some(upstream) => Self::new(model, upstream),
            None => Self::sought(model),
        }
    }

    /// Sets the upstream. Does nothing if it is already known.
    pub(crate) fn found(&self, other: &Self) {
        if let (OriginUpstream::Sought(place), Some(upstream)) = (&self.upstream, other.upstream()) {
            _ = place.set(Arc::clone(upstream));
        }
    }

    /// The upstream, if known.
    pub(crate) fn upstream(&self) -> Option<&Arc<str>> {
        match &self.upstream {
            OriginUpstream::Known(upstream) => Some(upstream),
            OriginUpstream::Sought(place) => place.get(),
        }
    }
}
