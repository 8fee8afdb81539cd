//! Sends calls: their options, the key, connections, attempts and pauses, logging and tracing. Knows operations but not
//! their types, and opens streams without reading them.

pub(crate) mod base_url;
pub(crate) mod clock;
pub(crate) mod connecting;
pub(crate) mod exchange;
pub(crate) mod file_client;
pub(crate) mod generated;
pub(crate) mod idempotency;
pub(crate) mod log;
pub(crate) mod merging;
pub(crate) mod middleware;
pub(crate) mod options;
pub(crate) mod outgoing;
pub(crate) mod response;
pub(crate) mod retry;
pub(crate) mod route;
pub(crate) mod secret;
pub(crate) mod tls;
pub(crate) mod trace;
