//! Passes an upstream's events through to a client of the same protocol: unchanged, except for the model name and the usage that
//! only the gateway requested.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use gatewright::ErrorCode;
use gatewright_protocol::StreamError;
use gatewright_protocol::conversation::{Failure, Protocol, Usage};
use serde_json::value::RawValue;

use super::LONG_BODY;
use super::conversation_state::ResponseRecorder;
use super::failure::last_event;
use super::frames::Fields;
use crate::storage::MAX_RESPONSE_BYTES;
use crate::wire::{ApiError, Call};
use gatewright_protocol::inspect::{EventAction, StreamInspector, StreamProgress};

/// The stream format that the client reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Events,
    /// One JSON array (native without `alt=sse`). `opened`: whether it has started.
    Array {
        opened: bool,
    },
}

impl Framing {
    /// The keep-alive for a silent connection.
    pub(crate) fn keep_alive(self) -> &'static [u8] {
        match self {
            Self::Events => b": ping\n\n",
            Self::Array { .. } => b"\n",
        }
    }

    /// The format that the client requests. Errors: it requests another one.
    pub(crate) fn of(call: &Call, protocol: Protocol) -> Result<Self, ApiError> {
        if !protocol.binding().stream.may_be_array {
            return Ok(Self::Events);
        }
        match call.query("alt") {
            Some("sse") => Ok(Self::Events),
            None | Some("json") => Ok(Self::Array { opened: false }),
            Some(other) => {
                let message = format!("alt is {other:?}; it must be sse (events) or json (an array)");
                Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param("alt"))
            }
        }
    }
}

/// Passes the events of a stream through.
pub(crate) struct PassthroughStream {
    protocol: Protocol,
    framing: Framing,
    inspector: StreamInspector,
    recorder: Option<ResponseRecorder>,
}

/// Turns an upstream's events into events for the client.
pub(crate) trait EventProcessor: Send {
    /// Takes a block from the upstream and writes the client's.
    fn block(&mut self, block: &Bytes, out: &mut BytesMut) -> EventKind;

    /// The upstream closed the connection: writes what the stream still lacks. False if it closed too early.
    fn end(&mut self, out: &mut BytesMut) -> bool;

    /// Writes the end of a failed stream.
    fn fail(&mut self, failure: &Failure, out: &mut BytesMut);

    fn framing(&self) -> Framing;

    fn progress(&self) -> StreamProgress;

    /// The usage known so far.
    fn usage(&self) -> Option<Usage>;

    /// Estimated tokens of the answer so far.
    fn output(&self) -> u64;

    /// The length of the sound that the upstream transcribed, if it states it.
    fn sound_millis(&self) -> Option<u64> {
        None
    }

    /// The response as the stream began it, which its provider may finish without a reader (responses).
    fn started(&self) -> Option<&RawValue> {
        None
    }

    /// The memory for reading a block, in bytes, if it is significant.
    fn weight(&self, _: &Bytes) -> usize {
        0
    }

    /// Bytes of the answer that are retained until its end.
    fn retained_bytes(&self) -> usize {
        0
    }
}

/// The kind of an event.
#[derive(Debug)]
pub(crate) enum EventKind {
    /// Part of the answer.
    Content,
    /// Only a keep-alive.
    Life,
    Error(Failure),
}

impl PassthroughStream {
    pub(crate) fn new(protocol: Protocol, framing: Framing, inspector: StreamInspector) -> Self {
        Self { protocol, framing, inspector, recorder: None }
    }

    /// Stores the answer once it is complete.
    pub(super) fn keeping(self, recorder: Option<ResponseRecorder>) -> Self {
        Self { recorder, ..self }
    }

    /// Stores the response in the data of a last event. `edit`: the range where its model is replaced.
    fn keep(&mut self, data: &str, edit: Option<&Range<usize>>) {
        let Some(recorder) = &mut self.recorder else { return };
        if let Some(started) = &self.inspector.started {
            recorder.keep_started(started.get());
        }
        let Some(at) = self.inspector.ended_with.take() else { return };
        let Some(recorder) = self.recorder.take() else { return };
        if at.len() > MAX_RESPONSE_BYTES {
            // There won't be a copy.
            return recorder.keep_relayed(&data[at]);
        }
        let edit = edit.map(|edit| edit.start - at.start..edit.end - at.start);
        let mut response = BytesMut::with_capacity(at.len());
        write_renamed(&data.as_bytes()[at], edit, self.inspector.model(), &mut response);
        recorder.keep_relayed(std::str::from_utf8(&response).unwrap_or_default());
    }
}

impl EventProcessor for PassthroughStream {
    fn block(&mut self, block: &Bytes, out: &mut BytesMut) -> EventKind {
        let fields = Fields::read(block);
        let Some((data, place)) = fields.data else {
            // A comment, or a reconnection time.
            if self.framing == Framing::Events {
                out.extend_from_slice(block);
            }
            return EventKind::Life;
        };
        let (edit, passed) = match self.inspector.event(fields.name, &data) {
            EventAction::Hide => return EventKind::Life,
            EventAction::Pass => (None, EventKind::Content),
            EventAction::Rename(at) => (Some(at), EventKind::Content),
            EventAction::Rewrite(data) => {
                match &mut self.framing {
                    Framing::Events => {
                        out.extend_from_slice(b"data: ");
                        out.extend_from_slice(&data);
                        out.extend_from_slice(b"\n\n");
                    }
                    Framing::Array { opened } => {
                        open_array(opened, out);
                        out.extend_from_slice(&data);
                    }
                }
                return EventKind::Content;
            }
            EventAction::Ping => (None, EventKind::Life),
            EventAction::Error(failure) => return EventKind::Error(failure),
        };
        self.keep(&data, edit.as_ref());
        // At once: a buffer that grows bit by bit becomes twice as large.
        out.reserve(block.len() + self.inspector.model().len());
        match (&mut self.framing, place) {
            (Framing::Events, Some(place)) => {
                let data = &block[place.clone()];
                out.extend_from_slice(&block[..place.start]);
                write_renamed(data, edit, self.inspector.model(), out);
                out.extend_from_slice(&block[place.end..]);
            }
            // Multi-line data: no known upstream sends it.
            (Framing::Events, None) => out.extend_from_slice(block),
            (Framing::Array { opened }, _) => {
                open_array(opened, out);
                write_renamed(data.as_bytes(), edit, self.inspector.model(), out);
            }
        }
        passed
    }

    fn end(&mut self, out: &mut BytesMut) -> bool {
        match self.inspector.progress {
            StreamProgress::Underway | StreamProgress::Failed => return false,
            // Some upstreams omit the final event.
            StreamProgress::Finished => {
                if let Some(last) = self.protocol.binding().stream.last_data {
                    out.extend_from_slice(format!("data: {last}\n\n").as_bytes());
                }
            }
            StreamProgress::Ended => {}
        }
        if let Framing::Array { opened } = &mut self.framing {
            if !*opened {
                out.extend_from_slice(b"[");
            }
            out.extend_from_slice(b"]");
        }
        self.inspector.progress = StreamProgress::Ended;
        true
    }

    fn fail(&mut self, failure: &Failure, out: &mut BytesMut) {
        write_end(
            &mut self.framing,
            &last_event(self.protocol, &StreamError::of(failure), &self.inspector),
            out,
        );
    }

    /// A long event is copied.
    fn weight(&self, block: &Bytes) -> usize {
        if block.len() > LONG_BODY { block.len() + self.inspector.model().len() } else { 0 }
    }

    fn retained_bytes(&self) -> usize {
        self.recorder.as_ref().map_or(0, ResponseRecorder::weight) + self.inspector.memory()
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn progress(&self) -> StreamProgress {
        self.inspector.progress
    }

    fn usage(&self) -> Option<Usage> {
        self.inspector.usage
    }

    fn started(&self) -> Option<&RawValue> {
        self.inspector.started.as_deref()
    }

    fn output(&self) -> u64 {
        self.inspector.output()
    }
}

/// Writes the last event of a failed stream.
pub(super) fn write_end(framing: &mut Framing, event: &str, out: &mut BytesMut) {
    match framing {
        Framing::Events => out.extend_from_slice(event.as_bytes()),
        Framing::Array { opened } => {
            open_array(opened, out);
            let document = event.strip_prefix("data: ").unwrap_or(event).trim_end();
            out.extend_from_slice(document.as_bytes());
            out.extend_from_slice(b"]");
        }
    }
}

/// Writes what precedes the next element of an array.
pub(super) fn open_array(opened: &mut bool, out: &mut BytesMut) {
    let before: &[u8] = if std::mem::replace(opened, true) { b",\r\n" } else { b"[" };
    out.extend_from_slice(before);
}

fn write_renamed(data: &[u8], edit: Option<Range<usize>>, model: &[u8], out: &mut BytesMut) {
    match edit {
        None => out.extend_from_slice(data),
        Some(at) => {
            out.extend_from_slice(&data[..at.start]);
            out.extend_from_slice(model);
            out.extend_from_slice(&data[at.end..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(framing: Framing, protocol: Protocol, blocks: &[&str]) -> String {
        let mut passing =
            PassthroughStream::new(protocol, framing, StreamInspector::new(protocol, "mine", true));
        let mut out = BytesMut::new();
        for block in blocks {
            passing.block(&Bytes::copy_from_slice(block.as_bytes()), &mut out);
        }
        passing.end(&mut out);
        String::from_utf8(out.to_vec()).expect("text")
    }

    #[test]
    fn passthrough_changes_only_the_model_and_hidden_usage() {
        let blocks = [
            ": comment\n\n",
            "id: 7\r\ndata:{\"model\": \"theirs\", \"choices\":[ ]}\r\nx-future: 1\r\n\r\n",
            "data: {\"future\": 1e0}\n\n",
            "data: {\"model\":\"theirs\",\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n",
            "data: [DONE]\n\n",
        ];
        let expected = [blocks[0], &blocks[1].replace("theirs", "mine"), blocks[2], blocks[4]].concat();
        assert_eq!(passed(Framing::Events, Protocol::Chat, &blocks), expected);
    }

    #[test]
    fn finished_chat_stream_without_done_gets_one() {
        let block = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n";
        let stream = passed(Framing::Events, Protocol::Chat, &[block]);
        assert_eq!(stream, format!("{block}data: [DONE]\n\n"));
        let early = "data: {\"choices\":[{\"finish_reason\":null}]}\n\n";
        assert_eq!(passed(Framing::Events, Protocol::Chat, &[early]), early);
    }

    #[test]
    fn native_events_become_an_array_on_request() {
        let framing = Framing::Array { opened: false };
        let blocks = [
            "data: {\"candidates\":[{}]}\n\n",
            ": comment\n\n",
            "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
        ];
        assert_eq!(
            passed(framing, Protocol::Native, &blocks),
            "[{\"candidates\":[{}]},\r\n{\"candidates\":[{\"finishReason\":\"STOP\"}]}]"
        );
    }
}
