//! The properties that the client's fuzz targets check for any input, in private code that parses untrusted data. Built
//! for tests, and for the targets, with `cfg(fuzzing)`.
//!
//! Each function returns whether the input has the expected form, and panics if a property is violated.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::api::operation::Operation;
use crate::api::operations::{
    self, CREATE_CHAT_COMPLETION, CREATE_RESPONSE, GENERATE_CONTENT, RETRIEVE_VIDEO, STREAM_GENERATE_CONTENT,
};
use crate::jobs::files;
use crate::transport::base_url::BaseUrl;
use crate::transport::response::Head;
use crate::transport::secret::Secrets;
use crate::transport::{exchange, retry};
use crate::webhook::{self, ID_HEADER, SIGNATURE_HEADER, Secret, TIMESTAMP_HEADER};
use crate::wire::error::Error;
use crate::{Accumulator, ErrorBody, ErrorKind, MAX_TIME, limits};

#[cfg(test)]
mod tests;

/// Maximum length of an error's message in [`headers`], in bytes: large enough for every message, including text from
/// headers.
const MAX_TEXT_BYTES: usize = 8 * 1024;

static SECRETS: LazyLock<[Secret; 2]> =
    LazyLock::new(|| [[7; 32], [8; 32]].map(|bytes| Secret::from_bytes(bytes).expect("long enough")));

/// Accumulators: the JSON documents of a stream add up to a document, whatever their content and order, and none is
/// counted twice. The input has one document per line, as the data of an event.
pub fn accumulate(lines: &str) {
    for operation in [&CREATE_CHAT_COMPLETION, &CREATE_RESPONSE, &STREAM_GENERATE_CONTENT] {
        let whole = accumulated(operation, lines, false);
        assert_eq!(whole, accumulated(operation, lines, true), "looking changes nothing");
    }
}

/// The document of all lines, `None` if there are none. `look`: also reads the document before each line.
fn accumulated(operation: &'static Operation, lines: &str, look: bool) -> Option<Value> {
    let mut accumulator = Accumulator::new(operation);
    for line in lines.lines() {
        let before = look.then(|| accumulator.document());
        let refused = accumulator.push_json(line).is_err();
        if let (true, Some(before)) = (refused, before) {
            assert_eq!(before, accumulator.document(), "invalid JSON changes nothing");
        }
    }
    let document = accumulator.document();
    assert!(document.as_ref().is_none_or(Value::is_object), "{document:?}");
    document
}

/// Base URLs: any text is either rejected or an address in canonical form, and no path parameter leads outside of it. The
/// input is the base URL, a line end, and the parameter.
pub fn base_url(input: &str) -> bool {
    let Some((text, parameter)) = input.split_once('\n') else { return false };
    let Ok((address, joined)) = join(text, parameter) else { return true };
    assert!(!address.ends_with('/') && !address.contains(['?', '#', '\n', ' ']), "{address:?}");
    // A version at the end is dropped once; the rest may be a prefix of that name.
    if !address.ends_with("/v1") && !address.ends_with("/v1beta") {
        let again = join(&address, "x").expect("it was accepted before");
        assert_eq!(again.0, address, "it is canonical");
    }
    for url in joined {
        let rest = url.strip_prefix(&*address).expect("below the address");
        assert!(rest.starts_with("/v1"), "{url}");
        // An escaped byte takes three bytes, and so may a letter of the address.
        assert!(url.len() <= 64 + 3 * input.len() + address.len(), "{url}");
    }
    true
}

/// The canonical address of a base URL, and the URLs of two operations with this parameter under it, if the parameter is
/// valid for them.
fn join(text: &str, parameter: &str) -> Result<(String, Vec<String>), Error> {
    let base = BaseUrl::parse(text)?;
    let join =
        |operation: &Operation, name: &str| base.join(operation, &[(name.to_owned(), parameter.to_owned())]);
    let joined = [join(&GENERATE_CONTENT, "model"), join(&RETRIEVE_VIDEO, "task_id")];
    Ok((base.as_str().to_owned(), joined.into_iter().flatten().map(String::from).collect()))
}

/// Error bodies: any bytes can be parsed, and the size of the result is bounded by the size of the body. A message is
/// truncated where it is displayed, after it has been redacted.
pub fn error_body(body: &[u8]) {
    let read = ErrorBody::read(body);
    let texts = [&read.message, &read.code, &read.param, &read.error_type];
    // A malformed byte becomes three; a number may be written longer than in the body; words are added to a page's title.
    let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    assert!(bytes <= 64 + 4 * 3 * body.len(), "{bytes} bytes of {}", body.len());
    assert_eq!(ErrorBody::read(body), read);
}

/// Headers of a response that a client reads (waits, request ids, locations, ranges, media types): whatever they contain,
/// no time exceeds [`MAX_TIME`], no message exceeds its maximum length, and nothing overflows. The input is a status
/// in two bytes, then header lines.
pub fn headers(input: &[u8]) -> bool {
    let Some((status, lines)) = input.split_first_chunk() else { return false };
    let status = 300 + u16::from_le_bytes(*status) % 300;
    let mut headers = HeaderMap::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    for from in [0, 5, u64::MAX] {
        for total in [None, Some(0), Some(10), Some(u64::MAX)] {
            let continues = files::continues(&headers, from, total, None);
            assert!(!(continues && total == Some(0)), "a part of nothing");
        }
    }
    for now in [SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH + 1000 * MAX_TIME / 999] {
        let error = status_error(status, headers.clone(), now);
        assert!(error.retry_after().is_none_or(|wait| (Duration::ZERO..=MAX_TIME).contains(&wait)));
        assert!(error.to_string().len() <= MAX_TEXT_BYTES, "{error}");
    }
    true
}

/// The error for an unsuccessful response without a body.
fn status_error(status: u16, headers: HeaderMap, now: SystemTime) -> Error {
    let retry_after = retry::retry_after(&headers, now);
    let secrets = Secrets::default();
    let redactor = secrets.redactor();
    let head = Head { status, headers, attempts: 1, elapsed: Duration::ZERO, secrets };
    exchange::status_error(head, Bytes::new()).with_retry_after(retry_after).shown(&redactor)
}

/// Requests: any JSON is checked against the limits of every operation. Every violation is short and points to an existing
/// value.
pub fn check_limits(body: &[u8]) -> bool {
    let Ok(body) = serde_json::from_slice::<Value>(body) else { return false };
    for operation in operations::ALL {
        let violations = limits::check(operation, &body);
        assert!(violations.len() <= limits::MAX_VIOLATIONS);
        for violation in violations {
            assert!(violation.pointer.len() <= 256 && violation.message.len() <= 1_000, "{violation:?}");
            assert!(body.pointer(&violation.pointer).is_some(), "{violation:?}");
            assert!(!violation.to_string().is_empty());
        }
    }
    true
}

/// Webhooks: only the signature of a secret is accepted, whatever else the header contains, and a correctly signed body is
/// parsed like an unsigned one. The input is the id, a line end, the signature header, a line end, and the body.
pub fn unwrap_webhook(input: &[u8]) -> bool {
    let mut parts = input.splitn(3, |byte| *byte == b'\n');
    let (Some(id), Some(forged), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let timestamp = now.to_string();
    let headers = |signature: &[u8]| {
        [
            (ID_HEADER, id.to_vec()),
            (TIMESTAMP_HEADER, timestamp.clone().into()),
            (SIGNATURE_HEADER, signature.to_vec()),
        ]
    };
    let refused = webhook::unwrap(body, headers(forged), &*SECRETS).expect_err("not signed");
    assert_eq!(refused.kind(), ErrorKind::WebhookSignature);

    let Ok(id) = str::from_utf8(id) else { return true };
    // White space around a header's value is not part of it.
    let id = id.trim();
    let signed = [forged, b" ", SECRETS[1].sign(id, now, body).as_bytes()].concat();
    let taken = webhook::unwrap(body, headers(&signed), &*SECRETS);
    let unsigned = webhook::parse_unsigned(body);
    match taken {
        Err(error) if error.kind() == ErrorKind::WebhookSignature => {
            assert_ne!(error.code(), Some("no_matching_signature"), "it is signed");
        }
        Err(_) => assert!(unsigned.is_err()),
        Ok(task) => assert_eq!(task.id, unsigned.expect("it was read").id),
    }
    true
}
