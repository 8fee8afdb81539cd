//! Reads what a response says about itself while it is sent to the client: its id, its finish reason, and whether it
//! contains an error. Only if traces are exported. Upstream text is never kept, since it may repeat a secret: unknown
//! values are recorded as "other", and an id is kept only if it looks like an id and not like a key.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use gatewright::ErrorCode;
use gatewright::redact::Redactor;
use gatewright::sse::{Decoder, Item};
use gatewright_protocol::conversation::Protocol;
use http::{HeaderMap, header};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The conventions' value for anything unknown.
pub(super) const OTHER: &str = "_OTHER";
/// Maximum size of what is read at once, in bytes: longer documents or events are skipped.
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum number of choices whose finish reasons are recorded.
const MAX_CHOICES: usize = 128;
/// Maximum length of an id, in bytes.
const MAX_ID_CHARS: usize = 200;
/// The final states of a response.
const ENDS: &[&str] = &["completed", "incomplete", "failed", "cancelled"];

/// See the module.
#[derive(Debug)]
pub(super) struct ResponseInspector {
    form: InspectedBody,
    /// The id of the response.
    pub(super) id: Option<String>,
    /// By the index of the choice.
    reasons: BTreeMap<usize, &'static str>,
    /// The error code.
    pub(super) error: Option<&'static str>,
    started: Instant,
    /// The time from the request head to the first event of a stream.
    pub(super) first_event: Option<Duration>,
}

#[derive(Debug)]
enum InspectedBody {
    Events(Box<Decoder>),
    /// The part of a document that has arrived.
    Document(Vec<u8>),
    Unread,
}

/// The relevant fields of a document or an event, as each protocol names them.
#[derive(Deserialize, Default)]
#[serde(default)]
struct InspectedDocument<'a> {
    #[serde(borrow, alias = "responseId")]
    id: Option<&'a RawValue>,
    #[serde(borrow, alias = "candidates")]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    /// In a response.
    #[serde(borrow)]
    status: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
    /// In a message, and in `delta` of the event that ends it.
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    /// In the events of a response, and `message` in the first one of a message.
    #[serde(borrow, alias = "message")]
    response: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct InspectedChoice<'a> {
    index: Option<usize>,
    #[serde(borrow, alias = "finishReason")]
    finish_reason: Option<&'a RawValue>,
}

impl ResponseInspector {
    /// For a response with these headers. `matters`: whether any of it is relevant. `started`: when the request head had
    /// arrived.
    pub(super) fn new(headers: &HeaderMap, matters: bool, started: Instant) -> Self {
        let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let form = match media_type.unwrap_or_default() {
            _ if !matters => InspectedBody::Unread,
            media_type if media_type.starts_with("text/event-stream") => {
                InspectedBody::Events(Box::new(Decoder::new().with_max_event_bytes(MAX_BYTES)))
            }
            media_type if media_type.starts_with("application/json") => InspectedBody::Document(Vec::new()),
            _ => InspectedBody::Unread,
        };
        Self { form, id: None, reasons: BTreeMap::new(), error: None, started, first_event: None }
    }

    /// The next chunk of the body.
    pub(super) fn take(&mut self, piece: &[u8]) {
        match &mut self.form {
            InspectedBody::Events(decoder) => {
                let mut items = Vec::new();
                let fed = decoder.feed(piece, &mut items);
                for item in items {
                    if let Item::Event(event) = item {
                        self.first_event.get_or_insert_with(|| self.started.elapsed());
                        self.read(&event.data);
                    }
                }
                if fed.is_err() {
                    self.form = InspectedBody::Unread;
                }
            }
            InspectedBody::Document(started) if started.len() + piece.len() <= MAX_BYTES => {
                started.extend_from_slice(piece);
            }
            InspectedBody::Document(_) => self.form = InspectedBody::Unread,
            InspectedBody::Unread => {}
        }
    }

    /// The body has ended.
    pub(super) fn end(&mut self) {
        let InspectedBody::Document(document) = std::mem::replace(&mut self.form, InspectedBody::Unread)
        else {
            return;
        };
        let Ok(document) = str::from_utf8(&document) else { return };
        // A native stream may arrive as an array.
        match serde_json::from_str::<Vec<&RawValue>>(document) {
            Ok(parts) => parts.iter().for_each(|part| self.read(part.get())),
            Err(_) => self.read(document),
        }
    }

    /// The finish reason of each choice.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &'static str> {
        self.reasons.values().copied()
    }

    fn read(&mut self, part: &str) {
        let part: InspectedDocument<'_> = parsed(part);
        self.note(&part);
        if let Some(response) = part.response {
            self.note(&parsed(response.get()));
        }
    }

    fn note(&mut self, part: &InspectedDocument<'_>) {
        if self.id.is_none() {
            self.id = part.id.and_then(text).filter(|id| is_id(id)).map(Cow::into_owned);
        }
        let is_error = part.kind.and_then(text).is_some_and(|kind| kind == "error");
        if part.error.is_some() || is_error {
            let code = inner(part.error).code.or(part.code).and_then(text);
            let known = ErrorCode::ALL.iter().find(|known| code.as_deref() == Some(known.code));
            self.error = Some(known.map_or(OTHER, |known| known.code));
        }
        let choices: Vec<InspectedChoice<'_>> = parsed(part.choices.map_or("[]", RawValue::get));
        for (place, choice) in choices.iter().enumerate() {
            self.ended(choice.index.unwrap_or(place), choice.finish_reason);
        }
        let is_end = part.status.and_then(text).is_some_and(|status| ENDS.contains(&&*status));
        if is_end {
            self.ended(0, inner(part.incomplete_details).reason.or(part.status));
        }
        self.ended(0, part.stop_reason.or_else(|| inner(part.delta).stop_reason));
    }

    fn ended(&mut self, choice: usize, reason: Option<&RawValue>) {
        if let Some(reason) = reason.and_then(text)
            && choice < MAX_CHOICES
        {
            let rules = Protocol::OF_CLIENTS.into_iter().filter_map(Protocol::answer_rules);
            let known = rules.flat_map(|rules| rules.finish_words).find(|known| **known == reason);
            self.reasons.insert(choice, known.unwrap_or(&OTHER));
        }
    }
}

/// Whether a text can be a response id, and is safe to show.
fn is_id(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=MAX_ID_CHARS).contains(&text.len())
        && text.bytes().all(is_part)
        && Redactor::default().redact(text) == text
}

/// The fields of a nested object.
fn inner(member: Option<&RawValue>) -> InspectedDocument<'_> {
    parsed(member.map_or("null", RawValue::get))
}

/// Anything of another form is ignored.
fn parsed<'a, T: Deserialize<'a> + Default>(text: &'a str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

/// `None` if it isn't text.
fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct JsonText<'a>(#[serde(borrow)] Cow<'a, str>);

    serde_json::from_str::<JsonText<'_>>(value.get()).ok().map(|text| text.0)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// The finish reasons and error found in a body that arrives in small chunks.
    fn inspect(media_type: &'static str, body: &str) -> (Vec<&'static str>, Option<&'static str>) {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        let mut inspector = ResponseInspector::new(&headers, true, Instant::now());
        body.as_bytes().chunks(7).for_each(|piece| inspector.take(piece));
        inspector.end();
        (inspector.reasons().collect(), inspector.error)
    }

    #[test]
    fn finish_reasons_are_read_from_each_protocol() {
        for (document, reasons) in [
            (
                r#"{"choices":[{"index":1,"finish_reason":"length"},{"index":0,"finish_reason":"stop"}]}"#,
                vec!["stop", "length"],
            ),
            (r#"{"status":"completed","error":null,"incomplete_details":null}"#, vec!["completed"]),
            (
                r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}"#,
                vec!["max_output_tokens"],
            ),
            (r#"{"status":"in_progress"}"#, vec![]),
            (r#"{"type":"message","stop_reason":"tool_use"}"#, vec!["tool_use"]),
            (r#"{"candidates":[{"finishReason":"STOP"}]}"#, vec!["STOP"]),
            (r#"[{"candidates":[{}]},{"candidates":[{"finishReason":"MAX_TOKENS"}]}]"#, vec!["MAX_TOKENS"]),
            (r#"{"choices":[{"finish_reason":"sk-canary"}]}"#, vec![OTHER]),
            (r#"{"choices":[{"finish_reason":null}],"status":7}"#, vec![]),
            (r#"{"choices":7,"stop_reason":"end_turn"}"#, vec!["end_turn"]),
            ("<html>", vec![]),
        ] {
            assert_eq!(inspect("application/json", document), (reasons, None), "{document}");
        }
    }

    #[test]
    fn response_ids_are_read_from_documents_and_streams() {
        let id_of = |media_type: &'static str, body: &str| {
            let headers =
                HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(media_type))]);
            let mut inspector = ResponseInspector::new(&headers, true, Instant::now());
            inspector.take(body.as_bytes());
            inspector.end();
            inspector.id
        };
        for part in [
            r#"{"id":"id-1","choices":[]}"#,
            r#"{"type":"response.created","response":{"id":"id-1","output":[{"id":"msg-2"}]}}"#,
            r#"{"type":"message_start","message":{"id":"id-1"}}"#,
            r#"{"candidates":[],"responseId":"id-1"}"#,
        ] {
            assert_eq!(id_of("application/json", part).as_deref(), Some("id-1"), "{part}");
            let events = format!("data: {part}\n\ndata: {{\"id\":\"id-2\"}}\n\n");
            assert_eq!(id_of("text/event-stream", &events).as_deref(), Some("id-1"), "{part}");
        }
        let key = format!("sk-proj-{}", "aB3".repeat(16));
        for id in ["", "two words", "<b>", "line\\n", &"x".repeat(MAX_ID_CHARS + 1), &key] {
            assert_eq!(id_of("application/json", &format!(r#"{{"id":"{id}"}}"#)), None, "{id}");
        }
        assert_eq!(id_of("application/json", r#"{"id":7}"#), None);
    }

    #[test]
    fn finish_reasons_are_read_from_streams() {
        for (events, reason) in [
            (r#"{"choices":[{"index":0,"finish_reason":"stop"}]}"#, "stop"),
            (r#"{"type":"response.completed","response":{"status":"completed"}}"#, "completed"),
            (r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#, "end_turn"),
            (r#"{"candidates":[{"finishReason":"STOP"}]}"#, "STOP"),
        ] {
            let body =
                format!("data: {{\"choices\":[{{\"delta\":{{}}}}]}}\n\ndata: {events}\n\ndata: [DONE]\n\n");
            assert_eq!(inspect("text/event-stream; charset=utf-8", &body), (vec![reason], None), "{events}");
        }
    }

    #[test]
    fn error_codes_are_reported_only_if_known() {
        for (part, code) in [
            (r#"{"error":{"code":"rate_limit_exceeded"}}"#, "rate_limit_exceeded"),
            (r#"{"error":{"code":"sk-canary"}}"#, OTHER),
            (r#"{"error":{"code":500,"status":"INTERNAL"}}"#, OTHER),
            (r#"{"error":"broken"}"#, OTHER),
            (r#"{"type":"error","code":"upstream_error","message":"broken"}"#, "upstream_error"),
            (r#"{"type":"response.failed","response":{"error":{"code":"server_error"}}}"#, "server_error"),
        ] {
            assert_eq!(inspect("application/json", part).1, Some(code), "{part}");
            assert_eq!(inspect("text/event-stream", &format!("data: {part}\n\n")).1, Some(code), "{part}");
        }
    }

    #[test]
    fn oversized_or_non_json_responses_are_not_inspected() {
        let long = format!(r#"{{"x":"{}","stop_reason":"end_turn"}}"#, "x".repeat(MAX_BYTES));
        assert_eq!(inspect("application/json", &long), (vec![], None));
        assert_eq!(inspect("text/event-stream", &format!("data: {long}\n\n")), (vec![], None));
        assert_eq!(inspect("video/mp4", r#"{"stop_reason":"end_turn"}"#), (vec![], None));
    }
}
