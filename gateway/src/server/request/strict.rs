//! The fault `strict`: rejects requests that strict providers reject.

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::operations::{self, Operation};
use gatewright_protocol::conversation::Protocol;
use gatewright_protocol::judge::{judge, rule_of_beta};
use http::HeaderMap;

use crate::wire::ApiError;

/// Header with the messages protocol features that a client enables.
const BETA_HEADER: &str = "anthropic-beta";

/// Checks the body of a text request by the rules of strict providers of its protocol.
///
/// # Errors
/// If a rule rejects it.
pub(super) fn check(operation: &Operation, headers: &HeaderMap, body: &Bytes) -> Result<(), ApiError> {
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
    // The operation rejects what is not JSON.
    let Ok(document) = serde_json::from_slice(body) else { return Ok(()) };
    let betas = headers.get_all(BETA_HEADER).iter().filter_map(|value| value.to_str().ok());
    let betas = betas.flat_map(|value| value.split(',')).map(str::trim);
    let waived: Vec<&str> = betas.filter_map(rule_of_beta).collect();
    match judge(protocol, &document).into_iter().find(|found| !waived.contains(&found.rule)) {
        None => Ok(()),
        Some(found) => {
            let message = format!("{} (rule {} of strict providers)", found.message, found.rule);
            Err(ApiError::new(&ErrorCode::INVALID_VALUE, message).param(found.at))
        }
    }
}
