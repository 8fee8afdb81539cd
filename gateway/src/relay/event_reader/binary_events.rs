//! Binary event streams as server-sent events, so that the rest of the relay reads one format.
//!
//! An event `chunk` wraps an event of the model's own protocol, in base64. Every other event is part of the provider's protocol:
//! its name and its payload become the name and the data of the block.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gatewright_protocol::conversation::{Failure, FailureKind};
use serde::Deserialize;

use super::{Malformed, StreamEnd};
use crate::wire::event_stream::{Decoder, Message};
use gatewright_protocol::lazy_json;

/// The name of events that wrap an event of another protocol.
const CHUNK: &str = "chunk";
/// Maximum length of an event's name, in bytes. Longer names are omitted.
const MAX_NAME_BYTES: usize = 64;
/// Space reserved before the data of a block, for the event's name.
const MAX_HEAD_BYTES: usize = "event: \ndata: ".len() + MAX_NAME_BYTES;

/// Reads a binary event stream; see the module.
#[derive(Debug, Default)]
pub(crate) struct BinaryEvents {
    decoder: Decoder,
}

/// The payload of a chunk.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow)]
    bytes: Cow<'a, str>,
}

/// The payload of an exception.
#[derive(Deserialize)]
struct Exception<'a> {
    #[serde(borrow, alias = "Message")]
    message: Option<Cow<'a, str>>,
}

impl BinaryEvents {
    pub(super) fn push(&mut self, packet: &[u8], mut emit: impl FnMut(Bytes)) -> Result<(), StreamEnd> {
        self.decoder.push(packet);
        while let Some(message) = self.decoder.next_message().map_err(malformed)? {
            match message {
                Message::Event { name, payload } if name == CHUNK => emit(unwrap_chunk(&payload)?),
                Message::Event { name, payload } => emit(block(Some(&name), &payload)),
                Message::Exception { name, payload } => {
                    let exception = serde_json::from_slice::<Exception<'_>>(&payload).ok();
                    let message = exception.and_then(|exception| exception.message).unwrap_or_default();
                    return Err(StreamEnd::Reported(failure(&name, &message)));
                }
                Message::Error { code, message } => {
                    return Err(StreamEnd::Reported(failure(&code, &message)));
                }
            }
        }
        Ok(())
    }

    /// Errors: the stream ends within a message.
    pub(super) fn finish(&self) -> Result<(), Malformed> {
        Ok(self.decoder.finish()?)
    }

    pub(super) fn memory(&self) -> usize {
        self.decoder.memory()
    }

    pub(super) fn memory_with(&self, packet: &[u8]) -> usize {
        self.decoder.memory_with(packet)
    }
}

fn malformed(why: impl Into<Malformed>) -> StreamEnd {
    StreamEnd::Malformed(why.into())
}

/// The block of the event in a chunk.
fn unwrap_chunk(payload: &[u8]) -> Result<Bytes, StreamEnd> {
    let chunk: Chunk<'_> = serde_json::from_slice(payload).map_err(|_| malformed(Malformed::NoContent))?;
    // The event's name is in its data, so the data is decoded behind the space reserved for the name.
    let mut bytes = Vec::with_capacity(MAX_HEAD_BYTES + chunk.bytes.len() / 4 * 3 + 3 + 2);
    bytes.resize(MAX_HEAD_BYTES, 0);
    STANDARD.decode_vec(chunk.bytes.as_bytes(), &mut bytes).map_err(|_| malformed(Malformed::NoContent))?;
    let data = &mut bytes[MAX_HEAD_BYTES..];
    join_lines(data);
    let mut kind = None;
    if let Ok(text) = std::str::from_utf8(data) {
        // Data that is not JSON has no name. The reader of the model's protocol rejects it.
        _ = lazy_json::members(text, |name, value| {
            if name == "type" {
                kind = lazy_json::string(value).map(Cow::into_owned);
            }
        });
    }
    let head = head(kind.as_deref());
    let start = MAX_HEAD_BYTES - head.len();
    bytes[start..MAX_HEAD_BYTES].copy_from_slice(head.as_bytes());
    bytes.extend_from_slice(b"\n\n");
    Ok(Bytes::from(bytes).slice(start..))
}

fn block(name: Option<&str>, data: &[u8]) -> Bytes {
    let head = head(name);
    let mut bytes = Vec::with_capacity(head.len() + data.len() + 2);
    bytes.extend_from_slice(head.as_bytes());
    bytes.extend_from_slice(data);
    join_lines(&mut bytes[head.len()..]);
    bytes.extend_from_slice(b"\n\n");
    bytes.into()
}

/// The lines before the data of a block.
fn head(name: Option<&str>) -> String {
    let is_name = |name: &&str| {
        !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match name.filter(is_name) {
        Some(name) => format!("event: {name}\ndata: "),
        None => "data: ".to_owned(),
    }
}

/// Makes one line of JSON: strings contain no line breaks.
fn join_lines(json: &mut [u8]) {
    for byte in json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// An error in the stream. `name`: the exception's name as documented by the provider, in upper or lower camel case.
fn failure(name: &str, message: &str) -> Failure {
    let kind = match name.strip_suffix("Exception").unwrap_or(name).to_ascii_lowercase().as_str() {
        "throttling" | "toomanyrequests" => FailureKind::RateLimited,
        "servicequotaexceeded" => FailureKind::QuotaExceeded,
        "validation" => FailureKind::InvalidRequest,
        "accessdenied" => FailureKind::PermissionDenied,
        "expiredtoken" | "unrecognizedclient" => FailureKind::Authentication,
        "resourcenotfound" => FailureKind::NotFound,
        "modeltimeout" => FailureKind::Timeout,
        "serviceunavailable" | "modelnotready" => FailureKind::Overloaded,
        _ => FailureKind::Server,
    };
    match message {
        "" => Failure::new(kind, format!("the provider ended the stream with the error {name}")),
        message => Failure::new(kind, message),
    }
}

#[cfg(test)]
mod tests;
