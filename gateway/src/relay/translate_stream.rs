//! Translates the events of a stream from one protocol to another.

use bytes::{Bytes, BytesMut};
use gatewright_protocol::conversation::{Delta, Failure, FailureKind, Protocol, Usage};
use gatewright_protocol::tree;
use gatewright_protocol::{AnswerAdapter, Marking, ResponseContext, StreamIn, StreamOut};

use super::compaction::CompactionReader;
use super::conversation_state::ResponseRecorder;
use super::frames::{Fields, blocks};
use super::passthrough_stream::{EventKind, EventProcessor, Framing, open_array};
use super::translate_request::weight;
use super::{LONG_BODY, MAX_SPARE};
use gatewright_protocol::{estimated_output, inspect::StreamProgress};

/// See the module.
pub(super) struct StreamTranslation {
    incoming: Box<dyn StreamIn>,
    outgoing: Box<dyn StreamOut>,
    /// Adapts the answer to what the client requested.
    adapter: Option<Box<AnswerAdapter>>,
    recorder: Option<ResponseRecorder>,
    framing: Framing,
    usage: Option<Usage>,
    /// Estimated tokens of the request, until the upstream reports them: for the first event of a client's stream.
    estimate: Option<u64>,
    /// Number of deltas with content, and bytes of their text.
    pieces: u64,
    written: u64,
    /// Bytes retained until the end: what the answer echoes from the request, its recorder, and the texts, citations and other
    /// parts so far, which some protocols repeat.
    retained_bytes: usize,
    /// Number of choices that a chat stream must finish.
    wanted: u32,
    finished: u32,
    progress: StreamProgress,
    /// Buffers for the deltas and bytes of an event.
    deltas: Vec<Delta>,
    bytes: Vec<u8>,
}

impl StreamTranslation {
    pub(super) fn new(
        from: Protocol,
        to: Protocol,
        framing: Framing,
        context: ResponseContext,
        recorder: Option<ResponseRecorder>,
    ) -> Self {
        let repeated = if context.request.is_null() { 0 } else { tree::bytes(&context.request) };
        let retained_bytes = repeated + recorder.as_ref().map_or(0, ResponseRecorder::weight);
        Self {
            // A client of another protocol sends the proofs back to whichever provider is next.
            incoming: Box::new(Marking::new(from.stream_in(), from, to)),
            outgoing: to.stream_out(context),
            adapter: None,
            recorder,
            framing,
            usage: None,
            estimate: None,
            pieces: 0,
            written: 0,
            retained_bytes,
            wanted: 0,
            finished: 0,
            progress: StreamProgress::Underway,
            deltas: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Expects the upstream to finish this many choices.
    pub(super) fn wanting(self, choices: u32) -> Self {
        Self { wanted: choices, ..self }
    }

    /// Sets the estimated number of tokens of the request.
    pub(super) fn estimating(self, tokens: u64) -> Self {
        Self { estimate: Some(tokens), ..self }
    }

    /// Adapts the answer to what the client requested.
    pub(super) fn adapted_by(self, adapter: Option<Box<AnswerAdapter>>) -> Self {
        Self { adapter, ..self }
    }

    /// Turns the answer into a compaction.
    pub(super) fn compacting(self) -> Self {
        Self { incoming: Box::new(CompactionReader::new(self.incoming)), ..self }
    }

    /// Writes the translation of an event.
    fn write(&mut self, out: &mut BytesMut) -> EventKind {
        let mut passed = EventKind::Life;
        if let Some(adapter) = &mut self.adapter {
            adapter.deltas(&mut self.deltas);
        }
        for delta in self.deltas.drain(..) {
            match &delta {
                Delta::Usage(usage) => {
                    self.usage = Some(usage.or(self.usage.unwrap_or_default()));
                }
                Delta::Ended { .. } => {
                    self.finished += 1;
                    self.progress = self.progress.max(StreamProgress::Finished);
                }
                Delta::Done => self.progress = self.progress.max(StreamProgress::Ended),
                Delta::Failed(failure) => {
                    self.progress = StreamProgress::Failed;
                    passed = EventKind::Error(failure.clone());
                    break;
                }
                Delta::Started { .. } => {
                    if let Some(tokens) = self.estimate.take() {
                        let usage = Usage { input: Some(tokens), ..Usage::default() };
                        self.outgoing.delta(Delta::Usage(usage), &mut self.bytes);
                    }
                    passed = EventKind::Content;
                }
                Delta::Citation { .. } | Delta::Extra(_) => {
                    self.retained_bytes += delta.memory();
                    passed = EventKind::Content;
                }
                _ => {
                    self.pieces += 1;
                    self.written = self.written.saturating_add(delta.written() as u64);
                    self.retained_bytes += delta.memory();
                    passed = EventKind::Content;
                }
            }
            let (is_last, before) = (matches!(delta, Delta::Done), self.bytes.len());
            self.outgoing.delta(delta, &mut self.bytes);
            if is_last && let Some(recorder) = self.recorder.take() {
                recorder.keep_last(&self.bytes[before..]);
            }
        }
        if self.deltas.capacity() * size_of::<Delta>() > MAX_SPARE {
            self.deltas = Vec::new();
        }
        self.flush(out);
        passed
    }

    /// Emits the written events in the client's framing.
    fn flush(&mut self, out: &mut BytesMut) {
        match &mut self.framing {
            Framing::Events => out.extend_from_slice(&self.bytes),
            Framing::Array { opened } => {
                for block in blocks(&self.bytes) {
                    if let Some((data, _)) = Fields::read(block).data {
                        open_array(opened, out);
                        out.extend_from_slice(data.as_bytes());
                    }
                }
            }
        }
        if self.bytes.capacity() > MAX_SPARE {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }

    fn close(&mut self, out: &mut BytesMut) {
        if let Framing::Array { opened } = self.framing {
            out.extend_from_slice(if opened { b"]" } else { b"[]" });
        }
    }
}

impl EventProcessor for StreamTranslation {
    fn block(&mut self, block: &Bytes, out: &mut BytesMut) -> EventKind {
        let fields = Fields::read(block);
        let Some((data, _)) = fields.data else { return EventKind::Life };
        match self.incoming.event(fields.name, &data, &mut self.deltas) {
            Ok(()) => self.write(out),
            Err(malformed) => EventKind::Error(Failure::new(
                FailureKind::Server,
                format!("the provider's stream cannot be read: {malformed}"),
            )),
        }
    }

    fn end(&mut self, out: &mut BytesMut) -> bool {
        if self.progress == StreamProgress::Failed {
            return false;
        }
        if self.progress < StreamProgress::Ended {
            if self.finished < self.wanted {
                return false;
            }
            if self.incoming.end(&mut self.deltas).is_err() {
                return false;
            }
            if matches!(self.write(out), EventKind::Error(_)) {
                return false;
            }
        }
        self.progress = StreamProgress::Ended;
        self.close(out);
        true
    }

    fn fail(&mut self, failure: &Failure, out: &mut BytesMut) {
        self.outgoing.fail(failure, &mut self.bytes);
        self.flush(out);
        self.close(out);
    }

    fn framing(&self) -> Framing {
        self.framing
    }

    fn progress(&self) -> StreamProgress {
        self.progress
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn output(&self) -> u64 {
        estimated_output(self.pieces, self.written)
    }

    fn weight(&self, block: &Bytes) -> usize {
        if block.len() > LONG_BODY { weight(block) } else { 0 }
    }

    fn retained_bytes(&self) -> usize {
        let renamed = self.adapter.as_ref().map_or(0, |adapter| adapter.held_bytes());
        self.retained_bytes.saturating_add(self.incoming.held()).saturating_add(renamed)
    }
}

#[cfg(test)]
mod tests {

    use super::super::frames::MAX_EVENT_BYTES;
    use super::*;
    use gatewright_protocol::conversation::{Citation, Located};

    #[test]
    fn buffers_of_a_long_event_are_released() {
        let context =
            ResponseContext { model: "m".to_owned(), id: "c".to_owned(), ..ResponseContext::default() };
        let mut events =
            StreamTranslation::new(Protocol::Chat, Protocol::Messages, Framing::Events, context, None);
        let many = vec![r#"{"index":0,"delta":{"content":"x"}}"#; 10_000].join(",");
        let long = format!(r#"{{"index":0,"delta":{{"content":"{}"}}}}"#, "x".repeat(1_000_000));
        for choices in [many, long] {
            let (block, mut out) = (format!("data: {{\"choices\":[{choices}]}}\n\n"), BytesMut::new());
            assert!(matches!(events.block(&block.into(), &mut out), EventKind::Content));
            let deltas = events.deltas.capacity() * size_of::<Delta>();
            assert!(events.bytes.capacity() <= MAX_SPARE && deltas <= MAX_SPARE);
        }
    }

    #[test]
    fn memory_kept_for_a_client_stream_is_counted() {
        let text = "x".repeat(1000);
        let citation = Citation {
            url: Some(text.clone()),
            title: Some(text.clone()),
            quote: Some(text.clone()),
            span: None,
        };
        assert!(Delta::Citation { choice: 0, citation }.memory() > 3000);
        assert!(Delta::Extra(Located::new(text.clone().into(), text.clone())).memory() > 2000);
        let (id, signature) = (Some(text.clone()), text.clone());
        let signed = Delta::ThoughtSigned { choice: 0, thought: 0, id, signature, redacted: false };
        assert!(signed.memory() >= 2000);
        let (id, text_of) = (Some(text.clone()), text.clone());
        let thought = Delta::Thought { choice: 0, thought: 0, id, part: 0, text: text_of, summary: true };
        assert!(thought.memory() >= 2000);
        let logprobs = Some(vec![0; 1000].into());
        assert!(Delta::Text { choice: 0, text, logprobs }.memory() > 2000);

        let context =
            ResponseContext { model: "m".to_owned(), id: "c".to_owned(), ..ResponseContext::default() };
        let (from, to) = (Protocol::Messages, Protocol::Native);
        let mut events = StreamTranslation::new(from, to, Framing::Events, context, None);
        let citation = serde_json::json!({ "type": "web_search_result_location", "url": "u".repeat(8000) });
        let delta = serde_json::json!({ "type": "citations_delta", "citation": citation });
        let mut out = BytesMut::new();
        for event in [
            serde_json::json!({ "type": "content_block_start", "content_block": { "type": "text" } }),
            serde_json::json!({ "type": "content_block_delta", "delta": delta }),
            serde_json::json!({ "type": "content_block_stop" }),
        ] {
            events.block(&format!("data: {event}\n\n").into(), &mut out);
        }
        assert!(events.retained_bytes() > 8000, "{}", events.retained_bytes());
    }

    #[test]
    fn own_event_of_any_length_becomes_an_array_element() {
        let context =
            ResponseContext { model: "m".to_owned(), id: "c".to_owned(), ..ResponseContext::default() };
        let framing = Framing::Array { opened: false };
        let mut events = StreamTranslation::new(Protocol::Chat, Protocol::Native, framing, context, None);
        let text = "x".repeat(MAX_EVENT_BYTES);
        let mut out = BytesMut::new();
        events.deltas.push(Delta::Text { choice: 0, text, logprobs: None });
        assert!(matches!(events.write(&mut out), EventKind::Content));
        assert!(out.starts_with(b"[{") && out.len() > MAX_EVENT_BYTES);
    }
}
