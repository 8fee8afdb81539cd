//! The fault `strict`: a request is refused that strict providers refuse.

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::{self, Operation};

use crate::conversation::Protocol;
use crate::protocols::judge::judge;
use crate::wire::ApiError;

/// Judges the body of a request for a text by the rules of strict providers of its protocol.
///
/// # Errors
/// If a rule refuses it.
pub(super) fn check(operation: &Operation, body: &Bytes) -> Result<(), ApiError> {
    let protocol = match operation.protocol {
        operations::Protocol::Chat => Protocol::Chat,
        operations::Protocol::Responses => Protocol::Responses,
        operations::Protocol::Messages => Protocol::Messages,
        operations::Protocol::Native => Protocol::Native,
        _ => return Ok(()),
    };
    if operation.models.is_none() {
        return Ok(());
    }
    // What is no JSON the operation refuses.
    let Ok(document) = serde_json::from_slice(body) else { return Ok(()) };
    match judge(protocol, &document).into_iter().next() {
        None => Ok(()),
        Some(found) => {
            let message = format!("{} (rule {} of strict providers)", found.message, found.rule);
            Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(found.at))
        }
    }
}
