//! Client of the Gatewright gateway: chat completions, responses, native generate-content, images and videos over
//! one key, and the validator of compatibility reports.
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
//! Every operation has a typed method on a resource of [`Client`] and a raw form by [`Client::call`] and
//! [`Client::open`]; both go through the same transport, which retries, bounds and explains. What goes wrong is
//! one [`Error`] with an [`ErrorKind`]. Types keep members they do not know in `extra`.
//!
//! [`limits`] checks requests against the specification and the catalog; [`report`] validates reports; [`sse`] is
//! the decoder of event streams; [`redact`] takes secrets out of texts and [`visible`] what a terminal would act on.
//! All of it runs on a Tokio runtime.

mod base_url;
mod chat;
mod client;
mod clock;
mod error;
mod error_body;
mod files;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
#[expect(unreachable_pub, reason = "what of it is public is named below")]
mod generated;
mod images;
mod json_weight;
pub mod limits;
mod log;
mod middleware;
mod native;
mod operation;
mod options;
mod panics;
mod polling;
mod presence;
pub mod redact;
pub mod report;
mod response;
mod responses;
mod retry;
#[cfg(test)]
mod schema_loop;
mod secret;
pub mod sse;
mod stream;
mod tls;
mod trace;
mod transport;
mod videos;
pub mod visible;
pub mod webhook;
pub mod whole_file;

pub use crate::base_url::DEFAULT_BASE_URL;
pub use crate::client::{
    API_KEY_VARIABLE, BASE_URL_VARIABLE, Client, ClientBuilder, DEFAULT_CONNECT_TIMEOUT,
    DEFAULT_EVENT_TIMEOUT, DEFAULT_IDLE_CONNECTION_TIMEOUT, DEFAULT_IDLE_TIMEOUT, DEFAULT_MAX_BODY_BYTES,
    DEFAULT_MAX_CONNECTIONS, DEFAULT_MAX_IDLE_CONNECTIONS, DEFAULT_POOL_TIMEOUT, DEFAULT_TIMEOUT,
};
pub use crate::clock::{Clock, LONGEST_TIME, SystemClock, time_of_seconds};
pub use crate::error::{Error, ErrorCode, ErrorKind, Received};
pub use crate::error_body::ErrorBody;
pub use crate::files::{DEFAULT_MAX_FILE_BYTES, Download, SaveOptions, Saved, check_place};
pub use crate::generated::{catalog, operations, resources, types};
pub use crate::json_weight::is_light;
pub use crate::log::LOG_VARIABLE;
pub use crate::middleware::{Attempt, Middleware, Outcome};
pub use crate::operation::Operation;
pub use crate::options::{Call, RequestOptions};
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use crate::panics::on_purpose;
pub use crate::panics::{contain, contained};
pub use crate::polling::{DEFAULT_WAIT_TIMEOUT, OnProgress, WaitOptions};
pub use crate::response::{RawResponse, Response};
pub use crate::retry::DEFAULT_MAX_RETRIES;
pub use crate::secret::{ApiKeyProvider, is_secret_name};
pub use crate::sse::{Frame, StreamEvent};
pub use crate::stream::{Accumulator, Chunk, EventStream, RawStream};
pub use crate::tls::CA_BUNDLE_VARIABLE;
pub use crate::transport::MAX_ERROR_BODY_BYTES;
pub use crate::videos::VideoWatch;
/// What a [`Clock`], a [`Middleware`] and an [`ApiKeyProvider`] answer with.
pub use futures_util::future::BoxFuture;

/// The Rust code of docs/guides, as tests; they need a gateway, which `cargo xtask test guides` starts.
#[cfg(all(doctest, guides))]
mod guides {
    #[doc = include_str!("../../docs/guides/streams.md")]
    struct Streams;
    #[doc = include_str!("../../docs/guides/production.md")]
    struct Production;
    #[doc = include_str!("../../docs/guides/long-work.md")]
    struct LongWork;
}
