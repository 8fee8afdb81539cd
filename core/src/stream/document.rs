//! Handles a body that is not an event stream although a stream was requested: one JSON document becomes events, and an
//! error or a page becomes an error.

use std::borrow::Cow;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::classify::is_error;
use crate::api::operation::{Operation, Protocol};
use crate::wire::error::{Error, ErrorKind};
use crate::wire::repair;
use crate::wire::sse::StreamEvent;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The kind of a body, judged by its first bytes; the content type is not reliable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Events,
    Json,
    Page,
}

/// Whether everything received so far may be the beginning of a byte order mark.
pub(super) fn may_be_mark(prefix: &[u8]) -> bool {
    BYTE_ORDER_MARK.starts_with(prefix)
}

/// Position of the first byte that is neither white space nor part of a leading byte order mark; the length if there is
/// none. `known`: no such byte comes before this position.
pub(super) fn blank(prefix: &[u8], known: usize) -> usize {
    let from = if prefix.starts_with(BYTE_ORDER_MARK) { known.max(BYTE_ORDER_MARK.len()) } else { known };
    let found = prefix[from..].iter().position(|byte| !byte.is_ascii_whitespace());
    found.map_or(prefix.len(), |found| from + found)
}

/// Determines the kind from the beginning of a body; none while only white space or a byte order mark has arrived.
pub(super) fn kind(body: &[u8], content_type: Option<&str>) -> Option<Kind> {
    if may_be_mark(body) {
        return None;
    }
    let first = body.get(blank(body, 0))?;
    Some(match first {
        b'{' | b'[' => Kind::Json,
        b'<' => Kind::Page,
        _ if content_type.is_some_and(|value| value.trim_start().starts_with("text/html")) => Kind::Page,
        _ => Kind::Events,
    })
}

/// Delivers the events that a whole JSON body is equivalent to. Errors, after the events that arrived whole: the body
/// is incomplete (one that is cut short is a truncation); an error of `take`.
pub(super) fn events(
    operation: &Operation,
    body: &[u8],
    mut take: impl FnMut(StreamEvent) -> Result<(), Error>,
) -> Result<(), Error> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{FEFF}').trim();
    let described = |error: serde_json::Error| {
        let (kind, message) = if error.is_eof() {
            (ErrorKind::StreamTruncated, "the body ended inside a JSON document")
        } else {
            (ErrorKind::Decode, "the body is neither an event stream nor one JSON document")
        };
        Error::new(kind, message).caused_by(error).with_body(Bytes::copy_from_slice(body))
    };
    if let Some(rest) = text.strip_prefix('[') {
        // An array of chunks: the native protocol's stream without alt=sse. Some servers send one in other protocols.
        let mut chunks = Elements::of(rest);
        while let Some(chunk) = chunks.next().map_err(described)? {
            take(StreamEvent { event: None, data: chunk.to_owned(), id: None })?;
        }
        return Ok(());
    }
    let value = repair::value(text).map_err(described)?;
    let event = match (operation.protocol, value) {
        (Protocol::Messages, message) if !is_error(text) => {
            take(event(Some("message_start"), &json!({"type": "message_start", "message": message})))?;
            event(Some("message_stop"), &json!({"type": "message_stop"}))
        }
        (Protocol::Chat, Value::Object(completion)) if !is_error(text) => {
            event(None, &chat_chunk(completion))
        }
        (Protocol::Responses, response) if !is_error(text) => {
            let status = response.get("status").and_then(Value::as_str);
            let name = match status {
                Some("failed") => "response.failed",
                Some("incomplete") => "response.incomplete",
                _ => "response.completed",
            };
            event(Some(name), &json!({"type": name, "sequence_number": 0, "response": response}))
        }
        (_, value) => event(None, &value),
    };
    take(event)
}

/// The elements of an array, each as text; no values are built.
pub(super) struct Elements<'a> {
    mended: Cow<'a, str>,
    at: usize,
}

impl<'a> Elements<'a> {
    /// list: the array after its opening bracket.
    pub(super) fn of(list: &'a str) -> Self {
        Self { mended: repair::text(list), at: 0 }
    }

    /// The next element. Errors: the rest of the array is not JSON.
    pub(super) fn next(&mut self) -> Result<Option<&str>, serde_json::Error> {
        let rest = self.mended[self.at..].trim_start().trim_start_matches(',').trim_start();
        if rest == "]" {
            return Ok(None);
        }
        let begin = self.mended.len() - rest.len();
        let mut reader = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        match reader.next() {
            Some(read) => read?,
            // The text ends here: return the error that any truncated text gives.
            None => serde_json::from_str(rest)?,
        };
        self.at = begin + reader.byte_offset();
        Ok(Some(&self.mended[begin..self.at]))
    }
}

/// The error for a page received instead of a stream.
pub(super) fn page_error(body: &[u8]) -> Error {
    let body = Bytes::copy_from_slice(body);
    Error::from_body(ErrorKind::Decode, body, || "the answer is an HTML page, not a stream".to_owned())
}

fn event(name: Option<&str>, value: &Value) -> StreamEvent {
    StreamEvent { event: name.map(str::to_owned), data: value.to_string(), id: None }
}

/// The chunk that represents a whole completion that arrived as an event; none if the event is something else.
pub(super) fn chunk_of_completion(data: &str) -> Option<String> {
    if !data.contains("\"chat.completion\"") {
        return None;
    }
    match repair::value(data) {
        Ok(Value::Object(completion)) => Some(chat_chunk(completion).to_string()),
        _ => None,
    }
}

/// Turns a whole completion into the one chunk that would have carried it all: each choice's message becomes its delta.
fn chat_chunk(mut completion: Map<String, Value>) -> Value {
    if completion.get("object").and_then(Value::as_str) == Some("chat.completion") {
        completion.insert("object".to_owned(), "chat.completion.chunk".into());
    }
    for choice in completion.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(choice) = choice.as_object_mut() else { continue };
        if !choice.contains_key("delta")
            && let Some(message) = choice.shift_remove("message")
        {
            choice.insert("delta".to_owned(), message);
        }
    }
    Value::Object(completion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations::{
        CREATE_CHAT_COMPLETION, CREATE_MESSAGE, CREATE_RESPONSE, STREAM_GENERATE_CONTENT,
    };

    fn whole(operation: &Operation, body: &[u8]) -> Vec<StreamEvent> {
        let (taken, end) = taken(operation, body);
        end.expect("a complete body");
        taken
    }

    fn taken(operation: &Operation, body: &[u8]) -> (Vec<StreamEvent>, Result<(), Error>) {
        let mut taken = Vec::new();
        let end = events(operation, body, |event| {
            taken.push(event);
            Ok(())
        });
        (taken, end)
    }

    #[test]
    fn body_kind_is_sniffed_regardless_of_content_type() {
        let sse = Some("text/event-stream");
        assert_eq!(kind(b" \r\n", sse), None);
        assert_eq!(kind(b"\xEF\xBB\xBFdata: x", sse), Some(Kind::Events));
        assert_eq!(kind(b"\xEF\xBB", sse), None);
        assert_eq!(kind(b"\xEF\xBB\xBF{", sse), Some(Kind::Json));
        assert_eq!(kind(b": comment", Some("application/json")), Some(Kind::Events));
        assert_eq!(kind(b"\n {\"error\"", sse), Some(Kind::Json));
        assert_eq!(kind(b"<!DOCTYPE html>", sse), Some(Kind::Page));
        assert_eq!(kind(b"Bad Gateway", Some("text/html; charset=utf-8")), Some(Kind::Page));
    }

    #[test]
    fn complete_chat_completion_becomes_one_chunk() {
        let body = br#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
        let events = whole(&CREATE_CHAT_COMPLETION, body);
        let [event] = events.as_slice() else { panic!("one chunk") };
        let chunk: Value = serde_json::from_str(&event.data).expect("JSON");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["choices"][0]["delta"]["content"], "hi");
        assert_eq!(chunk["choices"][0].get("message"), None);
    }

    #[test]
    fn complete_response_becomes_its_terminal_event() {
        let events = whole(&CREATE_RESPONSE, br#"{"id":"r","status":"incomplete","error":null}"#);
        assert_eq!(events[0].event.as_deref(), Some("response.incomplete"));
    }

    #[test]
    fn complete_message_becomes_start_and_stop_events() {
        let body = br#"{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#;
        let events = whole(&CREATE_MESSAGE, body);
        let names: Vec<_> = events.iter().map(|event| event.event.as_deref()).collect();
        assert_eq!(names, [Some("message_start"), Some("message_stop")]);
        let message: Value = serde_json::from_str(&events[0].data).expect("JSON");
        assert_eq!(message["message"]["content"][0]["text"], "hi");
    }

    #[test]
    fn native_chunk_array_becomes_events_even_if_truncated() {
        let native = |body: &[u8]| {
            let (taken, end) = taken(&STREAM_GENERATE_CONTENT, body);
            (taken.len(), end.err().map(|error| error.kind()))
        };
        assert_eq!(native(br#"[{"candidates":[]}, {"candidates":[],"x":NaN}]"#), (2, None));
        assert_eq!(native(b"[ ]"), (0, None));
        assert_eq!(native(br#"[{"candidates":[]},{"cand"#), (1, Some(ErrorKind::StreamTruncated)));
        assert_eq!(native(br#"[{"candidates":[]},"#), (1, Some(ErrorKind::StreamTruncated)));
        assert_eq!(native(br#"[{"candidates":[]} rubbish"#), (1, Some(ErrorKind::Decode)));
    }

    #[test]
    fn truncated_and_malformed_documents_are_distinguished() {
        let kind = |body: &[u8]| taken(&CREATE_CHAT_COMPLETION, body).1.expect_err("an error").kind();
        assert_eq!(kind(br#"{"choices":[{"mess"#), ErrorKind::StreamTruncated);
        assert_eq!(kind(b"{rubbish}"), ErrorKind::Decode);
    }
}
