//! The configuration of the Gatewright gateway: the structure that it takes, and the file format.
//!
//! `reading` turns text into a [`ConfigFile`] in three steps: TOML, the JSON Schema of `file`'s types, and `resolve`,
//! which knows the rules between keys and looks up secrets. Each step reports all its findings, with their positions.
//!
//! The crate reads files and variables, and starts nothing: no sockets, no requests.
//! It has no stable interface: it is a part of the crate `gatewright-gateway`.

mod addresses;
mod bucket;
mod counters;
mod data_folder;
mod envelope;
mod faults;
mod file;
mod key_source;
mod keys;
mod log;
mod model_price;
mod presets;
mod prices;
mod problem;
mod reading;
#[cfg(test)]
mod reading_tests;
mod resolve;
mod schema;
mod secret;
mod shared;
mod sharing;
mod source_map;
mod tls;
mod toml_as_json;
mod units;
mod upstreams;
mod watch;

use std::path::PathBuf;
use std::time::Duration;

use gatewright::webhook::Secret;
use gatewright::{ApiKey, catalog};
pub use gatewright_protocol::{CallIdForm, Capabilities, Roles, Thinking, TokenLimit};
use gatewright_store::{Pepper, StoreUrl};

pub use self::addresses::{
    check_base_url, check_credentials_url, check_token_url, is_listen_address, is_origin,
};
pub use self::bucket::Bucket;
pub use self::counters::{CounterServer, CountersUrl, InvalidCountersUrl};
pub use self::data_folder::{NoHome, default_data_folder};
pub use self::envelope::{Envelope, MODEL_PLACEHOLDER, Paths};
pub use self::faults::{FAULT_HEADER, FAULTS, Fault, Faults, InvalidFault, RETRY_AFTER_S};
pub use self::key_source::{ApplicationDefault, ClientCredentials, KeyFile, KeySource, SigV4Credentials};
pub use self::keys::{KeyCommand, KeyPlace, RequestSetting};
pub use self::log::{Log, LogFormat, LogLevel};
pub use self::model_price::{ModelPrice, TieredPrice, TokenPrice};
pub use self::presets::{Preset, preset, presets};
pub use self::prices::{ListedModel, PriceList, PricesOf};
pub use self::problem::{Problem, Problems};
pub use self::reading::{ConfigFile, read_text};
pub use self::resolve::{check_model_id, weak_key};
pub use self::schema::schema;
pub use self::shared::SharedConfig;
pub use self::sharing::Sharing;
pub use self::tls::{TlsConfig, TlsError};
pub use self::upstreams::{Kind, ModelConfig, ModelKind, TargetConfig, UpstreamConfig};
pub use self::watch::Watch;

/// A configuration file to start from: everything in it is a comment and states the default.
pub const STARTING_FILE: &str = include_str!("starting.toml");

/// Name of the simulator among the upstreams of the default configuration.
const SIMULATOR: &str = "simulator";

/// Family of the models that generate images and videos: the catalog states none.
const MEDIA_FAMILY: &str = "gateway";

/// Configuration of a gateway. Start from [`Config::default`] and change fields.
#[derive(Debug, Clone)]
pub struct Config {
    /// Addresses to listen on, such as `127.0.0.1:8080`; port 0 picks a free port. Default: `127.0.0.1:8080`.
    pub listen: Vec<String>,
    /// Addresses that serve only `/health/live`, `/health/ready` and `/metrics`, without TLS, with their own connection
    /// limit. Default: none; the other addresses serve them, too.
    pub health_listen: Vec<String>,
    /// Further addresses, served with TLS. Default: none.
    pub tls: Option<TlsConfig>,
    /// Name among the gateways that share a store. Default: the machine's.
    pub name: Option<String>,
    /// The key that clients must send (section 5). Default: a new random one, see
    /// `Gateway::key`.
    pub key: Option<ApiKey>,
    /// The key of `/admin`, through which keys are managed. Default: none; `/admin` is not served.
    pub admin_key: Option<ApiKey>,
    /// Folder of the database, which stores keys, usage and tasks, of the pepper, and of generated files; created if it
    /// is missing. Default: none; everything is in memory.
    pub data: Option<PathBuf>,
    /// Postgres database that stores keys and usage instead, for all gateways that share it. Default: none.
    pub store: Option<StoreUrl>,
    /// Keys the digests of API keys; the same for all gateways of one store. Default: the file `pepper` in the data folder,
    /// which is created if it is missing.
    pub pepper: Option<Pepper>,
    /// Takes the providers and models from the store, where gateways share them, instead of `upstreams` and `models`.
    /// Default: no.
    pub shared_config: Option<Sharing>,
    /// Redis or Valkey server on which gateways jointly count requests and tokens per minute and concurrent requests.
    /// Default: none; each counts for itself.
    pub counters: Option<CounterServer>,
    /// Bucket for generated files. Default: none; they are in the data folder.
    pub files: Option<Bucket>,
    /// Scheme, host and port under which clients reach the gateway, for file URLs: `{api_base_url}` (4 rule 4). Default: from the
    /// `Host` header of the request.
    pub public_url: Option<String>,
    /// Maximum size of a request body. Default: 10 MiB.
    pub max_body_bytes: usize,
    /// Maximum number of open connections; for a further one, the longest silent connection is closed. Default: 1024.
    pub max_connections: usize,
    /// Maximum number of open connections per peer, an IPv4 address or an IPv6 /64 network; further ones get 429.
    /// Default: 256.
    pub max_connections_per_peer: usize,
    /// Timeout for receiving the request headers, and for idle connections; for the first request of a connection, it is 10 s
    /// at most. Default: 60 s.
    pub header_timeout: Duration,
    /// Timeout for receiving the request body. Default: 60 s.
    pub body_timeout: Duration,
    /// Longest time that a client may read nothing of a pending response; after that, the connection is reset.
    /// Default: 60 s.
    pub write_timeout: Duration,
    /// Origins whose web pages may call the gateway (CORS), such as `https://app.example`; `*` allows all.
    /// Default: none.
    pub allowed_origins: Vec<String>,
    /// Time that requests, video tasks and their webhooks get to finish at shutdown. Default: 5 s.
    pub shutdown_grace: Duration,
    /// Time from the stop signal until no further connection is accepted. Meanwhile `/health/ready` answers 503, so
    /// that a load balancer sends no further requests. Default: none.
    pub drain_delay: Duration,
    /// Serves `/metrics` to everybody who can reach the gateway. Default: false.
    pub open_metrics: bool,
    /// Pause of the simulated provider before each event of a stream. Default: none.
    pub event_delay: Duration,
    /// Minimum time that a simulated video task is `processing` (section 3). Default: 1.5 s.
    pub video_time: Duration,
    /// Whether images at URLs of providers are fetched, and served from `/files/` (4 rule 4). Default: false.
    pub fetch_images: bool,
    /// Polling interval for videos at providers. Default: 5 s.
    pub video_poll: Duration,
    /// First pause between two requests for a batch at a provider; later ones are longer, up to a minute. Default: 10 s. Files can't
    /// set it.
    pub batch_poll: Duration,
    /// Maximum time for a provider to make a video, until its file is stored here. Default: 1 h.
    pub video_timeout: Duration,
    /// How long a video task of a gateway that died waits before another one, or the restarted one, takes it over.
    /// Default: 30 s.
    pub video_lease: Duration,
    /// Maximum size of all generated images and videos together, each kept for an hour (8); requests that need more are
    /// rejected. Default: 256 MiB.
    pub max_file_bytes: usize,
    /// Maximum memory of all requests and answers in progress: bodies of requests and what is made of them, whole answers, events
    /// that have to be read to their end, and what waits to be sent; requests that need more fail. Default: 512 MiB.
    pub max_held_bytes: usize,
    /// How many answers per operation a database keeps for repeated requests with an idempotency key; all of them together
    /// may take 8 KiB each. Without a database, at most 1,000. Default: 10,000.
    pub max_idempotent_answers: usize,
    /// How much of `max_held_bytes`, of `max_file_bytes` and of the video task slots one API key may take while the
    /// gateway has other keys, in percent, from 1 to 100. Default: 50.
    pub max_percent_per_key: u8,
    /// Secret that signs webhooks. Default: a random one, which is preserved if there is a data folder, see
    /// `Gateway::webhook_secret`.
    pub webhook_secret: Option<Secret>,
    /// Earlier secrets, which also sign webhooks until receivers know the current one. Default: none.
    pub webhook_previous_secrets: Vec<Secret>,
    /// Pause before the second attempt to deliver a webhook; it triples each time, for twelve attempts. Default: 1 s.
    pub webhook_backoff: Duration,
    /// Allows `webhook_url` to use plain http and private addresses. For tests only. Default: false.
    pub allow_private_webhooks: bool,
    /// Of how many of the newest requests the content is kept in memory, readable with the admin key: up to 64 KiB of each body.
    /// At most 500. Default: 0, none.
    pub content_requests: usize,
    /// How long it is kept. Default: 15 min.
    pub content_time: Duration,
    /// Currency of all prices, such as `EUR`, for display. Default: none.
    pub currency: Option<String>,
    /// Faults to inject into every response, besides those that requests ask for. Default: none.
    pub faults: Faults,
    /// The providers. Default: the simulator alone.
    pub upstreams: Vec<UpstreamConfig>,
    /// The models. Default: those of the catalog, answered by the simulator.
    pub models: Vec<ModelConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec!["127.0.0.1:8080".to_owned()],
            health_listen: Vec::new(),
            tls: None,
            name: None,
            key: None,
            admin_key: None,
            data: None,
            store: None,
            pepper: None,
            shared_config: None,
            counters: None,
            files: None,
            public_url: None,
            max_body_bytes: 10 * 1024 * 1024,
            max_connections: 1024,
            max_connections_per_peer: 256,
            header_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_mins(1),
            write_timeout: Duration::from_mins(1),
            allowed_origins: Vec::new(),
            shutdown_grace: Duration::from_secs(5),
            drain_delay: Duration::ZERO,
            open_metrics: false,
            event_delay: Duration::ZERO,
            video_time: Duration::from_millis(1500),
            fetch_images: false,
            video_poll: Duration::from_secs(catalog::VIDEO_POLL_INTERVAL_S.into()),
            batch_poll: Duration::from_secs(10),
            video_timeout: Duration::from_hours(1),
            video_lease: Duration::from_secs(30),
            max_file_bytes: 256 * 1024 * 1024,
            max_held_bytes: 512 * 1024 * 1024,
            max_idempotent_answers: 10_000,
            max_percent_per_key: 50,
            webhook_secret: None,
            webhook_previous_secrets: Vec::new(),
            webhook_backoff: Duration::from_secs(1),
            allow_private_webhooks: false,
            content_requests: 0,
            content_time: Duration::from_mins(15),
            currency: None,
            faults: Faults::default(),
            upstreams: vec![UpstreamConfig::new(SIMULATOR, Kind::Simulator, "")],
            models: simulated_models(),
        }
    }
}

impl Config {
    /// The targets whose requests have no known cost, with their models. The simulator is free.
    pub fn unpriced_targets(&self) -> impl Iterator<Item = (&ModelConfig, &TargetConfig)> {
        let is_free = |target: &TargetConfig| {
            let mut upstreams = self.upstreams.iter();
            upstreams.any(|upstream| upstream.name == target.upstream && upstream.kind == Kind::Simulator)
        };
        let targets =
            self.models.iter().flat_map(|model| model.targets.iter().map(move |target| (model, target)));
        targets.filter(move |(_, target)| target.price.is_none() && !is_free(target))
    }

    /// The number of its upstreams and models, in words.
    pub fn offer(&self) -> String {
        match self.shared_config {
            Some(_) => "upstreams and models are in the store".to_owned(),
            None => offered(self.upstreams.len(), self.models.len()),
        }
    }
}

/// `1 upstream, 2 models`.
pub fn offered(upstreams: usize, models: usize) -> String {
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    format!("{}, {}", counted(upstreams, "upstream"), counted(models, "model"))
}

/// The models of the catalog, answered by the simulator.
fn simulated_models() -> Vec<ModelConfig> {
    let text = catalog::TEXT_MODELS.iter().map(|model| (model.id, model.family));
    let videos = catalog::VIDEO_MODELS.iter().map(|model| (model.id, MEDIA_FAMILY));
    let images = catalog::IMAGE_MODELS.iter().map(|model| (model.id, MEDIA_FAMILY));
    let embeddings = catalog::EMBEDDING_MODELS.iter().map(|model| (model.id, MEDIA_FAMILY));
    let plain = catalog::PLAIN_MODELS.iter().map(|model| (model.id, MEDIA_FAMILY));
    let all = text.chain(embeddings).chain(plain).chain(videos).chain(images);
    all.map(|(id, family)| ModelConfig::new(id, family, TargetConfig::new(SIMULATOR, id))).collect()
}
