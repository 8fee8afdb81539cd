//! What a configuration file says about providers, families and models.

use std::borrow::Cow;

use gatewright_protocol::{CallIdForm, Roles, Thinking, TokenLimit};
use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::OneOrMany;
use crate::envelope::Paths;
use crate::presets;
use crate::secret::{Credential, Setting};
use crate::units::Time;
use crate::upstreams::{Kind, ModelKind};

/// A provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Upstream {
    /// The provider, whose known settings apply to all keys that this upstream does not set. `gatewright providers` lists the
    /// providers. Default: none; kind and base_url are then required.
    pub(crate) provider: Option<ProviderName>,
    /// Its protocol. Default: that of the provider.
    pub(crate) kind: Option<Kind>,
    /// Scheme, host, port and path to which the paths of the protocol are appended, such as "https://api.example/v1".
    /// Default: that of the provider. Otherwise required, except for the kind simulator.
    #[schemars(length(max = 2048))]
    pub(crate) base_url: Option<String>,
    /// Its key, or a list of keys: if one is rejected for its rate or quota, the next one is used. A command that prints the key
    /// runs again before its ttl expires. Default: the variable of the provider, else none is sent.
    pub(crate) key: Option<OneOrMany<Credential>>,
    /// Where requests carry the key: in a header, after a prefix, or in the query. Default: depends on the kind.
    pub(crate) key_in: Option<KeyIn>,
    /// Headers of each request to it, by name. They take precedence over those of clients and of the gateway.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub(crate) set_headers: IndexMap<String, Setting>,
    /// Query parameters of each request to it, by name.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub(crate) set_query: IndexMap<String, Setting>,
    /// Paths of its operations that differ from those of the protocol.
    #[serde(default)]
    pub(crate) paths: Paths,
    /// Members of the body of each text request to it, by name. They take precedence over those of clients.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub(crate) set_body: Map<String, Value>,
    /// Names of members to omit from the body of each text request to it. Default: none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(crate) omit_body: Vec<String>,
    /// Send the beta features of the messages protocol in the body, as `anthropic_beta`, instead of in a header. Default: false.
    pub(crate) betas_in_body: Option<bool>,
    /// Names of client request headers to forward. Default: none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(crate) headers: Vec<String>,
    /// Send it traceparent, so that it continues the trace of a request, if traces are exported. Default: true for the kind
    /// gatewright, else false.
    pub(crate) traceparent: Option<bool>,
    /// Maximum time to connect. Default: "10s".
    pub(crate) connect_timeout: Option<Time>,
    /// Maximum time from the request to the first byte of the response. Default: "10m".
    pub(crate) timeout: Option<Time>,
    /// Maximum time without data within a response. Default: "5m".
    pub(crate) idle_timeout: Option<Time>,
    /// Sends a request once more if the server closes a reused connection without an answer, although it may have read the
    /// request: it may charge for both. Default: false.
    pub(crate) retry_lost: Option<bool>,
    /// Maximum number of concurrent requests. Default: no limit.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(crate) max_concurrent: Option<u32>,
    /// Maximum number of requests per minute. Default: no limit.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(crate) max_requests_per_minute: Option<u32>,
    /// Where it runs, for information only.
    #[schemars(length(max = 64))]
    pub(crate) region: Option<String>,
    /// Where its chat server accepts instructions: "any" accepts the roles system and developer anywhere, "system_first" only one
    /// system message at the beginning. Default: "any".
    pub(crate) roles: Option<Roles>,
    /// The member with which its chat server limits the tokens of a response. Default: "max_tokens".
    pub(crate) token_limit: Option<TokenLimit>,
    /// Whether its chat server accepts custom tools, whose input is text. If not, they are sent as functions. Default: true.
    pub(crate) custom_tools: Option<bool>,
    /// Which ids of tool calls its chat server accepts: "any", or "nine_alphanumeric" (letters and digits). Other ids are replaced.
    /// Default: "any".
    pub(crate) call_ids: Option<CallIdForm>,
    /// Whether its chat server accepts a message of the user directly after the result of a tool. If not, an answer comes between
    /// them. Default: true.
    pub(crate) user_after_tool: Option<bool>,
    /// Whether its chat server accepts the reasoning of earlier responses (`reasoning_content`, `reasoning_details`). Default:
    /// true.
    pub(crate) reasoning_content: Option<bool>,
    /// Whether its chat server accepts `stream_options`, with which the gateway requests the usage of a stream. Default: true.
    pub(crate) stream_options: Option<bool>,
    /// Whether its chat or responses server has `/files` and `/batches`, which clients then can use. Default: false.
    pub(crate) files: Option<bool>,
    /// Whether clients may name images and documents in buckets (`s3://…`), which Bedrock reads with the rights of the gateway's
    /// credentials. Default: false.
    pub(crate) bucket_urls: Option<bool>,
}

/// Where requests carry the key of an upstream.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyIn {
    /// Name of the header.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) header: Option<String>,
    /// Prefix of the key in the header, such as "Bearer ". Default: none.
    #[schemars(length(max = 64))]
    pub(crate) prefix: Option<String>,
    /// Name of the query parameter, instead of a header.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) query: Option<String>,
}

/// The name of a built-in provider.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ProviderName(pub(crate) String);

impl JsonSchema for ProviderName {
    fn schema_name() -> Cow<'static, str> {
        "ProviderName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": presets::names().collect::<Vec<_>>() })
    }
}

/// A family of models. Its settings apply to its models unless they override them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Family {
    /// Name of the family in model lists. Default: its id.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) name: Option<String>,
    /// Whether requests of the responses protocol are translated for its models. Default: false.
    pub(crate) translate_responses: Option<bool>,
    /// Maximum number of tokens of a response if the request sets none and the upstream requires one. Default: 4096.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(crate) default_max_tokens: Option<u32>,
    /// Reject requests that the upstream's protocol cannot express. Default: false.
    pub(crate) strict: Option<bool>,
    /// How the messages protocol controls the thinking of its models. Default: "budget".
    pub(crate) thinking: Option<Thinking>,
}

/// A model that the gateway serves.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// Additional ids.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(crate) aliases: Vec<String>,
    /// What it generates. Default: as in the catalog for `limits` or the id, else text.
    pub(crate) kind: Option<ModelKind>,
    /// The embedding, image or video model of the catalog whose limits apply to requests. Default: the one with this id, if any;
    /// else only the rules for all models apply.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) limits: Option<String>,
    /// Its family. Default: that of the catalog, else the family with the protocol of the first target; for a
    /// model of another kind than text, gateway.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) family: Option<String>,
    /// Where requests go: by weight among the targets of the lowest order; if all of them fail, to the next order.
    #[schemars(length(min = 1, max = 64))]
    pub(crate) targets: Vec<Target>,
    /// Whether requests of the responses protocol are translated if its upstreams do not support it. Default: that of the family,
    /// else false.
    pub(crate) translate_responses: Option<bool>,
    /// Maximum number of tokens of a response if the request sets none and the upstream requires one. Default: that of the
    /// family, else 4096.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(crate) default_max_tokens: Option<u32>,
    /// Reject requests that the upstream's protocol cannot express, like the header x-gatewright-strict. Default: that of the
    /// family, else false.
    pub(crate) strict: Option<bool>,
    /// How the messages protocol controls its thinking: with a token budget, or only with an effort, for models that decide
    /// themselves how much they think. Default: that of the family, else "budget".
    pub(crate) thinking: Option<Thinking>,
}

/// An upstream of a model.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    /// Name of the upstream.
    pub(crate) upstream: String,
    /// The upstream's name for the model. Default: the id that clients send.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) model: Option<String>,
    /// Share of requests among the targets of the same order. Default: 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) weight: Option<u32>,
    /// Targets with a lower order come first. Default: 0.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(crate) order: Option<u32>,
    /// Its price. Default: the one in the file of `prices`.
    pub(crate) price: Option<Price>,
}

/// Prices in your currency. Token prices are per million tokens.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    /// Prompt tokens. Required together with output, unless there are prices of something else.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) input: Option<f64>,
    /// Generated tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) output: Option<f64>,
    /// Prompt tokens read from a cache. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) cached_input: Option<f64>,
    /// Prompt tokens written to a cache. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) cache_write: Option<f64>,
    /// Reasoning tokens. Default: as output.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) reasoning: Option<f64>,
    /// A generated image, in addition to its tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) image: Option<f64>,
    /// A second of generated video, in addition to its tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) video_second: Option<f64>,
    /// A second of sound that is transcribed or translated, in addition to its tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) audio_second: Option<f64>,
    /// A million characters that are read aloud, in addition to their tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) speech_characters: Option<f64>,
    /// Token prices for large prompts: the last tier whose above is smaller than the prompt applies to the whole request.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub(crate) tiers: Vec<PriceTier>,
}

/// Token prices for prompts above a size.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceTier {
    /// The tier applies to prompts with more tokens than this.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(crate) above: u64,
    /// Prompt tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) input: f64,
    /// Generated tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) output: f64,
    /// Prompt tokens read from a cache. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) cached_input: Option<f64>,
    /// Prompt tokens written to a cache. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) cache_write: Option<f64>,
    /// Reasoning tokens. Default: as output.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(crate) reasoning: Option<f64>,
}
