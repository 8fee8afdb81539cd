//! The providers behind a gateway and the models that they serve.

use std::time::Duration;

use gatewright::{ApiKey, catalog};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capabilities::Capabilities;
use super::envelope::Envelope;
use super::key_source::KeySource;
use super::keys::{KeyPlace, Setting};
pub use crate::usage::{Price, PriceTier, TokenPrice};

/// What an upstream speaks, and how it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// Chat completions, and images and videos beside them.
    Chat,
    /// Responses and chat completions, and images and videos beside them.
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

impl Kind {
    /// Whether its protocols make neither images nor videos.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Messages | Self::Native)
    }
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
    /// Where its key comes from if it is valid for a while, instead of `keys`.
    pub key_source: Option<KeySource>,
    /// Where a key stands in a request. `None`: as the kind says.
    pub key_place: Option<KeyPlace>,
    /// Headers that each request to it has. They go before those of clients and of the gateway.
    pub set_headers: Vec<Setting>,
    /// Parameters that the query of each request to it has.
    pub set_query: Vec<Setting>,
    /// Names of request headers of clients that are passed on.
    pub headers: Vec<String>,
    /// Sends it `traceparent`, by which it continues the trace of a request, where traces are exported; `None`: to another
    /// gateway alone.
    pub traceparent: Option<bool>,
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
    /// What its server takes of its protocol.
    pub capabilities: Capabilities,
    /// How its requests differ from its protocol.
    pub envelope: Envelope,
}

impl Upstream {
    /// An upstream without keys, with the default times.
    pub fn new(name: impl Into<String>, kind: Kind, base_url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind,
            base_url: base_url.into(),
            keys: Vec::new(),
            key_source: None,
            key_place: None,
            set_headers: Vec::new(),
            set_query: Vec::new(),
            headers: Vec::new(),
            traceparent: None,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_mins(10),
            idle_timeout: Duration::from_mins(5),
            max_concurrent: None,
            max_requests_per_minute: None,
            region: None,
            capabilities: Capabilities::default(),
            envelope: Envelope::default(),
        }
    }

    /// How many keys it has.
    pub(crate) fn key_count(&self) -> usize {
        if self.key_source.is_some() { 1 } else { self.keys.len() }
    }

    /// Whether it is told which trace its requests are part of.
    pub(crate) fn sends_trace(&self) -> bool {
        self.traceparent.unwrap_or(self.kind == Kind::Gatewright)
    }
}

/// What a model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ModelKind {
    /// Text, in conversations.
    Text,
    /// Images.
    Image,
    /// Videos.
    Video,
}

impl ModelKind {
    /// What a model of the catalog makes. `None`: the catalog does not have it.
    pub(crate) fn in_catalog(id: &str) -> Option<Self> {
        if catalog::IMAGE_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Image);
        }
        if catalog::VIDEO_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Video);
        }
        catalog::TEXT_MODELS.iter().any(|model| model.id == id).then_some(Self::Text)
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
    /// What it makes. Default: as the catalog says, else text.
    pub kind: ModelKind,
    /// The image or video model of the catalog whose limits requests keep to. Default: the model itself, if the catalog has
    /// it; else only the rules of the specification hold.
    pub limits: Option<String>,
    /// Its family, such as `family_one`.
    pub family: String,
    /// Its owner in model lists. Default: the family.
    pub owner: Option<String>,
    /// Where requests go: all of the lowest `order` by weight, then the next order where those fail.
    pub targets: Vec<Target>,
    /// Whether the responses protocol reaches it by translation, where its upstreams do not speak it (4 rule 1).
    pub translate_responses: bool,
    /// `max_tokens` for upstreams that require one. Default: 4096.
    pub default_max_tokens: u64,
    /// Refuses what the upstream's protocol cannot say, as `x-gatewright-strict: true` does.
    pub strict: bool,
    /// How an upstream with the messages protocol tells it to think. Default: by a budget.
    pub thinking: Thinking,
}

/// How the messages protocol tells a model to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Thinking {
    /// By a number of tokens: an effort becomes one.
    #[default]
    Budget,
    /// By an effort alone: a number of tokens becomes one. For models that decide themselves how much they think.
    Adaptive,
}

impl Model {
    /// A model with one target.
    pub fn new(id: impl Into<String>, family: impl Into<String>, target: Target) -> Self {
        Self::of(id.into(), family.into(), vec![target])
    }

    /// A model with the defaults.
    pub(super) fn of(id: String, family: String, targets: Vec<Target>) -> Self {
        let kind = ModelKind::in_catalog(&id).unwrap_or(ModelKind::Text);
        Self {
            aliases: Vec::new(),
            kind,
            limits: Self::own_limits(&id, kind),
            id,
            family,
            owner: None,
            targets,
            translate_responses: false,
            default_max_tokens: 4096,
            strict: false,
            thinking: Thinking::default(),
        }
    }

    /// The limits of a model that states none.
    pub(super) fn own_limits(id: &str, kind: ModelKind) -> Option<String> {
        (kind != ModelKind::Text && ModelKind::in_catalog(id) == Some(kind)).then(|| id.to_owned())
    }

    /// Takes what a configuration file says of it or of its family.
    pub(super) fn take(
        &mut self,
        translate_responses: Option<bool>,
        default_max_tokens: Option<u32>,
        strict: Option<bool>,
        thinking: Option<Thinking>,
    ) {
        self.translate_responses = translate_responses.unwrap_or(self.translate_responses);
        self.default_max_tokens = default_max_tokens.map_or(self.default_max_tokens, u64::from);
        self.strict = strict.unwrap_or(self.strict);
        self.thinking = thinking.unwrap_or(self.thinking);
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
    /// What it costs. `None`: nobody states it, and its requests are recorded as unpriced, but for the simulator's, which are free.
    pub price: Option<Price>,
}

impl Target {
    /// A target of weight 1 and order 0.
    pub fn new(upstream: impl Into<String>, model: impl Into<String>) -> Self {
        Self { upstream: upstream.into(), model: model.into(), weight: 1, order: 0, price: None }
    }
}
