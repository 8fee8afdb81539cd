//! The converse protocol, which only upstreams speak: no client sends it.
//!
//! - Model and streaming are part of the path, which the gateway writes.
//! - A content block is an object with one field, which names its kind.
//! - Tool results are part of user messages.
//! - Input tokens exclude tokens read from or written to a cache; the neutral count includes them.
//! - The events of a stream are named; the gateway decodes their binary framing.

mod answer;
mod arrangement;
mod blocks;
mod citations;
mod codec;
mod failure;
mod features;
mod judge;
mod media;
mod request_out;
mod settings;
mod stop_reason;
mod stream_in;
#[cfg(test)]
mod tests;
mod tools;
mod usage;

pub(super) use self::codec::ConverseCodec;
