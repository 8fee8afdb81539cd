//! The chat protocol and the neutral conversation.
//!
//! - Content that is a string has the place of the member, a part of a list the place of the part. So a request knows in
//!   which form it was written.
//! - Reasoning has no member of the specification in requests. What the provider shows is `reasoning_content`. What has
//!   to come back unchanged is in `reasoning_details`, in the form that gateways have made common: `reasoning.text` with
//!   a `signature`, `reasoning.summary`, and `reasoning.encrypted` with `data`. A `reasoning.encrypted` at the end with
//!   the `id` of a call is the signature of this call.
//! - `cache_control` of a part or a tool is read, so that clients of this protocol can use the caches of others.

mod answer;
mod citations;
mod finish;
mod foreign_blocks;
mod functions;
mod lenient;
mod message_in;
mod message_out;
mod reasoning;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod tools;
mod usage;

pub(super) use self::answer::{answer_in, answer_out};
pub(super) use self::foreign_blocks::{has_foreign_blocks, replace_foreign_blocks};
pub(super) use self::functions::PLACE as FUNCTIONS;
pub(crate) use self::functions::has_functions;
pub(super) use self::request_in::request_in;
pub(super) use self::request_out::request_out;
pub(super) use self::stream_in::stream_in;
pub(super) use self::stream_out::stream_out;
