//! Client for the Gatewright gateway: chat completions, responses, messages, native generate-content, embeddings,
//! reranking, moderation, images and videos with one key. Also validates compatibility reports.
//!
//! ```no_run
//! use futures_util::TryStreamExt;
//! use gatewright::Client;
//! use gatewright::types::{ChatCompletionRequest, ChatMessage};
//!
//! # async fn example() -> Result<(), gatewright::Error> {
//! // GATEWRIGHT_BASE_URL (default http://127.0.0.1:8080) and GATEWRIGHT_API_KEY.
//! let client = Client::from_env()?;
//! let request = ChatCompletionRequest::new("model-sol", vec![ChatMessage::user("What is a gateway?")]);
//!
//! let completion = client.chat().completions().create(&request).await?;
//! println!("{}", completion.text().unwrap_or_default());
//!
//! let mut chunks = client.chat().completions().stream(&request).await?;
//! while let Some(chunk) = chunks.try_next().await? {
//!     print!("{}", chunk.text().unwrap_or_default());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Every operation has a typed method on a resource of [`Client`] and a raw form through [`Client::call`] and
//! [`Client::open`]; both use the same transport, which retries, enforces limits and explains failures. Every failure
//! is one [`Error`] with an [`ErrorKind`]. Types preserve unknown members in `extra`.
//!
//! [`limits`] checks requests against the specification and the catalog; [`report`] validates reports; [`sse`]
//! decodes event streams; [`redact`] removes secrets from text, and [`visible`] escapes characters that could control
//! a terminal. Everything runs on a Tokio runtime.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod api;
#[cfg(feature = "client")]
mod client;
#[cfg(all(feature = "client", any(test, fuzzing)))]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "client")]
mod jobs;
#[doc(hidden)]
pub mod runtime;
#[cfg(test)]
mod schema_loop;
#[cfg(feature = "client")]
mod stream;
#[cfg(feature = "schemars")]
mod structured;
#[cfg(feature = "schemars")]
mod tools;
#[cfg(feature = "client")]
mod transport;
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, unused_imports, unused_macros, reason = "the client alone uses all of it")
)]
mod wire;

pub use crate::api::chunk::Chunk;
pub use crate::api::file_part::FilePart;
pub use crate::api::generated::error_kinds::{ErrorCode, ErrorKind};
pub use crate::api::operation::Operation;
pub use crate::api::{catalog, operations, types};
#[cfg(feature = "client")]
pub use crate::client::{Client, ClientBuilder, resources};
#[cfg(feature = "client")]
pub use crate::jobs::files::{Download, Saved, check_place};
#[cfg(feature = "client")]
pub use crate::jobs::generated::options::{
    DEFAULT_MAX_FILE_BYTES, DEFAULT_WAIT_TIMEOUT, OnProgress, SaveOptions, WaitOptions,
};
#[cfg(feature = "client")]
pub use crate::jobs::videos::VideoWatch;
#[cfg(feature = "client")]
pub use crate::stream::prefetch as read_ahead;
#[cfg(feature = "client")]
pub use crate::stream::{
    Accumulator, ChatEvent, ChatEvents, EventStream, MessageEvent, MessageEvents, NoValue, RawStream,
    ResponseEvent, ResponseEvents,
};
#[cfg(feature = "schemars")]
pub use crate::structured::{Parsed, ParsedStream};
#[cfg(feature = "schemars")]
pub use crate::tools::{Tool, ToolLoop, ToolRun};
#[cfg(feature = "client")]
pub use crate::transport::clock::{Clock, MAX_TIME, SystemClock, time_of_seconds};
#[cfg(feature = "client")]
#[doc(hidden)]
pub use crate::transport::connecting::environment_proxy;
#[cfg(feature = "client")]
pub use crate::transport::generated::options::{
    API_KEY_VARIABLE, BASE_URL_VARIABLE, CA_BUNDLE_VARIABLE, DEFAULT_BASE_URL, DEFAULT_CONNECT_TIMEOUT,
    DEFAULT_EVENT_TIMEOUT, DEFAULT_IDLE_CONNECTION_TIMEOUT, DEFAULT_IDLE_TIMEOUT, DEFAULT_MAX_BODY_BYTES,
    DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_IDLE_CONNECTIONS, DEFAULT_MAX_RETRIES, DEFAULT_POOL_TIMEOUT,
    DEFAULT_TIMEOUT, RequestOptions,
};
#[cfg(feature = "client")]
#[doc(hidden)]
pub use crate::transport::idempotency::key_of_round;
#[cfg(feature = "client")]
pub use crate::transport::log::LOG_VARIABLE;
#[cfg(feature = "client")]
pub use crate::transport::middleware::{Attempt, Middleware, Outcome};
#[cfg(feature = "client")]
pub use crate::transport::options::Call;
#[cfg(feature = "client")]
pub use crate::transport::response::{RawResponse, Response};
#[cfg(feature = "client")]
pub use crate::transport::secret::ApiKeyProvider;
pub use crate::wire::api_key::{ApiKey, InvalidKey};
pub use crate::wire::error::{Error, Received};
pub use crate::wire::error_body::{ErrorBody, MAX_ERROR_BODY_BYTES};
pub use crate::wire::json_weight::{is_light, weight as json_weight};
#[cfg(feature = "client")]
#[doc(hidden)]
pub use crate::wire::long_integers::members as members_of_json;
#[cfg(feature = "client")]
pub use crate::wire::multipart::MAX_FORM_BYTES;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use crate::wire::panics::on_purpose;
pub use crate::wire::panics::{contain, contained};
#[cfg(feature = "client")]
#[doc(hidden)]
pub use crate::wire::repair::surrogates as without_lone_surrogates;
pub use crate::wire::secret_names::is_secret_name;
pub use crate::wire::sse::{Frame, StreamEvent};
pub use crate::wire::{limits, redact, sse, webhook};
/// What a [`Clock`], a [`Middleware`] and an [`ApiKeyProvider`] return.
#[cfg(feature = "client")]
pub use futures_util::future::BoxFuture;
#[cfg(feature = "report")]
pub use gatewright_report as report;
pub use gatewright_safe::{did_you_mean, visible, whole_file};
/// The crate of the types that [`Parsed`] and [`Tool`] take: `use gatewright::schemars::{self, JsonSchema}` derives its trait
/// without a dependency of your own.
#[cfg(feature = "schemars")]
pub use schemars_1 as schemars;

/// The Rust code of docs/guides, as tests; they need a gateway, which `cargo xtask test guides` starts.
#[cfg(all(doctest, guides))]
mod guides {
    #[doc = include_str!("../../docs/guides/streams.md")]
    struct Streams;
    #[doc = include_str!("../../docs/guides/reasoning-and-caching.md")]
    struct ReasoningAndCaching;
    #[doc = include_str!("../../docs/guides/production.md")]
    struct Production;
    #[doc = include_str!("../../docs/guides/embeddings.md")]
    struct Embeddings;
    #[doc = include_str!("../../docs/guides/rerank-and-moderation.md")]
    struct RerankAndModeration;
    #[doc = include_str!("../../docs/guides/audio.md")]
    struct Audio;
    #[doc = include_str!("../../docs/guides/batches.md")]
    struct Batches;
    #[doc = include_str!("../../docs/guides/long-work.md")]
    struct LongWork;
    #[cfg(feature = "schemars")]
    #[doc = include_str!("../../docs/guides/rust.md")]
    struct RustClient;
    #[doc = include_str!("../../docs/tutorial.md")]
    struct Tutorial;
    #[doc = include_str!("../../docs/reference/rust.md")]
    struct Reference;
}
