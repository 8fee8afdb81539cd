//! The providers behind a gateway and their models.

use std::time::Duration;

use gatewright::{ApiKey, catalog};
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::{Capabilities, Thinking};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope::Envelope;
use super::key_source::KeySource;
use super::keys::{KeyPlace, RequestSetting};
use super::model_price::ModelPrice;

/// Protocol of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Chat completions, with plain operations, images and videos.
    Chat,
    /// Responses and chat completions, with plain operations, images and videos.
    Responses,
    /// Messages.
    Messages,
    /// Native generate-content, with embeddings.
    Native,
    /// Converse, the protocol of Amazon Bedrock.
    Converse,
    /// Another gateway like this one: all protocols, plain operations, images and videos.
    Gatewright,
    /// The embedded provider: all protocols, plain operations, images and videos, offline.
    Simulator,
}

impl Kind {
    /// Whether its protocols support a kind of model.
    pub fn serves(self, model: ModelKind) -> bool {
        let mut bindings = self.protocols().iter().map(|protocol| protocol.binding());
        match model {
            ModelKind::Text => true,
            ModelKind::Embedding => bindings.any(|binding| binding.serves_embeddings),
            ModelKind::Rerank | ModelKind::Moderation | ModelKind::Speech | ModelKind::Transcription => {
                bindings.any(|binding| binding.serves_plain)
            }
            ModelKind::Image | ModelKind::Video => bindings.any(|binding| binding.serves_media),
        }
    }

    /// The protocols of its upstreams; the first is for clients of other protocols.
    pub fn protocols(self) -> &'static [Protocol] {
        match self {
            Self::Chat => &[Protocol::Chat],
            Self::Responses => &[Protocol::Responses, Protocol::Chat],
            Self::Messages => &[Protocol::Messages],
            Self::Native => &[Protocol::Native],
            Self::Converse => &[Protocol::Converse],
            Self::Gatewright | Self::Simulator => &Protocol::OF_CLIENTS,
        }
    }

    /// The protocol of requests to its upstreams that clients of any protocol may cause.
    pub fn main_protocol(self) -> Protocol {
        self.protocols()[0]
    }

    /// Its name in a configuration file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Native => "native",
            Self::Converse => "converse",
            Self::Gatewright => "gatewright",
            Self::Simulator => "simulator",
        }
    }

    /// Says that its protocols don't support a kind of model, and which do.
    pub fn refusal(self, model: ModelKind) -> String {
        let others = match model {
            ModelKind::Embedding => "chat, responses, native, gatewright and simulator",
            _ => "chat, responses, gatewright and simulator",
        };
        let what = match model {
            ModelKind::Image | ModelKind::Video => "images and videos",
            model => model.products(),
        };
        format!("is of the kind {}, which does not support {what}; the kinds {others} do", self.name())
    }
}

/// A provider.
#[derive(Debug, Clone)]
pub struct UpstreamConfig {
    /// Its name in the configuration, in metrics and in `x-gatewright-upstream`.
    pub name: String,
    /// Its protocol.
    pub kind: Kind,
    /// Scheme, host, port and path to which the protocol's paths are appended, such as `https://api.example/v1`.
    /// Unused by the simulator.
    pub base_url: String,
    /// Its keys; if one is rejected for its rate or quota, the next is used. Empty: no key is sent.
    pub keys: Vec<ApiKey>,
    /// The source of its key if the key is short-lived, instead of `keys`.
    pub key_source: Option<KeySource>,
    /// Where a key goes in a request. `None`: depends on the kind.
    pub key_place: Option<KeyPlace>,
    /// Headers added to each request. They take precedence over the client's and the gateway's.
    pub set_headers: Vec<RequestSetting>,
    /// Query parameters added to each request.
    pub set_query: Vec<RequestSetting>,
    /// Names of client request headers that are passed on.
    pub headers: Vec<String>,
    /// Sends `traceparent`, so that it continues the trace of a request, if traces are exported; `None`: only to another
    /// gateway.
    pub traceparent: Option<bool>,
    /// Maximum time to connect. Default: 10 s.
    pub connect_timeout: Duration,
    /// Maximum time from the request to the first byte of the response. Default: 10 min.
    pub timeout: Duration,
    /// Maximum silence within a response. Default: 5 min.
    pub idle_timeout: Duration,
    /// Sends a request once more if the upstream closes a reused connection without an answer, although it may have read the
    /// request: it may charge for both. Default: false.
    pub retry_lost: bool,
    /// Maximum number of requests at once; `None`: no limit. A further request goes to another upstream, or gets 503.
    pub max_concurrent: Option<usize>,
    /// Maximum number of requests per minute; `None`: no limit.
    pub max_requests_per_minute: Option<u32>,
    /// Where it runs, for display.
    pub region: Option<String>,
    /// What its server supports of its protocol.
    pub capabilities: Capabilities,
    /// How its requests deviate from its protocol.
    pub envelope: Envelope,
}

impl UpstreamConfig {
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
            retry_lost: false,
            max_concurrent: None,
            max_requests_per_minute: None,
            region: None,
            capabilities: Capabilities::default(),
            envelope: Envelope::default(),
        }
    }

    /// Number of its keys.
    pub fn key_count(&self) -> usize {
        if self.key_source.is_some() { 1 } else { self.keys.len() }
    }

    /// Whether its requests carry the trace they are part of.
    pub fn sends_trace(&self) -> bool {
        self.traceparent.unwrap_or(self.kind == Kind::Gatewright)
    }
}

/// What a model makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// Text, in conversations.
    Text,
    /// Vectors of texts.
    Embedding,
    /// Rankings of documents.
    Rerank,
    /// Verdicts about content.
    Moderation,
    /// Speech: texts read aloud.
    Speech,
    /// Transcriptions of sounds.
    Transcription,
    /// Images.
    Image,
    /// Videos.
    Video,
}

impl ModelKind {
    /// Its name in a configuration file and in model lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Embedding => "embedding",
            Self::Rerank => "rerank",
            Self::Moderation => "moderation",
            Self::Speech => "speech",
            Self::Transcription => "transcription",
            Self::Image => "image",
            Self::Video => "video",
        }
    }

    /// What such models make, for messages.
    pub fn products(self) -> &'static str {
        match self {
            Self::Text => "texts",
            Self::Embedding => "embeddings",
            Self::Rerank => "rankings",
            Self::Moderation => "moderations",
            Self::Speech => "speech",
            Self::Transcription => "transcriptions",
            Self::Image => "images",
            Self::Video => "videos",
        }
    }

    /// What a model of the catalog generates. `None`: it is not in the catalog.
    pub fn in_catalog(id: &str) -> Option<Self> {
        if catalog::EMBEDDING_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Embedding);
        }
        if let Some(model) = catalog::PLAIN_MODELS.iter().find(|model| model.id == id) {
            return Some(match model.kind {
                "rerank" => Self::Rerank,
                "moderation" => Self::Moderation,
                "speech" => Self::Speech,
                _ => Self::Transcription,
            });
        }
        if catalog::IMAGE_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Image);
        }
        if catalog::VIDEO_MODELS.iter().any(|model| model.id == id) {
            return Some(Self::Video);
        }
        catalog::TEXT_MODELS.iter().any(|model| model.id == id).then_some(Self::Text)
    }
}

/// A model that the gateway offers.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// The id that clients send.
    pub id: String,
    /// Further ids.
    pub aliases: Vec<String>,
    /// What it generates. Default: as in the catalog, otherwise text.
    pub kind: ModelKind,
    /// The model of the catalog whose limits apply to requests, if this is not a text model. Default: the model itself, if the catalog
    /// has it; otherwise only the rules of the specification apply.
    pub limits: Option<String>,
    /// Its family, such as `family_one`.
    pub family: String,
    /// Its owner in model lists. Default: the family.
    pub owner: Option<String>,
    /// Where requests go: to all targets of the lowest `order` by weight, then to the next order if those
    /// fail.
    pub targets: Vec<TargetConfig>,
    /// Whether it is available through the responses protocol by translation if its upstreams don't speak it (4
    /// rule 1).
    pub translate_responses: bool,
    /// `max_tokens` for upstreams that require one. Default: 4096.
    pub default_max_tokens: u64,
    /// Rejects what the upstream's protocol can't express, as `x-gatewright-strict: true` does.
    pub strict: bool,
    /// How thinking is requested from an upstream with the messages protocol. Default: with a budget.
    pub thinking: Thinking,
}

impl ModelConfig {
    /// A model with one target.
    pub fn new(id: impl Into<String>, family: impl Into<String>, target: TargetConfig) -> Self {
        Self::of(id.into(), family.into(), vec![target])
    }

    /// A model with the defaults.
    pub(super) fn of(id: String, family: String, targets: Vec<TargetConfig>) -> Self {
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

    /// The limits for a model that sets none.
    pub(super) fn own_limits(id: &str, kind: ModelKind) -> Option<String> {
        (kind != ModelKind::Text && ModelKind::in_catalog(id) == Some(kind)).then(|| id.to_owned())
    }

    /// Applies the settings of a configuration file for it or its family.
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
pub struct TargetConfig {
    /// Name of the upstream.
    pub upstream: String,
    /// The upstream's name for the model.
    pub model: String,
    /// Share of the requests among the targets of the same order. Default: 1.
    pub weight: u32,
    /// Lower orders come first. Default: 0.
    pub order: u32,
    /// Its price. `None`: it is unknown, and its requests are recorded as unpriced, except those of the simulator, which are
    /// free.
    pub price: Option<ModelPrice>,
    /// Maximum number of tokens of prompt and response together, for display. Default: unknown.
    pub context: Option<u64>,
    /// Maximum number of tokens of a response, for display. Default: unknown.
    pub max_output: Option<u64>,
}

impl TargetConfig {
    /// A target of weight 1 and order 0.
    pub fn new(upstream: impl Into<String>, model: impl Into<String>) -> Self {
        let (upstream, model) = (upstream.into(), model.into());
        Self { upstream, model, weight: 1, order: 0, price: None, context: None, max_output: None }
    }
}
