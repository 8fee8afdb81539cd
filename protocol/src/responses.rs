//! The responses protocol and the neutral conversation.

mod answer;
mod answer_in;
mod as_they_were;
mod citations;
mod content;
mod own_kinds;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod tools;

use super::{ResponseContext, StreamIn, StreamOut};

pub(super) use self::answer::answer_out;
pub(super) use self::answer_in::answer_in;
pub(super) use self::own_kinds::{has_own_kinds, replace_own_kinds};
pub(super) use self::request_in::request_in;
pub(super) use self::request_out::request_out;

/// Prefix of a reasoning item's opaque content when the whole thought is hidden. It distinguishes this content from the
/// proof of a thought, which uses the same field; base64 never contains a colon.
const REDACTED: &str = "redacted:";

/// Reads a provider's stream.
pub(super) fn stream_in() -> Box<dyn StreamIn> {
    Box::<stream_in::ResponsesStreamReader>::default()
}

/// Writes a client's stream.
pub(super) fn stream_out(context: ResponseContext) -> Box<dyn StreamOut> {
    Box::new(stream_out::ResponsesStreamWriter::new(context))
}
