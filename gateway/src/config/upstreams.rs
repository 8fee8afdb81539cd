//! The providers behind a gateway and the models that they serve.

use std::time::Duration;

use gatewright::ApiKey;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::usage::Price;

/// What an upstream speaks, and how it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Chat completions.
    Chat,
    /// Responses and chat completions.
    Responses,
    /// Messages.
    Messages,
    /// Native generate-content.
    Native,
    /// Another gateway like this one: all protocols, images and videos.
    Gatewright,
    /// The embedded provider: all protocols, images and videos, offline.
    Simulator,
}

/// A provider.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Upstream {
    /// Its name in the configuration, in metrics and in `x-gatewright-upstream`.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// Scheme, host, port and path to which the paths of the protocol are added, such as `https://api.example/v1`.
    /// Unused by the simulator.
    pub base_url: String,
    /// Its keys; the next is used where one is refused for its rate or quota. Empty: none is sent.
    pub keys: Vec<ApiKey>,
    /// Names of request headers of clients that are passed on.
    pub headers: Vec<String>,
    /// Maximum time to connect. Default: 10 s.
    pub connect_timeout: Duration,
    /// Maximum time from the request to the first byte of the answer. Default: 10 min.
    pub timeout: Duration,
    /// Maximum silence within an answer. Default: 5 min.
    pub idle_timeout: Duration,
    /// Maximum number of requests at once; `None`: no limit. A further request goes to another upstream, or gets 503.
    pub max_concurrent: Option<usize>,
    /// Maximum number of requests a minute; `None`: no limit.
    pub max_requests_per_minute: Option<u32>,
    /// Where it runs, for people.
    pub region: Option<String>,
}

impl Upstream {
    /// An upstream without keys, with the default times.
    pub fn new(name: impl Into<String>, kind: Kind, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: base_url.into(),
            keys: Vec::new(),
            headers: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_mins(10),
            idle_timeout: Duration::from_mins(5),
            max_concurrent: None,
            max_requests_per_minute: None,
            region: None,
        }
    }
}

/// A text, image or video model that the gateway offers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Model {
    /// The id that clients send.
    pub id: String,
    /// Further ids.
    pub aliases: Vec<String>,
    /// Owner in model lists, such as `family_one`.
    pub family: String,
    /// Where requests go: all of the lowest `order` by weight, then the next order where those fail.
    pub targets: Vec<Target>,
    /// Whether the responses protocol reaches it by translation, where its upstreams do not speak it (4 rule 1).
    pub translate_responses: bool,
    /// `max_tokens` for upstreams that require one. Default: 4096.
    pub default_max_tokens: u64,
    /// Refuses what the upstream's protocol cannot say, as `x-gatewright-strict: true` does.
    pub strict: bool,
}

impl Model {
    /// `max_tokens` for upstreams that require one, where nothing else is configured.
    pub(super) const DEFAULT_MAX_TOKENS: u64 = 4096;

    /// A model with one target.
    pub fn new(id: impl Into<String>, family: impl Into<String>, target: Target) -> Self {
        Self {
            id: id.into(),
            aliases: Vec::new(),
            family: family.into(),
            targets: vec![target],
            translate_responses: false,
            default_max_tokens: Self::DEFAULT_MAX_TOKENS,
            strict: false,
        }
    }
}

/// An upstream of a model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Target {
    /// Name of the upstream.
    pub upstream: String,
    /// What the upstream calls the model.
    pub model: String,
    /// Share of the requests among the targets of the same order. Default: 1.
    pub weight: u32,
    /// Lower ones come first. Default: 0.
    pub order: u32,
    /// What its tokens cost.
    pub price: Option<Price>,
}

impl Target {
    /// A target of weight 1 and order 0.
    pub fn new(upstream: impl Into<String>, model: impl Into<String>) -> Self {
        Self { upstream: upstream.into(), model: model.into(), weight: 1, order: 0, price: None }
    }
}
