//! Providers' errors in whatever form they arrive: JSON of any protocol, an event stream, an HTML page, plain text,
//! nothing.

use gatewright::{ErrorBody, ErrorCode};
use serde_json::{Map, Value};

use crate::conversation::{Failure, FailureKind, Protocol, ProviderExtra};

/// Maximum length of a provider's message, in bytes.
const MESSAGE_BYTES: usize = 2_000;
/// Maximum length of a document whose additional fields are passed on, in bytes.
const DOCUMENT_BYTES: usize = 16 * 1024;
/// Maximum length of a provider's code or parameter, in bytes.
const WORD_BYTES: usize = 200;

/// Reads a provider's error, with what its document says beyond the fields that all protocols share. `body`: as received; it
/// may be anything.
pub(super) fn of_document(protocol: Protocol, status: u16, body: &[u8]) -> Failure {
    Failure { beyond: beyond(protocol, body).map(Box::new), ..read(status, body) }
}

/// Reads an error. `body`: as received; it may be anything.
pub(super) fn read(status: u16, body: &[u8]) -> Failure {
    of_error(status, ErrorBody::read(body))
}

/// Reads an error whose body has been read.
pub(super) fn of_error(status: u16, error: ErrorBody) -> Failure {
    of_body(Some(status), error, || default_message(status))
}

fn default_message(status: u16) -> String {
    format!("the provider answered with status {status} and without a message")
}

/// What a document says about an error beyond the fields all protocols share. Nothing if it is too long or has no error.
pub(super) fn beyond(protocol: Protocol, body: &[u8]) -> Option<ProviderExtra> {
    if body.len() > DOCUMENT_BYTES {
        return None;
    }
    let mut document = serde_json::from_slice(body).ok()?;
    if let Value::Array(documents) = &mut document {
        document = documents.first_mut()?.take();
    }
    let Value::Object(mut beside) = document else { return None };
    let Value::Object(mut error) = beside.remove("error")? else { return None };
    for name in ["message", "code", "param"] {
        error.remove(name);
    }
    // The event's own name isn't part of the error.
    for name in ["type", "sequence_number"] {
        beside.remove(name);
    }
    let says_more = |members: &Map<String, Value>| !members.is_empty();
    (says_more(&error) || says_more(&beside)).then_some(ProviderExtra { protocol, error, beside })
}

/// Reads an error inside a stream whose status was successful.
pub(super) fn of_value(error: &Value) -> Failure {
    let default_message = || "the provider ended the stream with an error and without a message".to_owned();
    of_body(None, ErrorBody::of_value(error), default_message)
}

/// Reads why a provider failed a task that it had accepted.
pub(super) fn of_task(error: &Value, status: &str) -> Failure {
    of_body(None, ErrorBody::of_value(error), || match status {
        "failed" => "the provider gave no reason".to_owned(),
        _ => format!("the provider reports the status {status}, and no reason"),
    })
}

/// The error code for a client. What only the operator of the gateway can fix is reported as an upstream error.
pub fn code_of(kind: FailureKind) -> &'static ErrorCode {
    match kind {
        FailureKind::InvalidRequest => &ErrorCode::INVALID_VALUE,
        FailureKind::PermissionDenied => &ErrorCode::PERMISSION_DENIED,
        FailureKind::NotFound => &ErrorCode::MODEL_NOT_FOUND,
        FailureKind::TooLarge => &ErrorCode::REQUEST_TOO_LARGE,
        FailureKind::RateLimited => &ErrorCode::RATE_LIMIT_EXCEEDED,
        FailureKind::QuotaExceeded => &ErrorCode::INSUFFICIENT_QUOTA,
        FailureKind::Timeout => &ErrorCode::UPSTREAM_TIMEOUT,
        FailureKind::Overloaded => &ErrorCode::SERVER_IS_OVERLOADED,
        FailureKind::Authentication | FailureKind::Server => &ErrorCode::UPSTREAM_ERROR,
    }
}

/// `default_message`: the message for an error without one.
fn of_body(status: Option<u16>, error: ErrorBody, default_message: impl FnOnce() -> String) -> Failure {
    let kind = kind(status, &error);
    let message = error.message.map_or_else(default_message, |message| cut(message, MESSAGE_BYTES));
    let word = |word: Option<String>| word.map(|word| cut(word, WORD_BYTES));
    // The native protocol's status word is the kind of an error, not its code.
    let code = error.code.filter(|code| error.error_type.as_ref() != Some(code) || !is_status_word(code));
    Failure { kind, message, code: word(code), param: word(error.param), beyond: None }
}

/// Whether a word is a status name of the native protocol, such as `RESOURCE_EXHAUSTED`.
fn is_status_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// The kind of an error, from its words where they are more precise than the status.
fn kind(status: Option<u16>, error: &ErrorBody) -> FailureKind {
    let words = [&error.code, &error.error_type].into_iter().flatten();
    let precise = words.clone().find_map(|word| kind_of_word(word));
    precise.or_else(|| status.and_then(kind_of_status)).unwrap_or_else(|| {
        // Both words are used for several statuses, so they come last.
        let is_invalid = |word: &String| {
            matches!(word.to_ascii_lowercase().as_str(), "invalid_request_error" | "invalid_argument")
        };
        if words.clone().any(is_invalid) { FailureKind::InvalidRequest } else { FailureKind::Server }
    })
}

fn kind_of_word(word: &str) -> Option<FailureKind> {
    // No word in the table is longer.
    let word = word.get(..word.len().min(WORD_BYTES))?.to_ascii_lowercase();
    Some(match word.as_str() {
        "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" | "quota_exceeded" => {
            FailureKind::QuotaExceeded
        }
        "rate_limit_exceeded" | "rate_limit_error" | "too_many_requests" | "resource_exhausted" => {
            FailureKind::RateLimited
        }
        "server_is_overloaded" | "overloaded_error" | "overloaded" | "unavailable" | "slow_down" => {
            FailureKind::Overloaded
        }
        "invalid_api_key"
        | "missing_api_key"
        | "api_key_invalid"
        | "authentication_error"
        | "unauthenticated" => FailureKind::Authentication,
        "permission_denied" | "permission_error" => FailureKind::PermissionDenied,
        "not_found" | "not_found_error" | "model_not_found" => FailureKind::NotFound,
        "request_too_large" => FailureKind::TooLarge,
        "timeout" | "timeout_error" | "request_timeout" | "deadline_exceeded" | "upstream_timeout" => {
            FailureKind::Timeout
        }
        "context_length_exceeded"
        | "string_above_max_length"
        | "invalid_value"
        | "invalid_prompt"
        | "content_policy_violation"
        | "unsupported_image_media_type"
        | "empty_image_file"
        | "failed_to_download_image"
        | "failed_precondition" => FailureKind::InvalidRequest,
        // All of these say what is wrong with an image in the request.
        word if word.starts_with("invalid_image")
            || word.starts_with("image_")
            || word == "invalid_base64_image" =>
        {
            FailureKind::InvalidRequest
        }
        "server_error" | "api_error" | "internal" | "upstream_error" => FailureKind::Server,
        _ => return None,
    })
}

fn kind_of_status(status: u16) -> Option<FailureKind> {
    Some(match status {
        401 => FailureKind::Authentication,
        402 => FailureKind::QuotaExceeded,
        403 => FailureKind::PermissionDenied,
        404 => FailureKind::NotFound,
        408 | 504 => FailureKind::Timeout,
        413 => FailureKind::TooLarge,
        429 => FailureKind::RateLimited,
        503 | 529 => FailureKind::Overloaded,
        400..=499 => FailureKind::InvalidRequest,
        500..=599 => FailureKind::Server,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind_of(status: u16, body: &Value) -> FailureKind {
        read(status, body.to_string().as_bytes()).kind
    }

    #[test]
    fn errors_of_every_protocol_are_parsed() {
        let standard = json!({ "error": { "message": "no", "type": "invalid_request_error", "param": "model",
            "code": "model_not_found" } });
        let failure = read(404, standard.to_string().as_bytes());
        assert_eq!(
            failure,
            Failure {
                kind: FailureKind::NotFound,
                message: "no".to_owned(),
                code: Some("model_not_found".to_owned()),
                param: Some("model".to_owned()),
                beyond: None,
            }
        );
        let messages =
            json!({ "type": "error", "error": { "type": "overloaded_error", "message": "later" } });
        assert_eq!(kind_of(529, &messages), FailureKind::Overloaded);
        let native = json!({ "error": { "code": 400, "message": "no", "status": "INVALID_ARGUMENT",
            "details": [{ "reason": "API_KEY_INVALID" }] } });
        assert_eq!(kind_of(400, &native), FailureKind::Authentication);
    }

    #[test]
    fn native_status_maps_to_kind_and_reason_to_code() {
        let native = json!({ "error": { "code": 429, "message": "later", "status": "RESOURCE_EXHAUSTED" } });
        let failure = of_value(&native);
        assert_eq!((failure.kind, failure.code), (FailureKind::RateLimited, None));
        let native = json!({ "error": { "code": 400, "message": "no", "status": "INVALID_ARGUMENT",
            "details": [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID" }] } });
        assert_eq!(of_value(&native).code.as_deref(), Some("API_KEY_INVALID"));
    }

    #[test]
    fn exhausted_quota_is_not_a_rate_limit() {
        let body = json!({ "error": { "message": "pay", "type": "insufficient_quota", "code": "insufficient_quota" } });
        assert_eq!(kind_of(429, &body), FailureKind::QuotaExceeded);
        assert_eq!(kind_of(429, &json!({ "error": {} })), FailureKind::RateLimited);
    }

    #[test]
    fn http_status_overrides_a_generic_error_type() {
        let body = json!({ "error": { "message": "no", "type": "invalid_request_error" } });
        assert_eq!(kind_of(401, &body), FailureKind::Authentication);
        assert_eq!(of_value(&body).kind, FailureKind::InvalidRequest);
    }

    #[test]
    fn any_body_becomes_a_failure_of_bounded_length() {
        let page = format!("<html><title>{}</title>", "ü".repeat(10_000));
        for body in ["", "{", "[]", "null", &page, "data: {\"error\":\"x\"}\n\n"] {
            let failure = read(502, body.as_bytes());
            assert!(!failure.message.is_empty() && failure.message.len() <= MESSAGE_BYTES, "{failure:?}");
            assert_eq!(failure.kind, FailureKind::Server, "{failure:?}");
        }
    }
}
