//! The chat protocol and the neutral conversation.
//!
//! - String content has the place of the field; a part of a list has the place of the part. This preserves the form in
//!   which the request was written.
//! - The specification has no request field for reasoning. `reasoning_content` is the text that the provider shows.
//!   `reasoning_details` must come back unchanged; it has the form common among gateways: `reasoning.text` with a
//!   `signature`, `reasoning.summary`, and `reasoning.encrypted` with `data`. A `reasoning.encrypted` at the end with the
//!   `id` of a call is that call's signature.
//! - `cache_control` of a part or a tool is read, so that clients of this protocol can use other providers' caches.

mod answer;
mod citations;
mod codec;
mod deviations;
mod finish;
mod foreign_blocks;
mod functions;
mod grammar;
mod inspect;
mod judge;
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

pub(super) use self::codec::ChatCodec;
pub(super) use self::functions::PLACE as FUNCTIONS;
pub use self::functions::has_functions;
