//! The messages protocol and the neutral conversation.
//!
//! - String `system` or content has the place of the field; a block of a list has the place of the block.
//! - Tool results are part of user messages here. In the neutral form they are a turn of their own, with the message's
//!   place.
//! - This protocol's input tokens exclude tokens read from or written to a cache; the neutral count includes them.
//! - Requests of other protocols are rearranged: instructions come first, turns alternate, results follow their calls.

mod answer;
mod arrangement;
mod block_in;
mod block_out;
mod citations;
mod codec;
mod deviations;
mod error;
mod grammar;
mod inspect;
mod judge;
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

pub(super) use self::codec::MessagesCodec;
pub(super) use self::schema::enforced;
pub(super) use self::thinking::{SUMMARIZED, ThinkingPlan, plan as plan_thinking, shows_thoughts};
