//! Counts attempts at upstreams by outcome: a failed attempt is visible even if another upstream succeeded.

use std::sync::{Arc, OnceLock};

use metrics::Counter;

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The upstream answered.
    Answered,
    /// It answered, but its answer broke off after the client had received part of it.
    BrokeOff,
    /// It failed, was unreachable, or took too long.
    Failed,
    /// It rejected the key, or denied it permission.
    KeyRefused,
    RateLimited,
    /// It rejected the request.
    RequestRefused,
    /// The gateway had no room for the answer, or shut down.
    NotRead,
    /// The client disconnected before an answer began.
    ClientLeft,
}

impl Outcome {
    const COUNT: usize = 8;

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::BrokeOff => "broke_off",
            Self::Failed => "failed",
            Self::KeyRefused => "key_refused",
            Self::RateLimited => "rate_limited",
            Self::RequestRefused => "request_refused",
            Self::NotRead => "not_read",
            Self::ClientLeft => "client_left",
        }
    }
}

/// The counters of a model at an upstream. Each is registered on first use, so the request path never looks one up.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(super) upstream: Arc<str>,
    /// The model id that clients use.
    pub(super) model: Arc<str>,
    counters: [OnceLock<Counter>; Outcome::COUNT],
}

impl Attempts {
    pub(crate) fn new(upstream: Arc<str>, model: Arc<str>) -> Self {
        Self { upstream, model, counters: Default::default() }
    }

    pub(super) fn counter(&self, outcome: Outcome) -> &OnceLock<Counter> {
        &self.counters[outcome as usize]
    }
}
