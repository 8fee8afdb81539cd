//! The native generate-content protocol and the neutral conversation. Its requests are in the canonical form that the
//! schemas describe (`limits::canonical`).

mod answer;
mod exact;
mod grounding;
mod logprobs;
mod media;
mod own_kinds;
mod parts;
mod request_in;
mod request_out;
mod schema;
mod signature;
mod stream_in;
mod stream_out;
#[cfg(test)]
mod tests;

use super::{ResponseContext, StreamIn, StreamOut};

pub(super) use self::answer::{answer_in, answer_out};
pub(super) use self::own_kinds::{has_own_kinds, replace_own_kinds};
pub(super) use self::request_in::request_in;
pub(super) use self::request_out::request_out;

/// Prefix of the generated id for a call without one. It is never written: without ids, the protocol matches results by
/// name and order.
const MADE_ID: &str = "call_native_";

/// Reads a provider's stream.
pub(super) fn stream_in() -> Box<dyn StreamIn> {
    Box::<stream_in::NativeStreamReader>::default()
}

/// Writes a client's stream.
pub(super) fn stream_out(context: ResponseContext) -> Box<dyn StreamOut> {
    Box::new(stream_out::NativeStreamWriter::new(context))
}
