//! A protocol that no provider has: a conversation of texts. It has the files that a protocol needs, as `CONTRIBUTING.md` lists
//! them.
//!
//! | document | form |
//! |---|---|
//! | request | `{"model", "say": [{"by", "text"}], "longest", "live"}` |
//! | answer | `{"model", "said", "why", "tokens": [input, output]}` |
//! | events | `{"model", "begun": true}`, `{"more"}`, `{"why", "tokens"}` |
//! | error | `{"wrong"}` |

mod answer;
mod codec;
mod grammar;
mod inspect;
mod judge;
mod request_in;
mod request_out;
mod stream_in;
mod stream_out;
mod usage;

use gatewright_protocol::codec::ExternalCodec;
use gatewright_protocol::conversation::{ExternalProtocol, FinishReason, Protocol};

use self::codec::LinesCodec;

static CODEC: ExternalCodec = ExternalCodec { codec: &LinesCodec, client: Some(&LinesCodec) };
static IDENTITY: ExternalProtocol = ExternalProtocol::new(&CODEC);

/// The protocol.
pub(crate) const LINES: Protocol = Protocol::External(&IDENTITY);

/// Reads why an answer ended.
fn end_of(word: &str) -> FinishReason {
    match word {
        "done" => FinishReason::Stop,
        "cut" => FinishReason::Length,
        word => FinishReason::Other { source: LINES, word: word.to_owned() },
    }
}

/// Writes why an answer ended.
fn word_of(end: Option<&FinishReason>) -> &str {
    match end {
        Some(FinishReason::Length) => "cut",
        Some(FinishReason::Other { source, word }) if *source == LINES => word,
        _ => "done",
    }
}
