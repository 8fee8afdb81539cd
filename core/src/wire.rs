//! Code that client and gateway share: errors and their bodies, the rules for requests and responses, the framing of event
//! streams, webhook signatures, and the redaction of text from outside. Needs no HTTP client.

pub(crate) mod api_key;
pub(crate) mod error;
pub(crate) mod error_body;
pub(crate) mod json_weight;
pub mod limits;
#[cfg(feature = "client")]
pub(crate) mod long_integers;
#[cfg(feature = "client")]
pub(crate) mod multipart;
pub(crate) mod panics;
pub(crate) mod presence;
pub mod redact;
#[cfg(feature = "client")]
pub(crate) mod repair;
pub(crate) mod secret_names;
pub mod sse;
pub mod webhook;
