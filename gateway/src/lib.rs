//! The Gatewright gateway: every operation of the specification behind one key, answered offline by an embedded
//! simulated provider.
//!
//! ```no_run
//! use gatewright_gateway::{Config, Gateway};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::bind(Config { listen: "127.0.0.1:0".to_owned(), ..Config::default() }).await?;
//! println!("{} {}", gateway.url(), gateway.key().expose());
//! gateway.serve(std::future::pending()).await;
//! # Ok(())
//! # }
//! ```
//!
//! A request goes through [`Gateway`] (limits of the connection, key, route) to the generated route table and from
//! there to the method of its operation; an operation that has none yet is answered with 501.
//!
//! # What the simulated provider does
//!
//! - Asked to repeat, say or reply with something, it answers with exactly that; quoted strings and tokens such as
//!   `COMPAT-1a2b3c` in other prompts come back in the answer; `count to 10` counts. `max_tokens`, `stop` and `n` act
//!   as at a real provider. Equal requests get equal answers.
//! - Log probabilities are told where they are asked for, and images count as tokens. `background` is refused.
//! - A request that would cost more than a bounded number of steps and bytes is refused with `request_too_costly`.
//! - It calls the tools it is made to call, or that the prompt names, with arguments that fit their schema.
//! - Images are drawn and videos encoded at the size asked for. A video whose prompt contains [`FAILURE_MARKER`], or
//!   `[fail: some message]`, ends as `failed`.
//! - It misbehaves on request, so that users can test their handling of it: see [`FAULTS`] and [`FAULT_HEADER`].

mod auth;
mod call;
mod chat;
mod config;
mod connection;
mod error;
mod fault;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[expect(unreachable_pub, reason = "generated code says pub; what of it is public is re-exported below")]
mod generated;
mod head_error;
mod idempotency;
mod images;
mod logprobs;
mod media;
mod models;
mod native;
mod responses;
mod server;
mod service;
mod simulator;
mod sse;
mod tools;
mod tree;
mod videos;
mod webhook;
mod work;

pub use crate::auth::{ApiKey, InvalidKey};
pub use crate::call::{Call, Response};
pub use crate::config::Config;
pub use crate::error::not_implemented;
pub use crate::fault::{FAULT_HEADER, FAULTS, Faults, InvalidFault};
pub use crate::generated::routes::{Match, Service, dispatch, match_route};
pub use crate::server::{BindError, Embedded, Gateway};
pub use crate::videos::FAILURE_MARKER;
