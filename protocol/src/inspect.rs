//! Reads what the gateway must know of an answer, event by event and without building a tree: usage, model, end, errors. Replaces
//! the model with the client's name for it.

mod choices;

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

use self::choices::ChoiceTracker;
pub(crate) use self::choices::StreamChoice;
use crate::conversation::{Failure, Protocol, Usage};
use crate::lazy_json::{self, members};
use crate::output_estimate::estimated_output;

/// Maximum size of the response object that the failure of a stream repeats (responses).
pub const MAX_KEPT_BYTES: usize = 256 * 1024;

/// Memory of a kept item in addition to its text, in bytes: its share of the list and of the heap.
const ITEM_OVERHEAD: usize = 48;

/// The final event of a chat stream.
pub(crate) const DONE: &str = "[DONE]";
/// The status of an answer whose body contains an error.
const STREAMED: u16 = 200;

/// The data of an answer so far.
#[derive(Debug)]
pub struct StreamInspector {
    protocol: Protocol,
    /// The client's name for the model, as JSON.
    model: String,
    /// Whether the usage chunk is for the gateway alone (chat).
    pub(crate) hide_usage: bool,
    /// Number of choices requested (chat).
    wanted: u32,
    choices: ChoiceTracker,
    /// The usage reported so far.
    pub usage: Option<Usage>,
    /// Number of events with content.
    pub pieces: u64,
    /// Bytes of their text.
    written: u64,
    /// How far the stream has come.
    pub progress: StreamProgress,
    /// The response object from the start of the stream (responses).
    pub started: Option<Box<RawValue>>,
    /// The finished items (responses), for the failure of a stream.
    pub output: Vec<Box<RawValue>>,
    /// Their memory in bytes.
    output_bytes: usize,
    /// Range of the response object in the data of the event that ended the stream (responses).
    pub ended_with: Option<Range<usize>>,
    /// The number of the last event (responses).
    pub sequence_number: Option<u64>,
}

/// Names of members of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerMembers {
    /// The member with the model.
    pub model: &'static str,
    /// The member with the usage.
    pub usage: &'static str,
    /// A member that only answers have, errors don't.
    pub content: &'static str,
}

/// The progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamProgress {
    /// More events follow.
    Underway,
    /// The answer is complete, but the stream isn't: its final event is missing.
    Finished,
    /// The final event has arrived.
    Ended,
    /// The upstream has reported an error.
    Failed,
}

/// What to do with an event.
#[derive(Debug)]
pub enum EventAction {
    /// Pass it through.
    Pass,
    /// Pass it through with another text at this range of its data.
    Rename(Range<usize>),
    /// Pass it through with these data.
    Rewrite(Bytes),
    /// It is for the gateway alone.
    Hide,
    /// It is an error; pass it through.
    Error(Failure),
    /// It only shows that the connection is alive.
    Ping,
}

impl StreamInspector {
    /// `model`: the client's name.
    pub fn new(protocol: Protocol, model: &str, hide_usage: bool) -> Self {
        Self {
            protocol,
            model: Value::from(model).to_string(),
            hide_usage,
            wanted: 1,
            choices: ChoiceTracker::default(),
            usage: None,
            pieces: 0,
            written: 0,
            progress: StreamProgress::Underway,
            started: None,
            output: Vec::new(),
            output_bytes: 0,
            ended_with: None,
            sequence_number: None,
        }
    }

    /// Sets the number of choices that a complete stream needs, unless its final event arrives.
    #[must_use]
    pub fn wanting(self, choices: u32) -> Self {
        Self { wanted: choices, ..self }
    }

    /// The client's name for the model, as JSON.
    pub fn model(&self) -> &[u8] {
        self.model.as_bytes()
    }

    /// The memory that it takes, in bytes.
    pub fn memory(&self) -> usize {
        let started = self.started.as_ref().map_or(0, |started| started.get().len());
        started + self.output_bytes.min(MAX_KEPT_BYTES)
    }

    /// Processes the data of an event. `name`: its `event` line.
    pub fn event(&mut self, name: Option<&str>, data: &str) -> EventAction {
        if self.progress == StreamProgress::Ended {
            // Nothing after the final event is part of the answer. Some upstreams also send the final event of chat in
            // other protocols.
            return if data.trim() == DONE { EventAction::Pass } else { EventAction::Hide };
        }
        // Only what a client's protocol carries is passed through.
        let Some(codec) = self.protocol.client_codec() else { return EventAction::Pass };
        let seen = codec.inspect(self, name, data);
        // Data in no known format passes through, unless the event's name says that it is an error.
        seen.unwrap_or_else(|_| match name {
            Some("error") => self.error(data),
            _ => EventAction::Pass,
        })
    }

    /// Processes a whole answer. Errors: it isn't an object, or it is an error from the upstream.
    pub fn document(&mut self, document: &str) -> Result<Option<Range<usize>>, Option<Failure>> {
        let (mut model, mut usage, mut error) = (None, None, None);
        let mut is_answer = false;
        let names = self.protocol.answer_members().ok_or(None)?;
        members(document, |name, value| match name {
            "error" if value.get() != "null" => error = Some(value),
            name if name == names.model => model = Some(value),
            name if name == names.usage => usage = Some(value),
            name if name == names.content => is_answer = true,
            _ => {}
        })
        .map_err(|_| None)?;
        if error.is_some() && !is_answer {
            return Err(Some(self.failure(document)));
        }
        self.take_usage(usage);
        self.progress = StreamProgress::Ended;
        Ok(self.rename(document, model))
    }

    /// A stream is finished with its last choice, but no longer if another one begins.
    pub(crate) fn note(&mut self, choices: &[StreamChoice<'_>]) {
        if choices.is_empty() || self.progress > StreamProgress::Finished {
            return;
        }
        self.choices.note(self.protocol, choices);
        let finished = self.choices.have_finished(self.wanted);
        self.progress = if finished { StreamProgress::Finished } else { StreamProgress::Underway };
    }

    /// Counts text that the model wrote, in bytes.
    pub fn note_written(&mut self, bytes: usize) {
        self.written = self.written.saturating_add(bytes as u64);
    }

    /// Estimated tokens of the answer so far.
    pub fn output(&self) -> u64 {
        estimated_output(self.pieces, self.written)
    }

    /// Takes the usage of an event. Returns whether there is one.
    pub fn take_usage(&mut self, usage: Option<&RawValue>) -> bool {
        let Some(usage) = usage.filter(|usage| usage.get() != "null") else { return false };
        let before = self.usage.unwrap_or_default();
        if let Some(further) = self.protocol.usage_in(usage, before) {
            self.usage = Some(further.or(before));
        }
        true
    }

    /// The event is an error, which these data report.
    pub fn error(&mut self, data: &str) -> EventAction {
        self.failed(self.failure(data))
    }

    /// The error in these data.
    pub fn failure(&self, data: &str) -> Failure {
        self.protocol.failure_in(STREAMED, data.as_bytes())
    }

    /// The stream has failed with this error.
    pub fn failed(&mut self, error: Failure) -> EventAction {
        self.progress = StreamProgress::Failed;
        EventAction::Error(error)
    }

    /// Passes the event through with the client's name for the model.
    pub fn renamed(&self, data: &str, model: Option<&RawValue>) -> EventAction {
        self.rename(data, model).map_or(EventAction::Pass, EventAction::Rename)
    }

    /// Keeps a finished item. If they exceed the limit, none is kept: a list with a gap would be a different answer.
    pub fn keep_item(&mut self, item: &RawValue) {
        let bytes = self.output_bytes.saturating_add(item.get().len() + ITEM_OVERHEAD);
        if bytes <= MAX_KEPT_BYTES {
            self.output.push(item.to_owned());
        } else {
            self.output = Vec::new();
        }
        self.output_bytes = bytes;
    }

    /// Where to replace the model.
    pub fn rename(&self, data: &str, model: Option<&RawValue>) -> Option<Range<usize>> {
        let model = model.filter(|model| model.get().starts_with('"') && model.get() != self.model)?;
        Some(lazy_json::place(data, model))
    }
}

/// Whether a member is present and not null.
pub(crate) fn is_given(member: Option<&RawValue>) -> bool {
    member.is_some_and(|member| member.get() != "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The action for each event, as one word.
    fn seen(inspector: &mut StreamInspector, events: &[&str]) -> Vec<String> {
        let word = |event: &&str| match inspector.event(None, event) {
            EventAction::Pass => "pass".to_owned(),
            EventAction::Hide => "hide".to_owned(),
            EventAction::Ping => "ping".to_owned(),
            EventAction::Rewrite(data) => String::from_utf8_lossy(&data).into_owned(),
            EventAction::Error(error) => error.message,
            EventAction::Rename(at) => {
                let mut event = (*event).to_owned();
                event.replace_range(at, &inspector.model);
                event
            }
        };
        events.iter().map(word).collect()
    }

    #[test]
    fn chat_chunks_are_inspected() {
        let mut inspector = StreamInspector::new(Protocol::Chat, "mine", true);
        let events = [
            r#"{"model":"theirs","choices":[{"delta":{"content":"\"model\":\"theirs\""}}],"future":{"model":"x"}}"#,
            r#"{"model":"mine","choices":[{"delta":{},"finish_reason":"stop"}],"usage":null}"#,
            r#"{"model":"theirs","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
            "[DONE]",
        ];
        let renamed = events[0].replacen("theirs", "mine", 1);
        assert_eq!(seen(&mut inspector, &events[..2]), [renamed.as_str(), "pass"]);
        assert_eq!((inspector.progress, inspector.pieces), (StreamProgress::Finished, 2));
        assert_eq!(seen(&mut inspector, &events[2..]), ["hide", "pass"]);
        assert_eq!(inspector.progress, StreamProgress::Ended);
        assert_eq!(inspector.usage.and_then(|usage| usage.output), Some(4));
    }

    #[test]
    fn output_of_a_stream_is_estimated_from_its_text_and_its_hidden_thoughts() {
        let text = "x".repeat(400);
        let (plain, hidden) = (100, 75);
        for (protocol, expected, event) in [
            (Protocol::Chat, plain, r#"{"choices":[{"delta":{"role":"assistant","content":"TEXT"}}]}"#),
            // Two names for one thought.
            (
                Protocol::Chat,
                plain,
                r#"{"choices":[{"delta":{"reasoning_content":"TEXT","reasoning":"TEXT"}}]}"#,
            ),
            (
                Protocol::Chat,
                plain,
                r#"{"choices":[{"delta":{"tool_calls":[{"id":"TEXT","function":{"arguments":"TEXT"}}]}}]}"#,
            ),
            (Protocol::Chat, 1, r#"{"choices":[{"delta":{"audio":{"data":"TEXT"}},"logprobs":"TEXT"}]}"#),
            (Protocol::Responses, plain, r#"{"type":"response.reasoning_text.delta","delta":"TEXT"}"#),
            (Protocol::Responses, 1, r#"{"type":"response.audio.delta","delta":"TEXT"}"#),
            (
                Protocol::Responses,
                hidden,
                r#"{"type":"response.output_item.done","item":{"type":"reasoning","encrypted_content":"TEXT"}}"#,
            ),
            (
                Protocol::Messages,
                plain,
                r#"{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"TEXT"}}"#,
            ),
            (
                Protocol::Messages,
                hidden,
                r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"TEXT"}}"#,
            ),
            (
                Protocol::Messages,
                hidden,
                r#"{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"TEXT"}}"#,
            ),
            (
                Protocol::Messages,
                0,
                r#"{"type":"content_block_start","content_block":{"type":"web_search_tool_result","data":"TEXT"}}"#,
            ),
            (Protocol::Native, plain, r#"{"candidates":[{"content":{"parts":[{"text":"TEXT"}]}}]}"#),
            (
                Protocol::Native,
                hidden,
                r#"{"candidates":[{"content":{"parts":[{"thoughtSignature":"TEXT"}]}}]}"#,
            ),
            (
                Protocol::Native,
                1,
                r#"{"candidates":[{"content":{"parts":[{"inlineData":{"data":"TEXT"}}]}}]}"#,
            ),
        ] {
            let mut inspector = StreamInspector::new(protocol, "m", false);
            inspector.event(None, &event.replace("TEXT", &text));
            assert_eq!(inspector.output(), expected, "{event}");
        }
    }

    #[test]
    fn requested_usage_chunk_is_passed() {
        let mut inspector = StreamInspector::new(Protocol::Chat, "m", false);
        let event = r#"{"model":"m","choices":[],"usage":{"prompt_tokens":3}}"#;
        assert_eq!(seen(&mut inspector, &[event]), ["pass"]);
        assert!(inspector.usage.is_some());
    }

    #[test]
    fn usage_chunk_gets_a_choices_list() {
        let mut inspector = StreamInspector::new(Protocol::Chat, "mine", false);
        let event = r#"{"model":"theirs","choices":null,"usage":{"prompt_tokens":3},"x":"model"}"#;
        let written = r#"{"model":"mine","choices":[],"usage":{"prompt_tokens":3},"x":"model"}"#;
        assert_eq!(seen(&mut inspector, &[event]), [written]);
        let event = r#"{"choices":null,"usage":{"prompt_tokens":3},"model":"theirs"}"#;
        let written = r#"{"choices":[],"usage":{"prompt_tokens":3},"model":"mine"}"#;
        assert_eq!(seen(&mut inspector, &[event]), [written]);
    }

    #[test]
    fn responses_events_are_inspected() {
        let mut inspector = StreamInspector::new(Protocol::Responses, "mine", false);
        let events = [
            r#"{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"theirs"}}"#,
            r#"{"type":"response.output_text.delta","sequence_number":1,"delta":"x","future":1}"#,
            r#"{"type":"response.completed","sequence_number":2,"response":{"usage":{"output_tokens":4}}}"#,
        ];
        let renamed = events[0].replace("theirs", "mine");
        assert_eq!(seen(&mut inspector, &events), [renamed.as_str(), "pass", "pass"]);
        assert_eq!((inspector.progress, inspector.pieces), (StreamProgress::Ended, 1));
        assert_eq!(inspector.sequence_number, Some(2));
        assert!(inspector.started.is_some_and(|started| started.get().contains("theirs")));
    }

    #[test]
    fn messages_events_are_inspected() {
        let mut inspector = StreamInspector::new(Protocol::Messages, "mine", false);
        let events = [
            r#"{"type":"message_start","message":{"model":"theirs","usage":{"input_tokens":3,"output_tokens":1}}}"#,
            r#"{"type":"ping"}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}"#,
            r#"{"type":"message_stop"}"#,
        ];
        let renamed = events[0].replace("theirs", "mine");
        assert_eq!(seen(&mut inspector, &events), [renamed.as_str(), "ping", "pass", "pass", "pass"]);
        let usage = inspector.usage.expect("usage");
        assert_eq!(
            (usage.input, usage.output, inspector.progress),
            (Some(3), Some(9), StreamProgress::Ended)
        );
    }

    #[test]
    fn native_documents_are_inspected() {
        let mut inspector = StreamInspector::new(Protocol::Native, "mine", false);
        let events = [
            r#"{"candidates":[{"content":{}}],"modelVersion":"theirs","usageMetadata":{"promptTokenCount":3}}"#,
            r#"{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":5}}"#,
        ];
        let renamed = events[0].replace("theirs", "mine");
        assert_eq!(seen(&mut inspector, &events), [renamed.as_str(), "pass"]);
        assert_eq!(inspector.progress, StreamProgress::Finished);
        assert_eq!(inspector.usage.map(|usage| (usage.input, usage.output)), Some((Some(3), Some(5))));
    }

    #[test]
    fn event_type_falls_back_to_the_event_name() {
        for (protocol, name, event) in [
            (Protocol::Responses, "response.completed", r#"{"response":{"usage":{"output_tokens":4}}}"#),
            (Protocol::Responses, "response.completed", r#"{"response":true}"#),
            (Protocol::Messages, "message_stop", "{}"),
        ] {
            let mut inspector = StreamInspector::new(protocol, "m", false);
            assert!(matches!(inspector.event(Some(name), event), EventAction::Pass));
            assert_eq!(inspector.progress, StreamProgress::Ended, "{name}");
        }
        let mut inspector = StreamInspector::new(Protocol::Messages, "m", false);
        assert!(matches!(inspector.event(Some("ping"), "{}"), EventAction::Ping));
        assert!(matches!(inspector.event(Some("error"), "{}"), EventAction::Error(_)));
    }

    #[test]
    fn finish_reason_must_be_a_non_empty_string() {
        for (protocol, event, progress) in [
            (Protocol::Chat, r#"{"choices":[{"finish_reason":"stop"}]}"#, StreamProgress::Finished),
            (Protocol::Chat, r#"{"choices":[{"finish_reason":false}]}"#, StreamProgress::Underway),
            (Protocol::Chat, r#"{"choices":[{"finish_reason":""}]}"#, StreamProgress::Underway),
            (Protocol::Chat, r#"{"choices":[{"finishReason":"stop"}]}"#, StreamProgress::Underway),
            (
                Protocol::Native,
                r#"{"candidates":[{"finishReason":"STOP","index":0,"index":0}]}"#,
                StreamProgress::Finished,
            ),
            (Protocol::Native, r#"{"candidates":[{"finishReason":[]}]}"#, StreamProgress::Underway),
            (Protocol::Native, r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, StreamProgress::Finished),
            (Protocol::Native, r#"{"promptFeedback":{"blockReason":null}}"#, StreamProgress::Underway),
            (Protocol::Native, r#"{"promptFeedback":"blockReason"}"#, StreamProgress::Underway),
        ] {
            let mut inspector = StreamInspector::new(protocol, "m", false);
            inspector.event(None, event);
            assert_eq!(inspector.progress, progress, "{event}");
        }
    }

    #[test]
    fn events_after_the_terminal_event_are_hidden() {
        let after = [
            r#"{"error":{"message":"late"}}"#,
            "no JSON",
            r#"{"model":"theirs","choices":[{"delta":{"content":"x"}}],"usage":{"prompt_tokens":3}}"#,
            r#"{"type":"message_delta","delta":{},"usage":{"input_tokens":3}}"#,
        ];
        for (protocol, last) in [
            (Protocol::Chat, DONE),
            (Protocol::Responses, r#"{"type":"response.completed","response":{}}"#),
            (Protocol::Messages, r#"{"type":"message_stop"}"#),
        ] {
            let mut inspector = StreamInspector::new(protocol, "m", false);
            inspector.event(None, last);
            for event in after {
                assert!(
                    matches!(inspector.event(Some("error"), event), EventAction::Hide),
                    "{protocol:?}: {event}"
                );
            }
            assert!(matches!(inspector.event(None, DONE), EventAction::Pass), "{protocol:?}");
            assert_eq!((inspector.progress, inspector.usage), (StreamProgress::Ended, None), "{protocol:?}");
        }
    }

    #[test]
    fn stream_errors_are_read_from_each_protocol() {
        for (protocol, event) in [
            (Protocol::Chat, r#"{"error":{"message":"broken"}}"#),
            (Protocol::Responses, r#"{"type":"error","message":"broken"}"#),
            (Protocol::Responses, r#"{"type":"response.failed","response":{"error":{"message":"broken"}}}"#),
            (Protocol::Responses, r#"{"type":"response.failed","error":{"message":"broken"}}"#),
            (Protocol::Responses, r#"{"type":"response.failed","response":[],"error":{"message":"broken"}}"#),
            (
                Protocol::Messages,
                r#"{"type":"error","error":{"type":"overloaded_error","message":"broken"}}"#,
            ),
            (Protocol::Native, r#"{"error":{"code":500,"message":"broken","status":"INTERNAL"}}"#),
        ] {
            let mut inspector = StreamInspector::new(protocol, "m", false);
            assert_eq!(seen(&mut inspector, &[event]), ["broken"], "{event}");
            assert!(inspector.progress >= StreamProgress::Ended);
        }
    }

    #[test]
    fn unary_chat_response_is_inspected() {
        let mut inspector = StreamInspector::new(Protocol::Chat, "mine", false);
        let answer = r#"{"model":"theirs","choices":[],"usage":{"prompt_tokens":3},"error":null}"#;
        let at = inspector.document(answer).expect("an answer").expect("another model");
        assert_eq!(&answer[at], "\"theirs\"");
        assert_eq!(inspector.usage.and_then(|usage| usage.input), Some(3));
        let error = inspector.document(r#"{"error":{"message":"broken"}}"#).expect_err("an error");
        assert_eq!(error.map(|error| error.message).as_deref(), Some("broken"));
        assert_eq!(inspector.document("<html>"), Err(None));
    }
}
