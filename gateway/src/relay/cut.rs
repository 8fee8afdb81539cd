//! Feeds an upstream's stream in arbitrary packets, without sockets or timers, for fuzzing.

use bytes::{Bytes, BytesMut};
use gatewright_protocol::ResponseContext;
use gatewright_protocol::conversation::{Protocol, Usage};
use serde_json::{Map, Value};

pub(crate) use super::frames::Fields;
use super::frames::{Frames, blocks};
use super::passthrough_stream::{EventKind, EventProcessor, Framing, PassthroughStream};
use super::translate_stream::StreamTranslation;
use gatewright_protocol::inspect::StreamInspector;

/// The client's name for the model.
pub(crate) const MODEL: &str = "mine";

/// How a stream is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamHandling {
    /// Its bytes pass through.
    Passed { hide_usage: bool, array: bool },
    /// The reader of its protocol parses it, as for a client of another protocol.
    Read,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CutOutcome {
    Whole,
    Early,
    /// The upstream reported an error.
    Failed,
    /// It can't be parsed.
    Unread,
}

/// The result of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct CutResult {
    /// The bytes for the client.
    pub(crate) out: Vec<u8>,
    pub(crate) usage: Option<Usage>,
    pub(crate) end: CutOutcome,
}

/// Processes a stream as a running gateway does.
pub(crate) fn take(
    protocol: Protocol,
    way: StreamHandling,
    packets: impl Iterator<Item = Bytes>,
) -> CutResult {
    let mut events: Box<dyn EventProcessor> = match way {
        StreamHandling::Passed { hide_usage, array } => {
            let framing = if array { Framing::Array { opened: false } } else { Framing::Events };
            Box::new(PassthroughStream::new(
                protocol,
                framing,
                StreamInspector::new(protocol, MODEL, hide_usage),
            ))
        }
        StreamHandling::Read => {
            let context = ResponseContext {
                model: MODEL.to_owned(),
                request: Value::Object(Map::new()),
                include_usage: true,
                id: "id".to_owned(),
                created: 1,
                ..ResponseContext::default()
            };
            let events = StreamTranslation::new(protocol, protocol, Framing::Events, context, None);
            Box::new(if protocol.binding().stream.finishes_each_choice { events.wanting(1) } else { events })
        }
    };
    let (mut frames, mut out, mut failure) = (Frames::default(), BytesMut::new(), None);
    let mut note = |block: Bytes| {
        if failure.is_none()
            && let EventKind::Error(error) = events.block(&block, &mut out)
        {
            failure = Some(error);
        }
    };
    for packet in packets {
        frames.push(packet, &mut note).expect("an input is short");
    }
    if let Some(last) = frames.last() {
        note(last);
    }
    let end = match failure {
        // Bytes that pass through are always parsed, whatever an upstream writes in its errors.
        Some(failure) if way == StreamHandling::Read && failure.message.contains("stream cannot be read") => {
            CutOutcome::Unread
        }
        Some(_) => CutOutcome::Failed,
        None if events.end(&mut out) => CutOutcome::Whole,
        None => CutOutcome::Early,
    };
    CutResult { out: out.to_vec(), usage: events.usage(), end }
}

/// The blocks of a stream, each without its line ends, which depend on packet boundaries.
pub(crate) fn lines_of_blocks(stream: &[u8]) -> Vec<Vec<&[u8]>> {
    let lines = |block| -> Vec<&[u8]> {
        <[u8]>::split(block, |byte| matches!(byte, b'\r' | b'\n')).filter(|line| !line.is_empty()).collect()
    };
    blocks(stream).map(lines).collect()
}
