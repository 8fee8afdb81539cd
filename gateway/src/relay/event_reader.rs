//! Splits the body of an upstream's stream into blocks of server-sent events, whichever format it has.

mod binary_events;

use bytes::Bytes;
use gatewright_protocol::conversation::Failure;

use self::binary_events::BinaryEvents;
use super::frames::{EventTooLong, Frames, MAX_EVENT_BYTES};
use crate::wire::event_stream::EventStreamError;

/// The format of a stream, by its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFormat {
    /// `text/event-stream`.
    ServerSentEvents,
    /// `application/vnd.amazon.eventstream`.
    BinaryEvents,
}

impl StreamFormat {
    /// `None`: it is not the media type of a stream. `media_type`: in lower case.
    pub(crate) fn of(media_type: &str) -> Option<Self> {
        if media_type.starts_with("text/event-stream") {
            Some(Self::ServerSentEvents)
        } else if media_type.starts_with("application/vnd.amazon.eventstream") {
            Some(Self::BinaryEvents)
        } else {
            None
        }
    }
}

/// Why a stream cannot be read further.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The upstream reported an error, outside of the protocol's events.
    Reported(Failure),
    /// The bytes do not have the format of the stream.
    Malformed(Malformed),
}

/// Continues "the provider's answer".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    #[error("contains an event of more than {MAX_EVENT_BYTES} bytes")]
    TooLong,
    #[error("cannot be read: {0}")]
    EventStream(#[from] EventStreamError),
    #[error("cannot be read: an event has no content")]
    NoContent,
}

/// Reads the events of a stream.
#[derive(Debug)]
pub(super) enum EventReader {
    ServerSent(Frames),
    Binary(BinaryEvents),
}

impl EventReader {
    pub(super) fn new(format: StreamFormat) -> Self {
        match format {
            StreamFormat::ServerSentEvents => Self::ServerSent(Frames::default()),
            StreamFormat::BinaryEvents => Self::Binary(BinaryEvents::default()),
        }
    }

    /// Takes a packet and emits the blocks that it completes, each with its terminating blank line.
    pub(super) fn push(&mut self, packet: Bytes, emit: impl FnMut(Bytes)) -> Result<(), StreamEnd> {
        match self {
            Self::ServerSent(frames) => {
                frames.push(packet, emit).map_err(|EventTooLong| StreamEnd::Malformed(Malformed::TooLong))
            }
            Self::Binary(events) => events.push(&packet, emit),
        }
    }

    /// The last block, at the end of the body. Errors: the body ends within an event.
    pub(super) fn last(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self {
            Self::ServerSent(frames) => Ok(frames.last()),
            Self::Binary(events) => events.finish().map(|()| None),
        }
    }

    /// The memory of what has been received of an incomplete event, in bytes.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::ServerSent(frames) => frames.memory(),
            Self::Binary(events) => events.memory(),
        }
    }

    /// The same at most with a packet.
    pub(super) fn memory_with(&self, packet: &[u8]) -> usize {
        match self {
            Self::ServerSent(frames) => frames.memory_with(packet),
            Self::Binary(events) => events.memory_with(packet),
        }
    }
}
