//! What one event means to its stream: a chunk, the end, an error or nothing. The common path is cheap: an event is
//! scanned for significant words and parsed into values only if it contains one. Delivery checks whether a chunk is
//! JSON.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::{self, Finder};
use serde::Deserialize;
use serde_json::Value;

use crate::api::operation::{Operation, Protocol};
use crate::api::operations;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::error_body::{self, ErrorMarkers};
use crate::wire::repair;
use crate::wire::sse::StreamEvent;

/// The terminator that servers of every protocol may send, whether or not their operation names one.
pub(super) const DONE: &str = "[DONE]";

/// What to do with an event.
#[derive(Debug)]
pub(super) enum EventClass {
    /// A chunk: deliver it and read on.
    Chunk,
    /// An object that is not part of a response: delivered as chunks are, but it does not begin the response.
    Aside,
    /// Several events in one: an array whose elements are handled one by one.
    List,
    /// A chunk that completes the response, after which more may follow (usage, the terminator).
    Finish,
    /// A chunk that completes the response and is the last one.
    Terminal,
    /// The terminator, which is not delivered.
    Terminator,
    /// A heartbeat, which is not delivered.
    Nothing,
    /// The stream carries an error, or something that is not a chunk at all.
    Error(Error),
}

pub(super) fn event_class(operation: &Operation, event: &StreamEvent) -> EventClass {
    let data = event.data.trim();
    if data.is_empty() || data == "null" {
        return EventClass::Nothing;
    }
    if data == DONE || operation.terminator == Some(data) {
        return EventClass::Terminator;
    }
    if event.event.as_deref() == Some("error") {
        return EventClass::Error(in_band_error(data));
    }
    match data.as_bytes()[0] {
        b'{' => {}
        b'[' => return EventClass::List,
        _ => return EventClass::Error(no_object(data)),
    }
    if may_hold_error(data) {
        if is_error(data) {
            return EventClass::Error(in_band_error(data));
        }
        if operation.protocol == Protocol::Chat
            && let Some(error) = choice_error(data)
        {
            return EventClass::Error(error);
        }
    }
    match operation.protocol {
        Protocol::Chat if has_value(data, &FINISH_REASON) => EventClass::Finish,
        Protocol::Native
            if [&FINISH_REASON_NATIVE, &BLOCK_REASON].iter().any(|name| has_value(data, name)) =>
        {
            EventClass::Finish
        }
        _ if is_last(operation, event) => EventClass::Terminal,
        _ if is_of_answer(operation.protocol, event) => EventClass::Chunk,
        _ => EventClass::Aside,
    }
}

/// Whether a clean end of the body completes the stream even without a finish reason or a terminator.
pub(super) fn may_end_anywhere(operation: &Operation) -> bool {
    match operation.protocol {
        Protocol::Chat | Protocol::Responses | Protocol::Messages | Protocol::Native => false,
        Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => {
            operation.terminator.is_none() && operation.last_events.is_empty()
        }
    }
}

/// Whether the terminator alone makes the stream complete. Where a last event is named, only that event does: there the
/// terminator is an optional last frame.
pub(super) fn terminator_completes(operation: &Operation) -> bool {
    operation.last_events.is_empty()
}

/// An error reported by an event or by JSON between the events.
pub(super) fn in_band_error(data: &str) -> Error {
    let body = Bytes::from(repair::text(data).into_owned());
    Error::from_body(ErrorKind::Stream, body, || "the stream carried an error without a message".to_owned())
}

/// The error for JSON that is not an object and for text that is not JSON: no operation streams either.
fn no_object(data: &str) -> Error {
    let body = Bytes::copy_from_slice(data.as_bytes());
    match repair::value(data) {
        Ok(_) => {
            let message = "an event of the stream is a JSON string, number or word, not an object";
            Error::new(ErrorKind::Decode, message).with_body(body)
        }
        Err(error) => not_json(data, error),
    }
}

/// The error for an event that cannot be parsed.
pub(super) fn not_json(data: &str, error: serde_json::Error) -> Error {
    let body = Bytes::copy_from_slice(data.as_bytes());
    Error::new(ErrorKind::Decode, "an event of the stream is not JSON")
        .quoting(&error)
        .caused_by(error)
        .with_body(body)
}

/// An error that a choice of a chat chunk reports, either in its own `error` or by its finish reason.
fn choice_error(data: &str) -> Option<Error> {
    let chunk = repair::value(data).ok()?;
    let mut choices = chunk.get("choices")?.as_array()?.iter();
    let choice = choices.find(|choice| {
        choice.get("error").is_some_and(error_body::says_something)
            || choice.get("finish_reason").and_then(Value::as_str) == Some("error")
    })?;
    let body = Bytes::from(choice.to_string());
    let error =
        Error::from_body(ErrorKind::Stream, body, || "the answer ended with finish_reason error".to_owned());
    Some(error.with_body(Bytes::copy_from_slice(data.as_bytes())))
}

type ByteFinder = LazyLock<Finder<'static>>;

static ERROR: ByteFinder = LazyLock::new(|| Finder::new(b"\"error\""));
static FINISH_REASON: ByteFinder = LazyLock::new(|| Finder::new(b"\"finish_reason\""));
// Set when a prompt was refused: no candidate will follow.
static BLOCK_REASON: ByteFinder = LazyLock::new(|| Finder::new(b"\"blockReason\""));
static FINISH_REASON_NATIVE: ByteFinder = LazyLock::new(|| Finder::new(b"\"finishReason\""));

/// Every chunk of a response has at least one of these members.
static CHAT_MEMBERS: [ByteFinder; 2] =
    [LazyLock::new(|| Finder::new(b"\"choices\"")), LazyLock::new(|| Finder::new(b"\"usage\""))];
static NATIVE_MEMBERS: [ByteFinder; 3] = [
    LazyLock::new(|| Finder::new(b"\"candidates\"")),
    LazyLock::new(|| Finder::new(b"\"usageMetadata\"")),
    LazyLock::new(|| Finder::new(b"\"promptFeedback\"")),
];
/// The beginning of the event types of the responses protocol, and the member of its lifecycle events.
static RESPONSES_WORDS: [ByteFinder; 2] =
    [LazyLock::new(|| Finder::new(b"\"response.")), LazyLock::new(|| Finder::new(b"\"response\""))];
/// The beginnings of the event types of the messages protocol; `ping` has none of them.
static MESSAGES_WORDS: [ByteFinder; 2] =
    [LazyLock::new(|| Finder::new(b"\"message_")), LazyLock::new(|| Finder::new(b"\"content_block_"))];
/// Finders of the names of last events, of the operations that this crate knows.
static LAST_EVENTS: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    operations::ALL.iter().flat_map(|operation| operation.last_events).map(Finder::new).collect()
});

fn holds_any(data: &str, words: &[ByteFinder]) -> bool {
    words.iter().any(|word| word.find(data.as_bytes()).is_some())
}

/// Whether an object is part of a response rather than a heartbeat in the form of an object: `{}`, `{"type":"ping"}`.
fn is_of_answer(protocol: Protocol, event: &StreamEvent) -> bool {
    match protocol {
        Protocol::Chat => holds_any(&event.data, &CHAT_MEMBERS),
        Protocol::Native => holds_any(&event.data, &NATIVE_MEMBERS),
        Protocol::Responses => {
            event.event.as_deref().is_some_and(|name| name.starts_with("response."))
                || holds_any(&event.data, &RESPONSES_WORDS)
        }
        Protocol::Messages => {
            let begins = |name: &str| name.starts_with("message_") || name.starts_with("content_block_");
            event.event.as_deref().is_some_and(begins) || holds_any(&event.data, &MESSAGES_WORDS)
        }
        Protocol::Plain | Protocol::Batch | Protocol::Media | Protocol::Models => true,
    }
}

/// Whether a document may be an error and is worth parsing. Quotes within a string are escaped, so the scan does not
/// mistake text for a member; the member is often present and null.
fn may_hold_error(data: &str) -> bool {
    let is_null = |at: usize| {
        let value = data[at + ERROR.needle().len()..].trim_start().strip_prefix(':');
        value.is_some_and(|value| value.trim_start().starts_with("null"))
    };
    !ERROR.find_iter(data.as_bytes()).all(is_null)
}

/// Whether a document is an error, as defined by [`ErrorMarkers`].
pub(super) fn is_error(data: &str) -> bool {
    may_hold_error(data)
        && ErrorMarkers::of(data.as_bytes())
            .or_else(|| ErrorMarkers::of(repair::text(data).as_bytes()))
            .is_some_and(|signs| signs.is_error())
}

/// Whether a member of this name has a value other than null and the empty string, anywhere in the document.
fn has_value(data: &str, name: &ByteFinder) -> bool {
    let bytes = data.as_bytes();
    name.find_iter(bytes).any(|at| {
        let after = data[at + name.needle().len()..].trim_start();
        let Some(value) = after.strip_prefix(':').map(str::trim_start) else { return false };
        !value.starts_with("null") && !value.starts_with("\"\"")
    })
}

/// The `type` member of a document; the rest is skipped.
#[derive(Deserialize)]
struct TypeMember<'a> {
    #[serde(borrow, default)]
    r#type: Option<Cow<'a, str>>,
}

/// Whether an event of this name is always the last one, whatever the operation.
pub(super) fn is_last_name(name: &str) -> bool {
    operations::ALL.iter().any(|operation| operation.last_events.contains(&name))
}

/// Whether the event's name or the type in its data marks a last event: some servers name every event `message`.
fn is_last(operation: &Operation, event: &StreamEvent) -> bool {
    if operation.last_events.is_empty() {
        return false;
    }
    let is_last = |name: &str| operation.last_events.contains(&name);
    let typed = |data: &str| serde_json::from_str::<TypeMember<'_>>(data).ok()?.r#type.map(Cow::into_owned);
    event.event.as_deref().is_some_and(is_last)
        // Only lifecycle events contain these words, so deltas stop here.
        || operation.last_events.iter().any(|name| contains_name(&event.data, name))
            && typed(&event.data)
                .or_else(|| typed(&repair::text(&event.data)))
                .is_some_and(|name| is_last(&name))
}

/// Whether data contains the name of a last event. Operations of other APIs have names without a prepared finder.
fn contains_name(data: &str, name: &str) -> bool {
    let data = data.as_bytes();
    match LAST_EVENTS.iter().find(|finder| finder.needle() == name.as_bytes()) {
        Some(finder) => finder.find(data).is_some(),
        None => memmem::find(data, name.as_bytes()).is_some(),
    }
}

/// The data of a named event. If it has no `type`, the name is added as one.
pub(super) fn with_type<'a>(data: &'a str, name: &str) -> Cow<'a, str> {
    let Some(rest) = data.trim_start().strip_prefix('{') else { return Cow::Borrowed(data) };
    // The type is almost always present and the same.
    if data.contains(name)
        || serde_json::from_str::<TypeMember<'_>>(data).is_ok_and(|typed| typed.r#type.is_some())
    {
        return Cow::Borrowed(data);
    }
    let separator = if rest.trim_start().starts_with('}') { "" } else { "," };
    Cow::Owned(format!("{{\"type\":{}{separator}{rest}", Value::from(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations::{
        CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, STREAM_GENERATE_CONTENT,
    };

    fn of(operation: &Operation, name: Option<&str>, data: &str) -> &'static str {
        let event = StreamEvent { event: name.map(str::to_owned), data: data.to_owned(), id: None };
        match event_class(operation, &event) {
            EventClass::Chunk => "chunk",
            EventClass::Aside => "aside",
            EventClass::List => "list",
            EventClass::Finish => "finish",
            EventClass::Terminal => "terminal",
            EventClass::Terminator => "terminator",
            EventClass::Nothing => "nothing",
            EventClass::Error(error) if error.kind() == ErrorKind::Decode => "undecodable",
            EventClass::Error(error) => {
                assert_eq!(error.kind(), ErrorKind::Stream);
                "error"
            }
        }
    }

    #[test]
    fn chat_stream_finishes_at_nonempty_finish_reason() {
        let chat = |data| of(&CREATE_CHAT_COMPLETION, None, data);
        assert_eq!(chat(r#"{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}"#), "chunk");
        assert_eq!(chat(r#"{"choices":[{"delta":{},"finish_reason":""}]}"#), "chunk");
        assert_eq!(chat(r#"{"choices":[{"delta":{},"finish_reason" : "stop"}]}"#), "finish");
        assert_eq!(chat(r#"{"choices":[{"finish_reason":null},{"finish_reason":"eos"}]}"#), "finish");
        assert_eq!(chat(r#"{"choices":[{"delta":{"content":"\"finish_reason\":\"stop\""}}]}"#), "chunk");
    }

    #[test]
    fn last_event_of_another_api_is_recognized_by_its_type() {
        let forecast = Operation {
            protocol: Protocol::Models,
            last_events: &["forecast.complete"],
            ..CREATE_CHAT_COMPLETION
        };
        let of_type = |data| of(&forecast, None, data);
        assert_eq!(of_type(r#"{"type":"forecast.day","day":1}"#), "chunk");
        assert_eq!(of_type(r#"{"type":"forecast.day","note":"forecast.complete"}"#), "chunk");
        assert_eq!(of_type(r#"{"type":"forecast.complete"}"#), "terminal");
        assert_eq!(of_type(r#"{"type":"response.completed"}"#), "chunk");
    }

    #[test]
    fn terminators_and_heartbeats_are_not_delivered() {
        let chat = |data| of(&CREATE_CHAT_COMPLETION, None, data);
        assert_eq!(chat("[DONE]"), "terminator");
        assert_eq!(chat("[DONE] "), "terminator");
        assert_eq!(chat(""), "nothing");
        assert_eq!(chat("null"), "nothing");
    }

    #[test]
    fn every_known_error_form_is_distinguished_from_a_chunk() {
        let chat = |data: &str| of(&CREATE_CHAT_COMPLETION, None, data);
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
        for error in [
            r#"{"error":true}"#,
            r#"{"error":["boom"]}"#,
            r#"{"error":500,"message":"m"}"#,
            r#"{"error":{}}"#,
        ] {
            assert_eq!(chat(error), "error", "{error}");
        }
        for none in ["null", "\"\"", "false", "0", "[]", "{}"] {
            let chunk = format!(r#"{{"choices":[],"error":{none}}}"#);
            assert_eq!(chat(&chunk), "chunk", "{chunk}");
        }
    }

    #[test]
    fn failed_choice_is_an_error_with_its_message_and_code() {
        let chat = |data: &str| {
            let event = StreamEvent { event: None, data: data.to_owned(), id: None };
            match event_class(&CREATE_CHAT_COMPLETION, &event) {
                EventClass::Error(error) => {
                    let error = error.shown(&crate::wire::redact::Redactor::default());
                    (error.message().to_owned(), error.code().map(str::to_owned))
                }
                other => panic!("{data} means {other:?}"),
            }
        };
        assert_eq!(
            chat(
                r#"{"choices":[{"delta":{},"error":{"message":"boom","code":502},"finish_reason":"error"}]}"#
            ),
            ("boom".to_owned(), Some("502".to_owned()))
        );
        assert_eq!(
            chat(r#"{"choices":[{"delta":{},"finish_reason":"error"}]}"#),
            ("the answer ended with finish_reason error".to_owned(), None)
        );
        let chunk = r#"{"choices":[{"delta":{"content":"error"},"error":"","finish_reason":null}]}"#;
        assert_eq!(of(&CREATE_CHAT_COMPLETION, None, chunk), "chunk");
    }

    #[test]
    fn non_object_data_is_not_a_chunk() {
        for operation in
            [&CREATE_CHAT_COMPLETION, &CREATE_RESPONSE, &CREATE_MESSAGE, &STREAM_GENERATE_CONTENT]
        {
            for data in ["\"text\"", "7", "true", "rubbish"] {
                assert_eq!(of(operation, None, data), "undecodable", "{data}");
            }
            assert_eq!(of(operation, None, "[{}]"), "list");
            for data in ["{}", r#"{"type":"ping"}"#] {
                assert_eq!(of(operation, Some("ping"), data), "aside", "{data}");
            }
        }
        assert_eq!(of(&CREATE_CHAT_COMPLETION, None, r#"{"usage":{}}"#), "chunk");
        assert_eq!(of(&STREAM_GENERATE_CONTENT, None, r#"{"usageMetadata":{}}"#), "chunk");
    }

    #[test]
    fn responses_stream_ends_at_terminal_event_with_or_without_name() {
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
        for name in [Some("message"), Some("response.output_text.delta"), None] {
            assert_eq!(named(name, r#"{"type":"response.completed","response":{"x":NaN}}"#), "terminal");
        }
    }

    #[test]
    fn messages_stream_ends_only_at_message_stop() {
        let named = |name, data| of(&CREATE_MESSAGE, name, data);
        for name in [Some("message"), Some("message_stop"), None] {
            assert_eq!(named(name, r#"{"type":"message_stop"}"#), "terminal");
        }
        assert_eq!(named(Some("message_stop"), "{}"), "terminal");
        assert_eq!(named(None, r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#), "chunk");
        let piece = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"message_stop"}}"#;
        assert_eq!(named(None, piece), "chunk");
        assert_eq!(named(Some("content_block_stop"), r#"{"index":0}"#), "chunk");
        assert_eq!(named(Some("ping"), r#"{"type":"ping"}"#), "aside");
        assert_eq!(
            named(None, r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#),
            "error"
        );
        assert_eq!(named(None, "[DONE]"), "terminator");
        assert!(!terminator_completes(&CREATE_MESSAGE) && terminator_completes(&CREATE_CHAT_COMPLETION));
    }

    #[test]
    fn event_name_replaces_missing_type() {
        let name = "response.created";
        assert_eq!(with_type(r#"{"type":"response.created"}"#, name), r#"{"type":"response.created"}"#);
        assert_eq!(with_type(r#"{"a":1,"type":"other"}"#, name), r#"{"a":1,"type":"other"}"#);
        assert_eq!(with_type(r#" {"a":1}"#, name), r#"{"type":"response.created","a":1}"#);
        assert_eq!(with_type("{ }", name), r#"{"type":"response.created" }"#);
        assert_eq!(with_type("[]", name), "[]");
    }

    #[test]
    fn native_stream_finishes_at_finish_or_block_reason() {
        let native = |data| of(&STREAM_GENERATE_CONTENT, None, data);
        assert_eq!(native(r#"{"candidates":[{"content":{}}]}"#), "chunk");
        assert_eq!(native(r#"{"candidates":[{"finishReason":"STOP"}]}"#), "finish");
        assert_eq!(native(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#), "finish");
    }
}
