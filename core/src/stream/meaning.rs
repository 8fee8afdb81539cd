//! What one event means to its stream: a chunk, the end, an error, nothing. Cheap on the common path: an event is
//! scanned for the words that matter and parsed into values only when they are there. Whether a chunk is JSON shows
//! when it is handed over.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::Value;

use super::mend;
use crate::error::{Error, ErrorKind};
use crate::operation::{Operation, Protocol};
use crate::sse::StreamEvent;

/// The terminator that servers of every protocol may send, whether their operation names one or not.
pub(super) const DONE: &str = "[DONE]";

/// Events of the responses protocol after which nothing follows.
pub(super) const TERMINAL_TYPES: &[&str] = &["response.completed", "response.failed", "response.incomplete"];

/// What to do with an event.
#[derive(Debug)]
pub(super) enum Meaning {
    /// A chunk: hand it over and read on.
    Chunk,
    /// A chunk that completes the answer, after which more may follow (usage, the terminator).
    Finish,
    /// A chunk that completes the answer and is the last.
    Terminal,
    /// The terminator; it is not handed over.
    Terminator,
    /// A heartbeat: not handed over.
    Nothing,
    /// The stream carries an error instead of going on.
    Error(Error),
}

pub(super) fn meaning(operation: &Operation, event: &StreamEvent) -> Meaning {
    let data = event.data.trim();
    if data.is_empty() || data == "null" {
        return Meaning::Nothing;
    }
    if data == DONE || operation.terminator == Some(data) {
        return Meaning::Terminator;
    }
    if event.event.as_deref() == Some("error") || is_error(data) {
        return Meaning::Error(in_band_error(data));
    }
    match operation.protocol {
        Protocol::Chat if has_value(data, &FINISH_REASON) => Meaning::Finish,
        Protocol::Native
            if [&FINISH_REASON_NATIVE, &BLOCK_REASON].iter().any(|name| has_value(data, name)) =>
        {
            Meaning::Finish
        }
        Protocol::Responses if is_terminal(event) => Meaning::Terminal,
        _ => Meaning::Chunk,
    }
}

/// Whether a clean end of the body completes the stream although no finish reason and no terminator was seen.
pub(super) fn may_end_anywhere(operation: &Operation) -> bool {
    match operation.protocol {
        Protocol::Chat | Protocol::Responses | Protocol::Native => false,
        Protocol::Media | Protocol::Models => operation.terminator.is_none(),
    }
}

/// Whether the terminator stands for completeness by itself. In the responses protocol only a terminal event does:
/// the terminator is an optional last frame there.
pub(super) fn terminator_completes(operation: &Operation) -> bool {
    operation.protocol != Protocol::Responses
}

/// An error told of by an event, or by JSON among the events.
pub(super) fn in_band_error(data: &str) -> Error {
    let body = Bytes::from(mend::text(data).into_owned());
    Error::from_body(ErrorKind::Stream, body, || "the stream carried an error without a message".to_owned())
}

type Word = LazyLock<Finder<'static>>;

static ERROR: Word = LazyLock::new(|| Finder::new(b"\"error\""));
static FINISH_REASON: Word = LazyLock::new(|| Finder::new(b"\"finish_reason\""));
// Of a prompt that was refused: there will be no candidate.
static BLOCK_REASON: Word = LazyLock::new(|| Finder::new(b"\"blockReason\""));
static FINISH_REASON_NATIVE: Word = LazyLock::new(|| Finder::new(b"\"finishReason\""));

/// Whether a document is an error: `{"error": …}`, `{"object": "error"}` or `{"type": "error"}`, at the top.
/// Within a string the quotes of the word would be escaped, so that the scan does not take text for a member.
pub(super) fn is_error(data: &str) -> bool {
    let bytes = data.as_bytes();
    // The member is often there and null.
    let is_null = |at: usize| {
        let value = data[at + ERROR.needle().len()..].trim_start().strip_prefix(':');
        value.is_some_and(|value| value.trim_start().starts_with("null"))
    };
    if ERROR.find_iter(bytes).all(is_null) {
        return false;
    }
    let Ok(Value::Object(object)) = mend::value(data) else { return false };
    let says_error = |name: &str| object.get(name).and_then(Value::as_str) == Some("error");
    let holds_error = match object.get("error") {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        _ => false,
    };
    holds_error || says_error("object") || says_error("type")
}

/// Whether a member of this name has a value other than null and the empty string, anywhere in the document.
fn has_value(data: &str, name: &Word) -> bool {
    let bytes = data.as_bytes();
    name.find_iter(bytes).any(|at| {
        let after = data[at + name.needle().len()..].trim_start();
        let Some(value) = after.strip_prefix(':').map(str::trim_start) else { return false };
        !value.starts_with("null") && !value.starts_with("\"\"")
    })
}

/// The `type` member of a document, read without the rest.
#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(borrow, default)]
    r#type: Option<Cow<'a, str>>,
}

fn is_terminal(event: &StreamEvent) -> bool {
    let named = |name: &str| TERMINAL_TYPES.contains(&name);
    match event.event.as_deref() {
        Some(name) => named(name),
        None => {
            // Without a name the type is in the data; only lifecycle events hold the word, so deltas stop here.
            TERMINAL_TYPES.iter().any(|name| event.data.contains(name))
                && serde_json::from_str::<Typed<'_>>(&event.data)
                    .is_ok_and(|typed| typed.r#type.as_deref().is_some_and(named))
        }
    }
}

/// The data of a named event, with the name as its `type` where it has none.
pub(super) fn with_type<'a>(data: &'a str, name: &str) -> Cow<'a, str> {
    let Some(rest) = data.trim_start().strip_prefix('{') else { return Cow::Borrowed(data) };
    // Almost always the type is there and says the same.
    if data.contains(name)
        || serde_json::from_str::<Typed<'_>>(data).is_ok_and(|typed| typed.r#type.is_some())
    {
        return Cow::Borrowed(data);
    }
    let separator = if rest.trim_start().starts_with('}') { "" } else { "," };
    Cow::Owned(format!("{{\"type\":{}{separator}{rest}", Value::from(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{CREATE_CHAT_COMPLETION, CREATE_RESPONSE, STREAM_GENERATE_CONTENT};

    fn of(operation: &Operation, name: Option<&str>, data: &str) -> &'static str {
        let event = StreamEvent { event: name.map(str::to_owned), data: data.to_owned(), id: None };
        match meaning(operation, &event) {
            Meaning::Chunk => "chunk",
            Meaning::Finish => "finish",
            Meaning::Terminal => "terminal",
            Meaning::Terminator => "terminator",
            Meaning::Nothing => "nothing",
            Meaning::Error(error) => {
                assert_eq!(error.kind(), ErrorKind::Stream);
                "error"
            }
        }
    }

    #[test]
    fn chat_chunks_finish_with_a_finish_reason_that_says_something() {
        let chat = |data| of(&CREATE_CHAT_COMPLETION, None, data);
        assert_eq!(chat(r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#), "chunk");
        assert_eq!(chat(r#"{"choices":[{"delta":{},"finish_reason":""}]}"#), "chunk");
        assert_eq!(chat(r#"{"choices":[{"delta":{},"finish_reason" : "stop"}]}"#), "finish");
        assert_eq!(chat(r#"{"choices":[{"finish_reason":null},{"finish_reason":"eos"}]}"#), "finish");
        assert_eq!(chat(r#"{"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""}}]}"#), "chunk");
    }

    #[test]
    fn terminators_and_heartbeats_are_not_handed_over() {
        let chat = |data| of(&CREATE_CHAT_COMPLETION, None, data);
        assert_eq!(chat("[DONE]"), "terminator");
        assert_eq!(chat("[DONE] "), "terminator");
        assert_eq!(chat(""), "nothing");
        assert_eq!(chat("null"), "nothing");
    }

    #[test]
    fn every_known_form_of_an_error_is_told_from_a_chunk() {
        let chat = |data| of(&CREATE_CHAT_COMPLETION, None, data);
        assert_eq!(chat(r#"{"error":{"message":"m"}}"#), "error");
        assert_eq!(chat(r#"{"error":"text"}"#), "error");
        assert_eq!(chat(r#"{"object":"error","message":"m"}"#), "error");
        assert_eq!(chat(r#"{"choices":[{"finish_reason":"error"}],"error":{"message":"m"}}"#), "error");
        assert_eq!(of(&CREATE_RESPONSE, None, r#"{"type":"error","message":"m"}"#), "error");
        assert_eq!(of(&CREATE_CHAT_COMPLETION, Some("error"), r#"{"message":"m"}"#), "error");
        assert_eq!(of(&CREATE_CHAT_COMPLETION, Some("error"), "overloaded"), "error");
        assert_eq!(chat(r#"{"choices":[],"error":null}"#), "chunk");
        assert_eq!(chat(r#"{"choices":[{"delta":{"content":"\"error\""}}]}"#), "chunk");
        assert_eq!(chat(r#"{"choices":[],"error" : null,"note":"\"error\""}"#), "chunk");
        assert_eq!(chat(r#"{"error":{"message":"\ud800","code":NaN}}"#), "error");
    }

    #[test]
    fn responses_end_with_their_terminal_event_named_or_not() {
        let named = |name, data| of(&CREATE_RESPONSE, name, data);
        assert_eq!(named(Some("response.completed"), "{}"), "terminal");
        assert_eq!(
            named(None, r#"{"type":"response.failed","response":{"error":{"message":"m"}}}"#),
            "terminal"
        );
        assert_eq!(
            named(None, r#"{"type":"response.output_text.delta","delta":"response.completed"}"#),
            "chunk"
        );
        assert_eq!(named(Some("response.created"), r#"{"response":{"error":null}}"#), "chunk");
    }

    #[test]
    fn an_events_name_stands_in_for_a_missing_type() {
        let name = "response.created";
        assert_eq!(with_type(r#"{"type":"response.created"}"#, name), r#"{"type":"response.created"}"#);
        assert_eq!(with_type(r#"{"a":1,"type":"other"}"#, name), r#"{"a":1,"type":"other"}"#);
        assert_eq!(with_type(r#" {"a":1}"#, name), r#"{"type":"response.created","a":1}"#);
        assert_eq!(with_type("{ }", name), r#"{"type":"response.created" }"#);
        assert_eq!(with_type("[]", name), "[]");
    }

    #[test]
    fn native_chunks_finish_too() {
        let native = |data| of(&STREAM_GENERATE_CONTENT, None, data);
        assert_eq!(native(r#"{"candidates":[{"content":{}}]}"#), "chunk");
        assert_eq!(native(r#"{"candidates":[{"finishReason":"STOP"}]}"#), "finish");
        assert_eq!(native(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#), "finish");
    }
}
