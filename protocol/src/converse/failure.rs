//! Error responses. The relay reads the exceptions of a stream.

use gatewright::ErrorBody;
use serde_json::Value;

use crate::conversation::{Failure, FailureKind};
use crate::failure;

/// Status of an answer whose model failed.
const MODEL_FAILED: u16 = 424;

/// Reads an error response. `body`: as received; it may be anything.
pub(crate) fn failure_in(status: u16, body: &[u8]) -> Failure {
    let mut error = ErrorBody::read(body);
    if error.message.is_none()
        && let Ok(Value::Object(mut members)) = serde_json::from_slice(body)
        && let Some(Value::String(message)) = members.swap_remove("Message")
    {
        // The services in front of the models spell it this way.
        error.message = Some(message);
    }
    let failure = failure::of_error(status, error);
    if status == MODEL_FAILED { Failure { kind: FailureKind::Server, ..failure } } else { failure }
}
