//! The native generate-content protocol and the neutral conversation. Its requests are in the canonical form that the
//! schemas describe (`limits::canonical`).

mod answer;
mod codec;
mod deviations;
mod embeddings;
mod error;
mod exact;
mod grammar;
mod grounding;
mod inspect;
mod judge;
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
mod usage;

pub(super) use self::codec::NativeCodec;

/// Prefix of the generated id for a call without one. It is never written: without ids, the protocol matches results by
/// name and order.
const MADE_ID: &str = "call_native_";
