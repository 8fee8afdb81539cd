//! Client of the Gatewright gateway: chat completions, responses, native generate-content, images and videos over
//! one key, and the validator of compatibility reports.
//!
//! ```no_run
//! use gatewright::{Client, types};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // GATEWRIGHT_BASE_URL (default http://127.0.0.1:8080) and GATEWRIGHT_API_KEY.
//! let client = Client::from_env()?;
//! # Ok(())
//! # }
//! ```

mod base_url;
mod client;
mod error;
mod error_body;
mod files;
#[expect(unreachable_pub, reason = "what of it is public is named below")]
mod generated;
pub mod limits;
mod operation;
mod options;
mod polling;
pub mod report;
mod response;
mod retry;
#[cfg(test)]
mod schema_loop;
mod secret;
pub mod sse;
mod stream;
mod tls;
mod transport;
mod videos;

pub use crate::base_url::DEFAULT_BASE_URL;
pub use crate::client::{
    API_KEY_VARIABLE, BASE_URL_VARIABLE, Client, ClientBuilder, DEFAULT_CONNECT_TIMEOUT, DEFAULT_EVENT_TIMEOUT,
    DEFAULT_IDLE_TIMEOUT, DEFAULT_MAX_BODY_BYTES, DEFAULT_TIMEOUT,
};
pub use crate::error::{Error, ErrorCode, ErrorKind};
pub use crate::files::Download;
pub use crate::generated::{catalog, operations, resources, types};
pub use crate::operation::Operation;
pub use crate::options::{Call, RequestOptions};
pub use crate::polling::{DEFAULT_WAIT_TIMEOUT, WaitOptions};
pub use crate::response::{RawResponse, Response};
pub use crate::retry::DEFAULT_MAX_RETRIES;
pub use crate::sse::StreamEvent;
pub use crate::stream::{EventStream, RawStream};
pub use crate::transport::MAX_ERROR_BODY_BYTES;

