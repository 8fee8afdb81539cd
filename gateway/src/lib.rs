//! The Gatewright gateway: every operation of the specification behind one key, answered offline by an embedded
//! simulated provider.
//!
//! ```no_run
//! use gatewright_gateway::{Config, Gateway};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::bind(Config { listen: vec!["127.0.0.1:0".to_owned()], ..Config::default() }).await?;
//! println!("{} {}", gateway.url(), gateway.key().expose());
//! gateway.serve(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
//!
//! A request passes [`Gateway`] (connection limits, key, route), then the generated route table, and reaches the method
//! of its operation. An operation without a method is answered with 501.
//!
//! # What the simulated provider does
//!
//! - If the prompt asks it to repeat, say or reply with something, it answers with exactly that. It echoes quoted
//!   strings and tokens such as `COMPAT-1a2b3c` from other prompts, and counts for `count to 10`. `max_tokens`, `stop`
//!   and `n` work as with a real provider. Equal requests get equal answers.
//! - It returns log probabilities on request, and counts images as tokens. It rejects `background`.
//! - It rejects requests that exceed a fixed number of steps and bytes, with `request_too_costly`.
//! - It calls the tools that a request forces or that the prompt names, with arguments that match their schema.
//! - It draws images and encodes videos at the requested size. A video whose prompt contains [`FAILURE_MARKER`], or
//!   `[fail: some message]`, ends as `failed`.
//! - It injects faults on request, so that users can test their error handling: see [`FAULTS`] and [`FAULT_HEADER`].
//!
//! It has no stable interface: it is a part of the program `gatewright` (`gatewright serve`), whose needs it follows,
//! and may change in any 0.x version.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod access;
mod app;
mod batches;
mod bounds;
mod budgets;
mod compaction;
#[cfg(test)]
mod converse_tests;
mod counters;
mod fault;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
#[expect(unreachable_pub, reason = "generated code says pub; what of it is public is re-exported below")]
mod generated;
mod media;
mod model_kinds;
mod model_scope;
mod models;
mod node_registry;
mod observe;
mod offers;
mod provider_setup;
mod relay;
mod routing;
mod server;
mod service;
mod shared;
#[cfg(feature = "console")]
mod sign_in;
mod storage;
mod stored_responses;
mod tasks;
mod upstream;
mod usage;
#[cfg(test)]
mod video_task_tests;
mod webhooks;
mod wire;
mod work;

pub use gatewright_config::{
    ApplicationDefault, Bucket, CallIdForm, Capabilities, ClientCredentials, Config, ConfigFile,
    CounterServer, CountersUrl, Envelope, FAULT_HEADER, FAULTS, Faults, InvalidCountersUrl, InvalidFault,
    KeyCommand, KeyFile, KeyPlace, KeySource, Kind, ListedModel, Log, LogFormat, LogLevel, ModelConfig,
    ModelKind, ModelPrice, NoHome, Paths, Preset, PriceList, PricesOf, Problem, Problems, RequestSetting,
    Roles, STARTING_FILE, SharedConfig, Sharing, SigV4Credentials, TargetConfig, Thinking, TieredPrice,
    TlsConfig, TlsError, TokenLimit, TokenPrice, UpstreamConfig, Watch, check_base_url, check_model_id,
    default_data_folder, preset, presets, schema as config_schema, weak_key,
};
pub use gatewright_store::{
    InvalidMember, InvalidPepper, InvalidStoreUrl, IssuedKey, Key, KeyLimits, KeyUpdate, NewKey, Pepper,
    Rotation, Scopes, StoreUrl, UsageQuery, UsageRow, random_key,
};

pub use crate::access::{
    ApiKey, InvalidData, InvalidKey, Node, Notification, Registry, RegistryError, VideoTask,
};
pub use crate::budgets::models_outside_budget;
pub use crate::generated::admin;
pub use crate::generated::routes::{Service, dispatch};
pub use crate::media::FAILURE_MARKER;
pub use crate::observe::{Traces, TracesError};
pub use crate::offers::{Offer, offers};
pub use crate::provider_setup::{ModelSource, ProviderChoice, ProviderSetup};
pub use crate::server::{BindError, Control, Embedded, Gateway, Reloaded};
pub use crate::server::{Match, match_route};
pub use crate::shared::{ConfigDocument, ConfigPush, ConfigPushed, ConfigRevision};
pub use crate::wire::{Body, BodyError, Call, Response, not_implemented};
