//! Parses the error bodies of gateways in any form: the standard and the native style, plain text, arrays, event
//! streams, HTML pages, an empty body. Never fails; a missing part is `None`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::wire::json_weight;
use crate::wire::sse::{Decoder, Item};

/// Maximum size of a stored error body, in bytes.
///
/// ```
/// // The bodies of ten errors that are kept take at most 10 MiB.
/// assert_eq!(10 * gatewright::MAX_ERROR_BODY_BYTES, 10 << 20);
/// ```
pub const MAX_ERROR_BODY_BYTES: usize = 1024 * 1024;

/// Packet size for parsing a body as events, in bytes.
const PACKET_BYTES: usize = 16 * 1024;

/// The parts of an error body; a missing part is `None`. The texts are neither redacted nor truncated.
///
/// ```
/// use gatewright::ErrorBody;
///
/// let body = ErrorBody::read(br#"{"error": {"message": "no such model", "type": "t", "code": "model_not_found"}}"#);
/// assert_eq!(body.message.as_deref(), Some("no such model"));
/// assert_eq!(body.code.as_deref(), Some("model_not_found"));
/// ```
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ErrorBody {
    /// A human-readable description of the error.
    pub message: Option<String>,
    /// Error code; in the native style the reason, or the status word if there is no reason.
    pub code: Option<String>,
    /// The parameter that caused the error.
    pub param: Option<String>,
    /// Type of the error; in the native style the status word.
    pub error_type: Option<String>,
}

impl ErrorBody {
    /// Parses a body of any form. Never fails.
    ///
    /// ```
    /// use gatewright::ErrorBody;
    ///
    /// assert_eq!(ErrorBody::read(b"no berth").message.as_deref(), Some("no berth"));
    /// assert_eq!(ErrorBody::read(b""), ErrorBody::default());
    /// ```
    pub fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{FEFF}').trim();
        if let Some(value) = document(text) {
            return Self::of_value(&value);
        }
        if text.starts_with('<') {
            return Self { message: page_title(text), ..Self::default() };
        }
        if let Some(value) = first_event(text) {
            return Self::of_value(&value);
        }
        Self { message: message(text), ..Self::default() }
    }

    /// Parses a JSON document: an error object, or an object or array that contains one.
    ///
    /// ```
    /// let json = serde_json::json!({ "error": { "code": 404, "message": "none", "status": "NOT_FOUND" } });
    /// assert_eq!(gatewright::ErrorBody::of_value(&json).code.as_deref(), Some("NOT_FOUND"));
    /// ```
    pub fn of_value(value: &Value) -> Self {
        match value {
            Value::String(text) => Self { message: message(text), ..Self::default() },
            Value::Array(items) => items.first().map(Self::of_value).unwrap_or_default(),
            Value::Object(object) => Self::of_object(object),
            Value::Null | Value::Bool(_) | Value::Number(_) => Self::default(),
        }
    }

    fn of_object(object: &Map<String, Value>) -> Self {
        for nested in ["error", "errors"] {
            match object.get(nested) {
                // A text with further members next to it: {"error": "text", "code": "c"}.
                Some(Value::String(text)) => {
                    return Self { message: message(text), ..Self::of_members(object) };
                }
                Some(value @ (Value::Object(_) | Value::Array(_))) => return Self::of_value(value),
                _ => {}
            }
        }
        Self::of_members(object)
    }

    fn of_members(object: &Map<String, Value>) -> Self {
        let text = |name: &str| object.get(name).and_then(Value::as_str).and_then(message);
        let status_word = text("status");
        let reason = native_detail(object, "reason");
        let number_or_text = |value: &Value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        Self {
            message: text("message")
                .or_else(|| text("detail"))
                .or_else(|| text("error_description"))
                .or_else(|| first_detail(object)),
            // Native style: the code repeats the HTTP status, and the status word says what happened.
            code: reason
                .or_else(|| status_word.clone())
                .or_else(|| object.get("code").and_then(number_or_text)),
            param: text("param").or_else(|| native_field(object)),
            error_type: text("type").or(status_word),
        }
    }
}

/// The members that show whether a document is an error. No other member is kept.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorMarkers {
    error: Value,
    object: Value,
    r#type: Value,
    id: Option<IgnoredAny>,
    choices: Option<IgnoredAny>,
    candidates: Option<IgnoredAny>,
    output: Option<IgnoredAny>,
    response: Option<IgnoredAny>,
}

impl ErrorMarkers {
    /// Parses an object; none if the text is not a JSON object.
    pub(crate) fn of(json: &[u8]) -> Option<Self> {
        // For an array, serde would take the first elements as the members.
        let is_object = json.trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(json).ok())?
    }

    /// Whether the document is an error: a non-empty `{"error": …}`, `{"object": "error"}`, or `{"type": "error"}`. An
    /// empty error object counts as an error if no member of a response accompanies it.
    pub(crate) fn is_error(&self) -> bool {
        let is_answer =
            [self.choices, self.candidates, self.output, self.response].iter().any(Option::is_some);
        let is_empty_error = self.error.as_object().is_some_and(Map::is_empty) && !is_answer;
        says_something(&self.error) || is_empty_error || self.object == "error" || self.r#type == "error"
    }

    /// Whether the document is an object in its own right, such as a task, whose `error` describes its
    /// outcome.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }
}

/// Whether an `error` member reports an error.
pub(crate) fn says_something(error: &Value) -> bool {
    match error {
        Value::Null => false,
        Value::Bool(is_error) => *is_error,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(errors) => !errors.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn message(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A member of the first entry in the native style's `details` that has it.
fn native_detail(object: &Map<String, Value>, name: &str) -> Option<String> {
    let details = object.get("details")?.as_array()?;
    details.iter().find_map(|detail| detail.get(name)?.as_str().map(str::to_owned))
}

/// The first field violation in the native style's `details`.
fn native_field(object: &Map<String, Value>) -> Option<String> {
    let details = object.get("details")?.as_array()?;
    details
        .iter()
        .find_map(|detail| detail.get("fieldViolations")?.get(0)?.get("field")?.as_str().map(str::to_owned))
}

/// `{"detail": [{"msg": "…"}]}`, as several web frameworks write it.
fn first_detail(object: &Map<String, Value>) -> Option<String> {
    object.get("detail")?.get(0)?.get("msg")?.as_str().and_then(message)
}

/// Parses a JSON document, unless it needs far more memory than any genuine error does.
fn document(text: &str) -> Option<Value> {
    json_weight::check(text.as_bytes()).ok()?;
    serde_json::from_str(text).ok()
}

/// The first JSON event of a body that is an event stream despite its error status.
fn first_event(text: &str) -> Option<Value> {
    let mut items = Vec::new();
    let mut decoder = Decoder::new();
    // A long body is decoded in steps, which bounds the memory.
    for packet in text.as_bytes().chunks(PACKET_BYTES) {
        decoder.feed(packet, &mut items).ok()?;
        let found = items.drain(..).find_map(|item| match item {
            Item::Event(event) => document(&event.data),
            _ => None,
        });
        if found.is_some() {
            return found;
        }
    }
    decoder.finish().and_then(|event| document(&event.data))
}

fn page_title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let element = |name: &str| {
        let open = lower.find(&format!("<{name}"))?;
        let start = open + lower[open..].find('>')? + 1;
        let end = start + lower[start..].find("</")?;
        message(&page[start..end])
    };
    element("title").or_else(|| element("h1")).map(|title| format!("an HTML page: {title}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> [Option<String>; 4] {
        let ErrorBody { message, code, param, error_type } = ErrorBody::read(body.as_bytes());
        [message, code, param, error_type]
    }

    fn expected(message: &str, code: &str, param: &str, error_type: &str) -> [Option<String>; 4] {
        [message, code, param, error_type].map(|text| (!text.is_empty()).then(|| text.to_owned()))
    }

    #[test]
    fn standard_error_body_is_parsed() {
        let body = r#"{"error":{"message":"No such model.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#;
        assert_eq!(
            read(body),
            expected("No such model.", "model_not_found", "model", "invalid_request_error")
        );
        let nulls = r#"{"error":{"message":"Busy.","type":"server_error","param":null,"code":null}}"#;
        assert_eq!(read(nulls), expected("Busy.", "", "", "server_error"));
    }

    #[test]
    fn native_error_body_maps_reason_to_code_and_status_to_type() {
        let body = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT",
            "details":[{"@type":"type.example/ErrorInfo","reason":"API_KEY_INVALID","domain":"d"},
                       {"fieldViolations":[{"field":"contents"}]}]}}"#;
        assert_eq!(
            read(body),
            expected("API key not valid.", "API_KEY_INVALID", "contents", "INVALID_ARGUMENT")
        );
        let bare = r#"[{"error":{"code":503,"message":"Overloaded.","status":"UNAVAILABLE"}}]"#;
        assert_eq!(read(bare), expected("Overloaded.", "UNAVAILABLE", "", "UNAVAILABLE"));
    }

    #[test]
    fn nonstandard_error_bodies_are_parsed() {
        assert_eq!(read(r#"{"error":"overloaded","code":"busy"}"#), expected("overloaded", "busy", "", ""));
        assert_eq!(read(r#"{"object":"error","message":"m","code":40303}"#), expected("m", "40303", "", ""));
        assert_eq!(
            read(r#"{"type":"error","error":{"message":"m","type":"t"}}"#),
            expected("m", "", "", "t")
        );
        assert_eq!(read(r#"{"detail":"Not Found"}"#), expected("Not Found", "", "", ""));
        assert_eq!(
            read(r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#),
            expected("field required", "", "", "")
        );
        assert_eq!(
            read(r#"{"errors":[{"message":"first"},{"message":"second"}]}"#),
            expected("first", "", "", "")
        );
        assert_eq!(read("upstream connect error"), expected("upstream connect error", "", "", ""));
    }

    #[test]
    fn error_event_in_a_stream_body_is_parsed() {
        let body = "event: error\ndata: {\"error\":{\"message\":\"slow down\",\"code\":\"rate_limit_exceeded\"}}\n\n";
        assert_eq!(read(body), expected("slow down", "rate_limit_exceeded", "", ""));
    }

    #[test]
    fn html_body_yields_its_title_and_empty_body_nothing() {
        let page = "<html><head><TITLE>502 Bad Gateway</TITLE></head><body>…</body></html>";
        assert_eq!(read(page), expected("an HTML page: 502 Bad Gateway", "", "", ""));
        assert_eq!(read("<html>"), expected("", "", "", ""));
        assert_eq!(read(""), expected("", "", "", ""));
        assert_eq!(read("null"), expected("", "", "", ""));
    }
}
