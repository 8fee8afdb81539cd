//! Answers of plain operations as events: pieces of a sound or of a transcript, and a last event with the usage. Those of an upstream
//! pass as they are; what an upstream sends as a whole becomes events here.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use gatewright::operations::StreamMode;
use gatewright_protocol::StreamError;
use gatewright_protocol::conversation::{Failure, Protocol, Usage};
use gatewright_protocol::inspect::{EventAction, StreamInspector, StreamProgress};
use gatewright_protocol::lazy_json::{members, string};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::last_event;
use super::frames::Fields;
use super::passthrough_stream::{EventKind, EventProcessor, Framing};
use super::plain::transcripts::{stated_millis, usage_of, words_of};
use super::sound::{CutOff, Sound};
use crate::wire::{Body, Call};

/// The data that ends the streams of other protocols.
const DONE: &str = "[DONE]";
/// The kind of the last event of a transcript.
const TRANSCRIPT_DONE: &str = "transcript.text.done";
/// Bytes of a group in Base64.
const GROUP: usize = 3;
/// Maximum number of bytes of a sound in an event.
const MAX_PIECE: usize = 48_000;

/// Whether a request of a plain operation asks for events.
pub(super) fn are_asked_for(call: &Call) -> bool {
    let (name, on) = match call.operation.stream {
        StreamMode::Parameter(name) => (name, Value::Bool(true)),
        StreamMode::Word(name, word) => (name, Value::from(word)),
        StreamMode::Never | StreamMode::Always => return false,
    };
    let Ok(body) = std::str::from_utf8(&call.body) else { return false };
    let mut asks = false;
    let read = members(body, |member, value| {
        if member == name {
            asks = serde_json::from_str::<Value>(value.get()).is_ok_and(|value| value == on);
        }
    });
    read.is_ok() && asks
}

/// Passes the events of a stream through, up to its last.
pub(super) struct PlainEvents {
    /// The kinds of its last event.
    last: &'static [&'static str],
    inspector: StreamInspector,
    /// The length that the upstream states of the sound that it transcribed.
    sound_millis: Option<u64>,
    /// The transcript so far, of a server that sends it as chunks of chat completions.
    chunks: Option<ChunkedTranscript>,
}

/// A transcript in chunks.
#[derive(Default)]
struct ChunkedTranscript {
    text: String,
    is_finished: bool,
}

/// A choice of a chunk.
#[derive(Deserialize)]
struct ChunkChoice<'a> {
    #[serde(borrow)]
    delta: Option<ChunkDelta<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ChunkDelta<'a> {
    #[serde(borrow)]
    content: Option<Cow<'a, str>>,
}

/// What an event says.
#[derive(Deserialize)]
struct PlainEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

impl PlainEvents {
    /// `last`: the kinds of the event that ends the stream.
    pub(super) fn new(last: &'static [&'static str]) -> Self {
        let inspector = StreamInspector::new(Protocol::Chat, "", false);
        Self { last, inspector, sound_millis: None, chunks: None }
    }

    /// What the event is for the client. `out`: gets what replaces it, if something does.
    fn read(&mut self, name: Option<&str>, data: &str, out: &mut BytesMut) -> EventKind {
        let failure = |action| match action {
            EventAction::Error(failure) => EventKind::Error(failure),
            _ => EventKind::Life,
        };
        let Ok(event) = serde_json::from_str::<PlainEvent<'_>>(data) else {
            return match name {
                Some("error") => failure(self.inspector.error(data)),
                _ => EventKind::Life,
            };
        };
        let kind = event.kind.as_deref().or(name).unwrap_or_default();
        if kind == "error" || event.error.is_some_and(|error| error.get() != "null") {
            return failure(self.inspector.error(data));
        }
        if let Some(usage) = event.usage {
            self.inspector.usage = usage_of(usage).or(self.inspector.usage);
            self.sound_millis = stated_millis(Some(usage), None).or(self.sound_millis);
        }
        let is_transcript = self.last.contains(&TRANSCRIPT_DONE);
        if let Some(choices) = event.choices.filter(|_| is_transcript && kind.is_empty()) {
            self.chunk(choices, out);
        } else if self.last.contains(&kind) {
            self.inspector.progress = StreamProgress::Ended;
        } else if let Some(delta) = event.delta.and_then(string) {
            self.inspector.pieces += 1;
            self.inspector.note_written(delta.len());
        }
        EventKind::Content
    }

    /// Writes the event of a chunk.
    fn chunk(&mut self, choices: &RawValue, out: &mut BytesMut) {
        let chunks = self.chunks.get_or_insert_default();
        let Ok(choices) = serde_json::from_str::<Vec<ChunkChoice<'_>>>(choices.get()) else { return };
        for ChunkChoice { delta, finish_reason } in choices {
            chunks.is_finished |= finish_reason.is_some_and(|reason| !reason.is_empty());
            let content = delta.and_then(|delta| delta.content).unwrap_or_default();
            if !content.is_empty() {
                chunks.text.push_str(&content);
                self.inspector.pieces += 1;
                self.inspector.note_written(content.len());
                out.extend_from_slice(delta_of(&content.into_owned().into()).as_bytes());
            }
        }
    }

    /// Ends a transcript that came in chunks. Returns whether it did.
    fn end_chunks(&mut self, out: &mut BytesMut) -> bool {
        let Some(ChunkedTranscript { text, .. }) = self.chunks.take() else { return false };
        let usage = self.inspector.usage.and_then(|usage| usage.input.zip(usage.output));
        let usage = usage.map_or_else(String::new, |(input, output)| {
            let total = input.saturating_add(output);
            format!(
                ",\"usage\":{{\"type\":\"tokens\",\"input_tokens\":{input},\"output_tokens\":{output},\"total_tokens\":{total}}}"
            )
        });
        out.extend_from_slice(done(&text.into(), &usage).as_bytes());
        self.inspector.progress = StreamProgress::Ended;
        true
    }
}

/// An event with new text of a transcript.
fn delta_of(text: &Value) -> String {
    format!("data: {{\"type\":\"transcript.text.delta\",\"delta\":{text}}}\n\n")
}

/// The last event of a transcript. `usage`: its member, or nothing.
fn done(text: &Value, usage: &str) -> String {
    format!("data: {{\"type\":\"{TRANSCRIPT_DONE}\",\"text\":{text}{usage}}}\n\n")
}

impl EventProcessor for PlainEvents {
    fn block(&mut self, block: &Bytes, out: &mut BytesMut) -> EventKind {
        let fields = Fields::read(block);
        let Some((data, _)) = fields.data else {
            out.extend_from_slice(block);
            return EventKind::Life;
        };
        // Nothing follows the last event.
        if self.inspector.progress != StreamProgress::Underway {
            return EventKind::Life;
        }
        if data.trim() == DONE {
            return if self.end_chunks(out) { EventKind::Content } else { EventKind::Life };
        }
        let kind = self.read(fields.name, &data, out);
        if self.chunks.is_none() && !matches!(kind, EventKind::Error(_)) {
            out.extend_from_slice(block);
        }
        kind
    }

    fn end(&mut self, out: &mut BytesMut) -> bool {
        let is_finished = self.chunks.as_ref().is_some_and(|chunks| chunks.is_finished);
        self.inspector.progress == StreamProgress::Ended || is_finished && self.end_chunks(out)
    }

    fn fail(&mut self, failure: &Failure, out: &mut BytesMut) {
        let event = last_event(Protocol::Chat, &StreamError::of(failure), &self.inspector);
        out.extend_from_slice(event.as_bytes());
    }

    fn framing(&self) -> Framing {
        Framing::Events
    }

    fn progress(&self) -> StreamProgress {
        self.inspector.progress
    }

    fn usage(&self) -> Option<Usage> {
        self.inspector.usage
    }

    fn output(&self) -> u64 {
        self.inspector.output()
    }

    fn sound_millis(&self) -> Option<u64> {
        self.sound_millis
    }

    fn retained_bytes(&self) -> usize {
        self.chunks.as_ref().map_or(0, |chunks| chunks.text.capacity())
    }
}

/// A whole transcript as events. `None`: it has no text.
pub(super) fn of_transcript(document: &str) -> Option<Bytes> {
    let text = words_of(document)?;
    let mut usage = None;
    members(document, |name, value| {
        if name == "usage" && value.get() != "null" {
            usage = Some(value);
        }
    })
    .ok()?;
    let text = Value::from(text);
    let usage = usage.map_or_else(String::new, |usage| format!(",\"usage\":{usage}"));
    Some((delta_of(&text) + &done(&text, &usage)).into())
}

/// A sound as events.
pub(super) struct SoundEvents {
    sound: Sound,
    /// What has arrived and is not written.
    pending: Bytes,
    /// Bytes before it that are no group of three yet: only whole groups are written, so that the texts also decode joined.
    begun: Vec<u8>,
    is_over: bool,
}

impl SoundEvents {
    pub(super) fn of(sound: Sound) -> Body {
        let events = Self { sound, pending: Bytes::new(), begun: Vec::new(), is_over: false };
        Body::from_stream(stream::unfold(events, |mut events| async move {
            let bytes = events.next().await?;
            Some((bytes, events))
        }))
    }

    /// The next events; none at the end. Errors: the sound was cut off.
    async fn next(&mut self) -> Option<Result<Bytes, CutOff>> {
        while !self.is_over {
            if self.begun.len() + self.pending.len() >= GROUP {
                return Some(Ok(self.delta()));
            }
            self.begun.extend_from_slice(&std::mem::take(&mut self.pending));
            match self.sound.next().await {
                Some(Ok(packet)) => self.pending = packet,
                Some(Err(why)) => return Some(Err(why)),
                None => {
                    self.is_over = true;
                    let mut out = String::new();
                    if !self.begun.is_empty() {
                        write_delta(&[&self.begun], &mut out);
                    }
                    out.push_str("data: {\"type\":\"speech.audio.done\"}\n\n");
                    return Some(Ok(out.into()));
                }
            }
        }
        None
    }

    /// An event with whole groups.
    fn delta(&mut self) -> Bytes {
        let mut out = String::new();
        // What completes the group that has begun.
        let missing = (GROUP - self.begun.len()) % GROUP;
        self.begun.extend_from_slice(&self.pending.split_to(missing));
        let whole = self.pending.len() / GROUP * GROUP;
        let piece = self.pending.split_to(whole.min(MAX_PIECE));
        write_delta(&[&self.begun, &piece], &mut out);
        self.begun.clear();
        out.into()
    }
}

/// Writes an event. `parts`: all but the last are groups of three.
fn write_delta(parts: &[&[u8]], out: &mut String) {
    out.reserve(64 + parts.iter().map(|part| part.len().div_ceil(GROUP) * 4).sum::<usize>());
    out.push_str("data: {\"type\":\"speech.audio.delta\",\"audio\":\"");
    for part in parts {
        STANDARD.encode_string(part, out);
    }
    out.push_str("\"}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client gets of these blocks, and the processor at their end.
    fn passed(last: &'static str, blocks: &[&str]) -> (String, PlainEvents) {
        let mut events = PlainEvents::new(Box::leak(Box::new([last])));
        let mut out = BytesMut::new();
        for block in blocks {
            events.block(&Bytes::copy_from_slice(block.as_bytes()), &mut out);
        }
        (String::from_utf8(out.to_vec()).expect("text"), events)
    }

    #[test]
    fn events_pass_unchanged_up_to_the_last() {
        let blocks = [
            "event: transcript.text.delta\ndata: {\"delta\":\"A boat on a lake.\", \"future\": 1e0}\n\n",
            ": still here\n\n",
            "data: {\"type\":\"transcript.future\"}\n\n",
            "data: {\"type\":\"transcript.text.done\",\"text\":\"A boat on a lake.\",\"usage\":{\"input_tokens\":15,\"output_tokens\":6,\"seconds\":2}}\n\n",
            "data: {\"type\":\"transcript.text.delta\",\"delta\":\"late\"}\n\n",
            "data: [DONE]\n\n",
        ];
        let (text, mut events) = passed("transcript.text.done", &blocks);
        assert_eq!(text, blocks[..4].concat());
        assert!(events.end(&mut BytesMut::new()));
        let usage = events.usage().expect("usage");
        assert_eq!((usage.input, usage.output, events.sound_millis()), (Some(15), Some(6), Some(2000)));
        assert!(events.output() > 0);
    }

    #[test]
    fn stream_without_its_last_event_is_not_complete() {
        let (_, mut events) = passed(
            "speech.audio.done",
            &["data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAA\"}\n\n", "data: [DONE]\n\n"],
        );
        assert!(!events.end(&mut BytesMut::new()));
        assert_eq!((events.usage(), events.output()), (None, 0));
    }

    #[test]
    fn errors_are_recognized_in_every_form() {
        for block in [
            "data: {\"error\":{\"message\":\"no voice today\"}}\n\n",
            "event: error\ndata: {\"message\":\"no voice today\"}\n\n",
            "data: {\"type\":\"error\",\"message\":\"no voice today\"}\n\n",
        ] {
            let mut events = PlainEvents::new(&["speech.audio.done"]);
            let mut out = BytesMut::new();
            let kind = events.block(&Bytes::copy_from_slice(block.as_bytes()), &mut out);
            assert!(
                matches!(&kind, EventKind::Error(failure) if failure.message == "no voice today"),
                "{kind:?}"
            );
            assert!(out.is_empty());
        }
    }

    #[test]
    fn chunks_of_chat_completions_become_events() {
        let chunk = |rest: &str| {
            format!("data: {{\"object\":\"transcription.chunk\",\"model\":\"theirs\",{rest}}}\n\n")
        };
        let start = chunk(r#""choices":[{"delta":{"content":"a "}}]"#)
            + &chunk(r#""choices":[{"delta":{"content":"boat"},"finish_reason":null}]"#);
        let finish = chunk(r#""choices":[{"delta":{"content":""},"finish_reason":"stop"}]"#);
        let usage =
            chunk(r#""choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}"#);
        let last = "data: [DONE]\n\n";
        let deltas = delta_of(&"a ".into()) + &delta_of(&"boat".into());
        let counted = r#","usage":{"type":"tokens","input_tokens":7,"output_tokens":2,"total_tokens":9}"#;
        for (rest, complete, expected) in [
            (finish.clone() + &usage + last, true, done(&"a boat".into(), counted)),
            (last.to_owned(), true, done(&"a boat".into(), "")),
            (finish, true, done(&"a boat".into(), "")),
            (String::new(), false, String::new()),
        ] {
            let blocks = start.clone() + &rest;
            let blocks: Vec<&str> = blocks.split_inclusive("\n\n").collect();
            let (text, mut events) = passed(TRANSCRIPT_DONE, &blocks);
            let mut end = BytesMut::new();
            assert_eq!(events.end(&mut end), complete, "{rest:?}");
            let text = text + std::str::from_utf8(&end).expect("text");
            assert_eq!(text, deltas.clone() + &expected, "{rest:?}");
        }
    }

    #[test]
    fn whole_transcript_becomes_events() {
        let events = of_transcript(r#"{"text":"A \"boat\".","usage":{"seconds":2}}"#).expect("a text");
        assert_eq!(
            events,
            "data: {\"type\":\"transcript.text.delta\",\"delta\":\"A \\\"boat\\\".\"}\n\n\
             data: {\"type\":\"transcript.text.done\",\"text\":\"A \\\"boat\\\".\",\"usage\":{\"seconds\":2}}\n\n"
        );
        assert_eq!(of_transcript(r#"{"text":null}"#), None);
    }
}
