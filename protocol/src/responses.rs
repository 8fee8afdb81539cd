//! The responses protocol and the neutral conversation.

mod answer;
mod answer_in;
mod as_they_were;
mod citations;
mod codec;
mod content;
mod deviations;
mod error;
mod grammar;
mod inspect;
mod judge;
mod own_kinds;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod tools;
mod usage;

pub(super) use self::codec::ResponsesCodec;

/// Prefix of a reasoning item's opaque content when the whole thought is hidden. It distinguishes this content from the
/// proof of a thought, which uses the same field; base64 never contains a colon.
const REDACTED: &str = "redacted:";
