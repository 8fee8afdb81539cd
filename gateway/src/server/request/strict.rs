//! The fault `strict`: rejects requests that strict providers reject.

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::Operation;
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::judge::judge;

use crate::wire::ApiError;

/// Checks the body of a text request by the rules of strict providers of its protocol.
///
/// # Errors
/// If a rule rejects it.
pub(super) fn check(operation: &Operation, body: &Bytes) -> Result<(), ApiError> {
    let Some(protocol) = Protocol::of_operation(operation.protocol) else { return Ok(()) };
    if operation.models.is_none() {
        return Ok(());
    }
    // The operation rejects what is not JSON.
    let Ok(document) = serde_json::from_slice(body) else { return Ok(()) };
    match judge(protocol, &document).into_iter().next() {
        None => Ok(()),
        Some(found) => {
            let message = format!("{} (rule {} of strict providers)", found.message, found.rule);
            Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(found.at))
        }
    }
}
