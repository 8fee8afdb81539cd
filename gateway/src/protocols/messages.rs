//! The messages protocol and the neutral conversation.
//!
//! - `system`, or a content, that is a string has the place of the member; a block of a list has the place of the block.
//! - Results of tools stand in messages of the user. Here they are a turn of their own, with the place of the message.
//! - The input tokens of this protocol are those that came from no cache and went to none; the neutral ones are all.
//! - Requests of other protocols are arranged: instructions come first, turns alternate, results follow their calls.

mod answer;
mod arrangement;
mod block_in;
mod block_out;
mod citations;
mod own_kinds;
mod request_in;
mod request_out;
mod schema;
mod stop_reason;
mod stream_in;
mod stream_out;
mod thinking;
#[cfg(test)]
mod thinking_tests;
mod tools;
mod usage;

pub(super) use self::answer::{answer_in, answer_out};
pub(super) use self::own_kinds::{has_own_kinds, replace_own_kinds};
pub(super) use self::request_in::request_in;
pub(super) use self::request_out::request_out;
pub(super) use self::stream_in::stream_in;
pub(super) use self::stream_out::stream_out;
