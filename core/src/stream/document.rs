//! A body that is no event stream although a stream was asked for: one JSON document becomes events, an error or a
//! page becomes an error.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::meaning::{in_band_error, is_error};
use crate::error::{Error, ErrorKind};
use crate::operation::{Operation, Protocol};
use crate::sse::StreamEvent;

/// What a body turns out to be, by its first bytes; the content type is not to be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Events,
    Json,
    Page,
}

/// Tells the form from the beginning of a body; none while only white space has arrived.
pub(super) fn form(body: &[u8], content_type: Option<&str>) -> Option<Form> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace())?;
    Some(match first {
        b'{' | b'[' => Form::Json,
        b'<' => Form::Page,
        // A beginning of a byte order mark: no field name begins so, and the decoder takes care of it.
        _ if content_type.is_some_and(|value| value.trim_start().starts_with("text/html")) => Form::Page,
        _ => Form::Events,
    })
}

/// The events that a whole JSON body amounts to. A body cut short is a truncation.
pub(super) fn events(operation: &Operation, body: &[u8]) -> Result<Vec<StreamEvent>, Error> {
    let text = String::from_utf8_lossy(body);
    let text = text.trim_start_matches('\u{FEFF}').trim();
    if is_error(text) {
        return Err(in_band_error(text));
    }
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let (kind, message) = if error.is_eof() {
            (ErrorKind::StreamTruncated, "the body ended inside a JSON document")
        } else {
            (ErrorKind::Decode, "the body is neither an event stream nor one JSON document")
        };
        Error::new(kind, message).with_source(error).with_body(Bytes::copy_from_slice(body))
    })?;
    Ok(match (operation.protocol, value) {
        // The native protocol's stream without alt=sse: an array of chunks.
        (Protocol::Native, Value::Array(chunks)) => chunks.iter().map(|chunk| event(None, chunk)).collect(),
        (Protocol::Chat, Value::Object(completion)) => vec![event(None, &chat_chunk(completion))],
        (Protocol::Responses, response) => {
            let status = response.get("status").and_then(Value::as_str);
            let name = match status {
                Some("failed") => "response.failed",
                Some("incomplete") => "response.incomplete",
                _ => "response.completed",
            };
            vec![event(Some(name), &json!({"type": name, "sequence_number": 0, "response": response}))]
        }
        (_, value) => vec![event(None, &value)],
    })
}

/// The error for a page where a stream was asked for.
pub(super) fn page_error(body: &[u8]) -> Error {
    let body = Bytes::copy_from_slice(body);
    Error::from_body(ErrorKind::Decode, body, || "the answer is an HTML page, not a stream".to_owned())
}

fn event(name: Option<&str>, value: &Value) -> StreamEvent {
    StreamEvent { event: name.map(str::to_owned), data: value.to_string(), id: None }
}

/// A whole completion as the one chunk that would have carried it all: each choice's message becomes its delta.
fn chat_chunk(mut completion: Map<String, Value>) -> Value {
    if completion.get("object").and_then(Value::as_str) == Some("chat.completion") {
        completion.insert("object".to_owned(), "chat.completion.chunk".into());
    }
    for choice in completion.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(choice) = choice.as_object_mut() else { continue };
        if !choice.contains_key("delta")
            && let Some(message) = choice.remove("message")
        {
            choice.insert("delta".to_owned(), message);
        }
    }
    Value::Object(completion)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::{CREATE_CHAT_COMPLETION, CREATE_RESPONSE, STREAM_GENERATE_CONTENT};

    #[test]
    fn the_first_bytes_tell_the_form_whatever_the_content_type_says() {
        let sse = Some("text/event-stream");
        assert_eq!(form(b" \r\n", sse), None);
        assert_eq!(form(b"\xEF\xBB\xBFdata: x", sse), Some(Form::Events));
        assert_eq!(form(b"\xEF\xBB", sse), Some(Form::Events));
        assert_eq!(form(b": comment", Some("application/json")), Some(Form::Events));
        assert_eq!(form(b"\n {\"error\"", sse), Some(Form::Json));
        assert_eq!(form(b"<!DOCTYPE html>", sse), Some(Form::Page));
        assert_eq!(form(b"Bad Gateway", Some("text/html; charset=utf-8")), Some(Form::Page));
    }

    #[test]
    fn a_whole_completion_becomes_one_chunk() {
        let body = br#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#;
        let events = events(&CREATE_CHAT_COMPLETION, body).expect("one chunk");
        let [event] = events.as_slice() else { panic!("one chunk") };
        let chunk: Value = serde_json::from_str(&event.data).expect("JSON");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["choices"][0]["delta"]["content"], "hi");
        assert_eq!(chunk["choices"][0].get("message"), None);
    }

    #[test]
    fn a_whole_response_becomes_its_terminal_event() {
        let events =
            events(&CREATE_RESPONSE, br#"{"id":"r","status":"incomplete","error":null}"#).expect("one event");
        assert_eq!(events[0].event.as_deref(), Some("response.incomplete"));
    }

    #[test]
    fn an_array_of_native_chunks_becomes_as_many_events() {
        let events =
            events(&STREAM_GENERATE_CONTENT, br#"[{"candidates":[]},{"candidates":[]}]"#).expect("two");
        assert_eq!(events.len(), 2);
    }

    #[test]
    fn an_error_a_cut_and_rubbish_are_told_apart() {
        let kind = |body: &[u8]| events(&CREATE_CHAT_COMPLETION, body).expect_err("an error").kind();
        assert_eq!(kind(br#"{"error":{"message":"m"}}"#), ErrorKind::Stream);
        assert_eq!(kind(br#"{"choices":[{"mess"#), ErrorKind::StreamTruncated);
        assert_eq!(kind(b"{rubbish}"), ErrorKind::Decode);
    }
}
