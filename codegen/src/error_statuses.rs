//! The statuses with which an operation fails.

use std::collections::BTreeSet;

use super::errors::Errors;
use super::model::ErrorStyle;

/// Statuses of requests that reach no operation: another method, a file.
const STATUSES_OUTSIDE_OPERATIONS: &[u16] = &[405, 410];
/// Statuses of requests with a body.
const BODY_STATUSES: &[u16] = &[413, 415];

/// The statuses with which an operation fails, by the codes of errors and the style of its error bodies.
pub(crate) fn statuses(errors: &Errors, style: ErrorStyle, has_body: bool) -> BTreeSet<u16> {
    let codes = errors.codes.iter().map(|code| match style {
        ErrorStyle::Standard | ErrorStyle::Messages => code.status,
        ErrorStyle::Native => code.native_http,
    });
    codes
        .filter(|status| !STATUSES_OUTSIDE_OPERATIONS.contains(status))
        .filter(|status| has_body || !BODY_STATUSES.contains(status))
        .collect()
}
