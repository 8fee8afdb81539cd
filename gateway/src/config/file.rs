//! What a configuration file may say. `gatewright config schema` prints these types as a JSON Schema, and the reader
//! judges files by the same schema. Everything is optional but what an upstream or a model is about.

use std::borrow::Cow;
use std::path::PathBuf;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::capabilities::{Roles, TokenLimit};
use super::envelope::Paths;
use super::log::{LogFormat, LogLevel};
use super::presets;
use super::secret::{Credential, Secret, Setting};
use super::units::{Size, Time};
use super::upstreams::{Kind, ModelKind, Thinking};

/// Configuration of a Gatewright gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    /// Where the gateway listens, and how clients reach it.
    pub(super) server: Server,
    /// What clients may hold and how long they may take.
    pub(super) limits: Limits,
    /// Who may call the gateway.
    pub(super) access: Access,
    /// What lasts beyond the process.
    pub(super) store: Store,
    /// What several gateways count together. Default: each counts for itself.
    pub(super) counters: Option<Counters>,
    /// Where generated files lie. Default: the folder of `store`, or memory.
    pub(super) files: Option<Files>,
    /// Notifications of finished video tasks.
    pub(super) webhooks: Webhooks,
    /// What the gateway tells its operators.
    pub(super) observe: Observe,
    /// Videos that providers make.
    pub(super) videos: Videos,
    /// The embedded provider.
    pub(super) simulator: Simulator,
    /// What the models of providers cost.
    pub(super) prices: Prices,
    /// The providers, by name. Default: the simulator alone, with the models of the catalog.
    #[schemars(extend("maxProperties" = 1000))]
    pub(super) upstreams: IndexMap<String, Upstream>,
    /// Families of models, by their id: what holds for all models of a family unless a model says otherwise.
    #[schemars(extend("maxProperties" = 1000))]
    pub(super) families: IndexMap<String, Family>,
    /// The models, by the id that clients send.
    #[schemars(extend("maxProperties" = 10000))]
    pub(super) models: IndexMap<String, Model>,
}

/// Where the gateway listens, and how clients reach it.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Server {
    /// Address to listen on, or a list of them; port 0 picks a free port. Default: "127.0.0.1:8080", or none if `tls`
    /// is there.
    pub(super) listen: Option<OneOrMany<Text>>,
    /// Address that serves /health/live, /health/ready and /metrics alone, or a list of them: probes get through while
    /// every connection is taken. Default: none; the other addresses serve them, too.
    pub(super) health_listen: Option<OneOrMany<Text>>,
    /// Addresses to listen on with TLS.
    pub(super) tls: Option<Tls>,
    /// Name among the gateways that share a store. Default: that of the machine.
    #[schemars(length(min = 1, max = 64))]
    pub(super) name: Option<String>,
    /// Scheme, host and port under which clients reach the gateway, for file URLs. Default: from the Host header.
    pub(super) public_url: Option<String>,
    /// Origins whose web pages may call the gateway (CORS), such as "https://app.example"; "*" allows all.
    #[schemars(length(max = 1000))]
    pub(super) allowed_origins: Option<Vec<String>>,
    /// Time that requests, video tasks and webhooks in progress get to finish at shutdown. Default: "5s".
    pub(super) shutdown_grace: Option<Time>,
    /// Time from the signal to stop until no further connection is accepted; meanwhile /health/ready answers 503.
    /// Default: "0s".
    pub(super) drain_delay: Option<Time>,
}

/// Addresses to listen on with TLS.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    /// Address to listen on, or a list of them.
    pub(super) listen: OneOrMany<Text>,
    /// PEM file of the certificate and those that it depends on. It is read again when it changes.
    pub(super) certificate: PathBuf,
    /// PEM file of the certificate's private key.
    pub(super) key: PathBuf,
}

/// What clients may hold and how long they may take.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    /// Maximum size of a request body, also without its content coding. Default: "10MiB".
    pub(super) max_body: Option<Size>,
    /// Maximum size of all generated files together; each is kept for one hour. Default: "256MiB".
    pub(super) max_files: Option<Size>,
    /// Maximum memory of all requests and answers in progress: what has to be read to its end before it is passed on, and what
    /// waits to be sent. Default: "512MiB".
    pub(super) max_held: Option<Size>,
    /// Maximum number of answers by idempotency key that a database keeps for repeated requests, of each operation; all
    /// of them together may take 8 KiB each. In memory, 1000 at most are kept. Default: 10000.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub(super) max_idempotent_answers: Option<u32>,
    /// How much one key may take of max_held, of max_files and of the places of video tasks while the gateway has other
    /// keys, in percent. Default: 50.
    #[schemars(range(min = 1, max = 100))]
    pub(super) max_percent_per_key: Option<u8>,
    /// Maximum number of open connections; further ones wait. Default: 1024.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) max_connections: Option<u32>,
    /// Maximum number of open connections per client address; further ones are refused. Default: 256.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) max_connections_per_peer: Option<u32>,
    /// Timeout for receiving the request headers, and for idle connections. Default: "60s".
    pub(super) header_timeout: Option<Time>,
    /// Timeout for receiving the request body. Default: "60s".
    pub(super) body_timeout: Option<Time>,
    /// Longest time that a client may read nothing of its response. Default: "60s".
    pub(super) write_timeout: Option<Time>,
}

/// Who may call the gateway.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Access {
    /// The key that clients must send. Default: a random one, printed at the start.
    pub(super) key: Option<Secret>,
    /// The key of the operations under /admin. Default: none, and no such operations.
    pub(super) admin_key: Option<Secret>,
}

/// What lasts beyond the process.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Store {
    /// Folder of the database and of generated files, from the folder of this file; true: `gatewright` in the user's data folder,
    /// which is ~/.local/share unless XDG_DATA_HOME says otherwise. Default: none, everything is in memory.
    pub(super) data: Option<DataFolder>,
    /// Postgres database instead, which several gateways may share, such as "postgres://user:password@host:5432/database".
    /// Default: none.
    pub(super) url: Option<Secret>,
    /// What the digests of keys are made with, 32 random bytes in base64; the same for all gateways that share a database.
    /// Default: a file in the data folder, which is made if it is missing.
    pub(super) pepper: Option<Secret>,
    /// Take upstreams, families and models from the store, where all its gateways share them: `gatewright config push` puts them
    /// there, and this file has none. Default: false.
    pub(super) shared_config: Option<bool>,
    /// Which secrets upstreams there may name, and so get: names of variables and paths of files, with * at the beginning or the end
    /// for anything. Default: `*_API_KEY` and `keys/*`.
    #[schemars(length(max = 1000))]
    pub(super) shared_secrets: Option<Vec<String>>,
}

/// A Redis or Valkey server, on which gateways count together what their keys use of their limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Counters {
    /// Its address, such as "redis://user:password@host:6379/0", or "rediss://…" with TLS.
    pub(super) url: Secret,
    /// How long a request waits for it; after that, the limits of each gateway alone hold until it answers again.
    /// Default: "50ms".
    pub(super) timeout: Option<Time>,
    /// How long the requests at once of a gateway that died count. Default: "30s".
    pub(super) lease: Option<Time>,
}

/// Where the data folder is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum DataFolder {
    /// Whether there is one, in its usual place.
    Usual(bool),
    At(PathBuf),
}

/// A bucket of S3, or of a service like it, in which generated files lie.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Files {
    /// The bucket, and the path in it, such as "s3://bucket/prefix".
    #[schemars(length(max = 1024))]
    pub(super) url: String,
    /// Default: "us-east-1".
    #[schemars(length(min = 1, max = 64))]
    pub(super) region: Option<String>,
    /// Scheme, host and port of the service. Default: that of AWS in the region.
    #[schemars(length(max = 2048))]
    pub(super) endpoint: Option<String>,
    /// The id of the access key.
    pub(super) access_key: Secret,
    /// The secret of the access key.
    pub(super) secret_key: Secret,
}

/// Notifications of finished video tasks.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Webhooks {
    /// The secret that signs webhooks, such as "whsec_…". Default: a random one, printed at the start; with a data folder it
    /// stays the same.
    pub(super) secret: Option<Secret>,
    /// Secrets of before, which sign webhooks, too, until receivers know the present one. Default: none.
    #[schemars(length(max = 10))]
    pub(super) previous_secrets: Vec<Secret>,
    /// Allow plain http and private addresses; for development. Default: false.
    pub(super) allow_private: Option<bool>,
    /// Pause before the second attempt to deliver; it triples each time, for twelve attempts. Default: "1s".
    pub(super) backoff: Option<Time>,
}

/// What the gateway tells its operators.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Observe {
    /// Serve /metrics to everyone who reaches the gateway. Default: false.
    pub(super) open_metrics: Option<bool>,
    /// What the log on standard error tells. Default: "warn".
    pub(super) log_level: Option<LogLevel>,
    /// Format of the log. Default: "text".
    pub(super) log_format: Option<LogFormat>,
    /// Address of an OpenTelemetry collector that gets a trace of each request over OTLP/HTTP. Default: none.
    #[schemars(length(max = 2048))]
    pub(super) otlp_endpoint: Option<String>,
}

/// Videos that providers make.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Videos {
    /// Pause between two questions to a provider about a video. Default: "5s".
    pub(super) poll: Option<Time>,
    /// Longest time for a video, until its file is here; after that, the task fails. Default: "1h".
    pub(super) timeout: Option<Time>,
    /// How long a task waits for a gateway that has died before another one takes it over. Default: "30s".
    pub(super) lease: Option<Time>,
}

/// What the models of providers cost.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Prices {
    /// File with prices and limits of models, from the folder of this file; `gatewright prices import` makes one. It is read again
    /// when it changes. Default: none, and only targets state prices.
    pub(super) file: Option<PathBuf>,
}

/// The embedded provider.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Simulator {
    /// Faults to inject into every response, such as "truncate=3@create_response".
    #[schemars(length(max = 100))]
    pub(super) faults: Vec<String>,
    /// Pause before each event of a stream. Default: "0s".
    pub(super) event_delay: Option<Time>,
    /// Minimum time of a video task. Default: "1.5s".
    pub(super) video_time: Option<Time>,
}

/// A provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Upstream {
    /// The provider behind it: what is known of it stands for the keys that this upstream does not have. `gatewright providers`
    /// lists them. Default: none, and kind and base_url are required.
    pub(super) provider: Option<ProviderName>,
    /// What it speaks. Default: as the provider does.
    pub(super) kind: Option<Kind>,
    /// Scheme, host, port and path to which the paths of the protocol are added, such as "https://api.example/v1".
    /// Default: that of the provider. Required otherwise of all kinds but simulator.
    #[schemars(length(max = 2048))]
    pub(super) base_url: Option<String>,
    /// Its key, or a list of keys: the next is used where one is refused for its rate or quota. A command that prints the key is run
    /// anew before its ttl ends. Default: the variable of the provider, else none is sent.
    pub(super) key: Option<OneOrMany<Credential>>,
    /// Where its key stands in a request: in a header, behind a prefix, or in the query. Default: as the kind says.
    pub(super) key_in: Option<KeyIn>,
    /// Headers that each request to it has, by name. They go before those of clients and of the gateway.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub(super) set_headers: IndexMap<String, Setting>,
    /// Parameters that the query of each request to it has, by name.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub(super) set_query: IndexMap<String, Setting>,
    /// Paths of its operations that are not those of the protocol.
    #[serde(default)]
    pub(super) paths: Paths,
    /// Members that the body of each text request to it has, by name. They go before those of clients.
    #[serde(default)]
    #[schemars(extend("maxProperties" = 100))]
    pub(super) set_body: Map<String, Value>,
    /// Names of members that are left out of the body of each text request to it. Default: none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(super) omit_body: Vec<String>,
    /// Send the beta features of the messages protocol in the body, as `anthropic_beta`, and not in a header. Default: false.
    pub(super) betas_in_body: Option<bool>,
    /// Names of request headers of clients that are passed on. Default: none.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(super) headers: Vec<String>,
    /// Send it traceparent, by which it continues the trace of a request, where traces are exported. Default: true for the kind
    /// gatewright, else false.
    pub(super) traceparent: Option<bool>,
    /// Maximum time to connect. Default: "10s".
    pub(super) connect_timeout: Option<Time>,
    /// Maximum time from the request to the first byte of the answer. Default: "10m".
    pub(super) timeout: Option<Time>,
    /// Maximum silence within an answer. Default: "5m".
    pub(super) idle_timeout: Option<Time>,
    /// Sends a request once more if the server closes a reused connection without an answer, although it may have read the
    /// request: it may charge for both. Default: false.
    pub(super) retry_lost: Option<bool>,
    /// Maximum number of requests at once. Default: no limit.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) max_concurrent: Option<u32>,
    /// Maximum number of requests a minute. Default: no limit.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) max_requests_per_minute: Option<u32>,
    /// Where it runs, for people.
    #[schemars(length(max = 64))]
    pub(super) region: Option<String>,
    /// Where its chat server takes instructions: "any" takes the roles system and developer anywhere, "system_first" one system
    /// message at the beginning. Default: "any".
    pub(super) roles: Option<Roles>,
    /// The member by which its chat server limits the tokens of an answer. Default: "max_tokens".
    pub(super) token_limit: Option<TokenLimit>,
    /// Whether its chat server takes custom tools, whose input is text. If not, they are sent as functions. Default: true.
    pub(super) custom_tools: Option<bool>,
    /// Whether its chat server takes the reasoning of earlier answers (`reasoning_content`, `reasoning_details`). Default:
    /// true.
    pub(super) reasoning_content: Option<bool>,
    /// Whether its chat server takes `stream_options`, by which the gateway asks for the usage of a stream. Default: true.
    pub(super) stream_options: Option<bool>,
}

/// Where the key of an upstream stands in a request.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyIn {
    /// Name of the header that holds it.
    #[schemars(length(min = 1, max = 256))]
    pub(super) header: Option<String>,
    /// What stands before it in the header, such as "Bearer ". Default: nothing.
    #[schemars(length(max = 64))]
    pub(super) prefix: Option<String>,
    /// Name of the parameter of the query that holds it, instead of a header.
    #[schemars(length(min = 1, max = 256))]
    pub(super) query: Option<String>,
}

/// The name of a provider that is known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct ProviderName(pub(super) String);

impl JsonSchema for ProviderName {
    fn schema_name() -> Cow<'static, str> {
        "ProviderName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": presets::names().collect::<Vec<_>>() })
    }
}

/// A family of models. Its models have what it says, unless they say otherwise.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Family {
    /// Name of the family in model lists. Default: its id.
    #[schemars(length(min = 1, max = 64))]
    pub(super) name: Option<String>,
    /// Whether the responses protocol reaches its models by translation. Default: false.
    pub(super) translate_responses: Option<bool>,
    /// Maximum number of tokens of an answer where a request states none and the upstream needs one. Default: 4096.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) default_max_tokens: Option<u32>,
    /// Refuse what the upstream's protocol cannot say. Default: false.
    pub(super) strict: Option<bool>,
    /// How its models are told to think by the messages protocol. Default: "budget".
    pub(super) thinking: Option<Thinking>,
}

/// A model that the gateway offers.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    /// Further ids.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub(super) aliases: Vec<String>,
    /// What it makes. Default: as the catalog says of `limits` or of the id, else text.
    pub(super) kind: Option<ModelKind>,
    /// The image or video model of the catalog whose limits requests keep to. Default: the one of this id, if there is one;
    /// else only the rules for all models hold.
    #[schemars(length(min = 1, max = 256))]
    pub(super) limits: Option<String>,
    /// Its family. Default: that of the catalog, else the family that speaks as the first target does; that of an image or
    /// video model is gateway.
    #[schemars(length(min = 1, max = 64))]
    pub(super) family: Option<String>,
    /// Where requests go: all of the lowest order by weight, then the next order where those fail.
    #[schemars(length(min = 1, max = 64))]
    pub(super) targets: Vec<Target>,
    /// Whether the responses protocol reaches it by translation, where its upstreams do not speak it. Default: as the
    /// family says, else false.
    pub(super) translate_responses: Option<bool>,
    /// Maximum number of tokens of an answer where a request states none and the upstream needs one. Default: as the
    /// family says, else 4096.
    #[schemars(range(min = 1, max = 4_294_967_295_u32))]
    pub(super) default_max_tokens: Option<u32>,
    /// Refuse what the upstream's protocol cannot say, as the header x-gatewright-strict does. Default: as the family
    /// says, else false.
    pub(super) strict: Option<bool>,
    /// How an upstream with the messages protocol tells it to think: by a budget of tokens, or by an effort alone, for
    /// models that decide themselves how much they think. Default: as the family says, else "budget".
    pub(super) thinking: Option<Thinking>,
}

/// An upstream of a model.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// Name of the upstream.
    pub(super) upstream: String,
    /// What the upstream calls the model. Default: the id that clients send.
    #[schemars(length(min = 1, max = 256))]
    pub(super) model: Option<String>,
    /// Share of the requests among the targets of the same order. Default: 1.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) weight: Option<u32>,
    /// Lower ones come first. Default: 0.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub(super) order: Option<u32>,
    /// What it costs. Default: as the file of `prices` says.
    pub(super) price: Option<Price>,
}

/// Prices in your currency. Those of tokens are for a million of them.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Price {
    /// Tokens of the prompt. Required with output, unless image or video_second is the only price.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) input: Option<f64>,
    /// Generated tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) output: Option<f64>,
    /// Tokens of the prompt that a cache has. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) cached_input: Option<f64>,
    /// Tokens of the prompt that are written to a cache. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) cache_write: Option<f64>,
    /// Generated tokens of reasoning. Default: as output.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) reasoning: Option<f64>,
    /// An image that the model makes, beside its tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) image: Option<f64>,
    /// A second of a video that the model makes, beside its tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) video_second: Option<f64>,
    /// Prices of tokens for large prompts: the last tier whose above is smaller than the prompt holds for all of its request.
    #[serde(default)]
    #[schemars(length(max = 16))]
    pub(super) tiers: Vec<PriceTier>,
}

/// Prices of tokens for prompts above a size.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceTier {
    /// The tier holds for prompts of more tokens than this.
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub(super) above: u64,
    /// Tokens of the prompt.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) input: f64,
    /// Generated tokens.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) output: f64,
    /// Tokens of the prompt that a cache has. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) cached_input: Option<f64>,
    /// Tokens of the prompt that are written to a cache. Default: as input.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) cache_write: Option<f64>,
    /// Generated tokens of reasoning. Default: as output.
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub(super) reasoning: Option<f64>,
}

/// One value, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The values with their indexes in the list; `None` for a single value.
    pub(super) fn into_values(self) -> Vec<(Option<usize>, T)> {
        match self {
            Self::One(one) => vec![(None, one)],
            Self::Many(many) => many.into_iter().enumerate().map(|(at, one)| (Some(at), one)).collect(),
        }
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    /// The schema of a single value, which ignores lists, merged with the constraints on lists: without `anyOf`, an
    /// error refers to one of the two.
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = T::json_schema(generator);
        let mut schema = one.clone();
        let kind = one.get("type").cloned().unwrap_or_default();
        schema.insert("type".to_owned(), serde_json::json!([kind, "array"]));
        schema.insert("items".to_owned(), one.into());
        schema.insert("minItems".to_owned(), 1.into());
        schema.insert("maxItems".to_owned(), 100.into());
        schema
    }
}

/// A text that is not empty.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Text(pub(super) String);

impl JsonSchema for Text {
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 256 })
    }
}
