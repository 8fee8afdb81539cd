//! A stream of an upstream that comes in any packets, without sockets and without time: for the search for inputs that break
//! it.

use bytes::{Bytes, BytesMut};
use serde_json::{Map, Value};

pub(crate) use super::frames::Fields;
use super::frames::{Frames, blocks};
use super::passthrough_stream::{Events, Framing, Passed, PassthroughStream};
use super::stream_inspector::StreamInspector;
use super::translate_stream::StreamTranslation;
use crate::conversation::{Protocol, Usage};
use crate::protocols::ResponseContext;

/// The model as clients call it.
pub(crate) const MODEL: &str = "mine";

/// How a stream is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its bytes pass.
    Passed { hide_usage: bool, array: bool },
    /// The reader of its protocol reads it, as for a client of another one.
    Read,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Whole,
    Early,
    /// The upstream told an error.
    Failed,
    /// It cannot be read.
    Unread,
}

/// What came of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct Taken {
    /// What the client got.
    pub(crate) out: Vec<u8>,
    pub(crate) usage: Option<Usage>,
    pub(crate) end: End,
}

/// Takes a stream as a running gateway does.
pub(crate) fn take(protocol: Protocol, way: Way, packets: impl Iterator<Item = Bytes>) -> Taken {
    let mut events: Box<dyn Events> = match way {
        Way::Passed { hide_usage, array } => {
            let framing = if array { Framing::Array { opened: false } } else { Framing::Events };
            Box::new(PassthroughStream::new(
                protocol,
                framing,
                StreamInspector::new(protocol, MODEL, hide_usage),
            ))
        }
        Way::Read => {
            let context = ResponseContext {
                model: MODEL.to_owned(),
                request: Value::Object(Map::new()),
                include_usage: true,
                has_functions: false,
                id: "id".to_owned(),
                created: 1,
            };
            let events = StreamTranslation::new(protocol, protocol, Framing::Events, context, None);
            Box::new(if protocol == Protocol::Chat { events.wanting(1) } else { events })
        }
    };
    let (mut frames, mut out, mut failure) = (Frames::default(), BytesMut::new(), None);
    let mut note = |block: Bytes| {
        if failure.is_none()
            && let Passed::Error(told) = events.block(&block, &mut out)
        {
            failure = Some(told);
        }
    };
    for packet in packets {
        frames.push(packet, &mut note).expect("an input is short");
    }
    if let Some(last) = frames.last() {
        note(last);
    }
    let end = match failure {
        // What passes is read in any case, whatever an upstream writes in its errors.
        Some(failure) if way == Way::Read && failure.message.contains("stream cannot be read") => End::Unread,
        Some(_) => End::Failed,
        None if events.end(&mut out) => End::Whole,
        None => End::Early,
    };
    Taken { out: out.to_vec(), usage: events.usage(), end }
}

/// The blocks of a stream, each without its line ends, which depend on where packets are cut.
pub(crate) fn lines_of_blocks(stream: &[u8]) -> Vec<Vec<&[u8]>> {
    let lines = |block| -> Vec<&[u8]> {
        <[u8]>::split(block, |byte| matches!(byte, b'\r' | b'\n')).filter(|line| !line.is_empty()).collect()
    };
    blocks(stream).map(lines).collect()
}
