//! Attempts at upstreams by what came of them: an attempt that failed is seen, though another upstream helped.

use std::sync::{Arc, OnceLock};

use metrics::Counter;

/// What came of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The upstream answered.
    Answered,
    /// It answered, and its answer broke off after the client had got some of it.
    BrokeOff,
    /// It failed, was not reached, or took too long.
    Failed,
    /// It refused the key, or what the key may do.
    KeyRefused,
    RateLimited,
    /// It refused the request.
    RequestRefused,
    /// The gateway had no room for the answer, or stopped.
    NotRead,
    /// The client left before an answer had begun.
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

/// The counters of a model at an upstream. Each is registered when it is first needed, so that the way of a request looks none
/// up.
#[derive(Debug)]
pub(crate) struct Attempts {
    pub(super) upstream: Arc<str>,
    /// The id of the model, as clients call it.
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
