//! Failures for JavaScript: one JSON document, from which `src-ts/failure.ts` makes an error object.

use std::error::Error as _;

use gatewright::{Error, ErrorKind};
use serde_json::{Map, Value, json};

use crate::headers::header_pairs;
use crate::text::text;
use crate::times::milliseconds;

/// The failure as JSON text: [`description`].
pub(crate) fn describe(error: &Error) -> String {
    description(error).to_string()
}

/// The failure as JSON: kind, message, all known details, and the messages of its causes.
pub(crate) fn description(error: &Error) -> Value {
    let mut description = Map::new();
    description.insert("kind".into(), error.kind().name().into());
    description.insert("message".into(), error.to_string().into());
    // Unknown values are omitted: `undefined` in JavaScript, not null.
    let mut known = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            description.insert(name.into(), value);
        }
    };
    known("operation", error.operation().map(Value::from));
    known("status", error.status().map(Value::from));
    known("requestId", error.request_id().map(Value::from));
    known("code", error.code().map(Value::from));
    known("param", error.param().map(Value::from));
    known("type", error.error_type().map(Value::from));
    known("retryAfterMs", error.retry_after().map(|wait| json!(milliseconds(wait))));
    known("attempts", Some(error.attempts().into()));
    known("elapsedMs", error.elapsed().map(|elapsed| json!(milliseconds(elapsed))));
    known("body", error.body().map(|body| parsed(body)));
    known("headers", error.headers().map(|headers| json!(header_pairs(headers))));
    known("partial", error.partial().map(|partial| parsed(partial)));
    known("received", error.received().map(|got| json!({ "events": got.events, "bytes": got.bytes })));
    known("violations", Some(json!(error.violations())).filter(|list| list != &json!([])));
    description.insert("causes".into(), causes(error).into());
    Value::Object(description)
}

/// An error body as its reader wants it: parsed if it is JSON that costs no more than a typical error,
/// otherwise text.
fn parsed(body: &[u8]) -> Value {
    let value = if gatewright::is_light(body) { serde_json::from_slice(body).ok() } else { None };
    value.unwrap_or_else(|| text(body).into())
}

/// Messages of the causes, nearest first.
fn causes(error: &Error) -> Vec<String> {
    std::iter::successors(error.source(), |&cause| cause.source()).map(ToString::to_string).collect()
}

/// The failure of a call that its caller cancelled.
pub(crate) fn cancelled(how: &str) -> Error {
    Error::new(ErrorKind::Cancelled, how)
}

/// The failure for an invalid option.
pub(crate) fn misconfigured(message: String) -> Error {
    Error::new(ErrorKind::Configuration, message)
}
