//! Requests about files and batches, to the upstream that has them.

use bytes::Bytes;
use gatewright_protocol::conversation::Protocol;

use super::attempt;
use super::document::{self, Patience};
use super::error_body;
use super::failure::AttemptFailure;
use crate::bounds::memory_budget::Reservation;
use crate::upstream::{Endpoint, ObjectRequest};
use crate::wire::ApiError;

/// Why an upstream gave no answer about a file or a batch.
pub(crate) enum ObjectFailure {
    /// It has none with this id.
    Unknown(ApiError),
    Failed(ApiError),
}

impl ObjectFailure {
    /// The error for the client.
    pub(crate) fn into_error(self) -> ApiError {
        match self {
            Self::Unknown(error) | Self::Failed(error) => error,
        }
    }
}

/// The upstream's answer. `key`: the mark of its key; `None`: the first one. `most`: the maximum size of the answer, in bytes. `share`:
/// holds the memory that it takes.
pub(crate) async fn ask_about_object(
    endpoint: &Endpoint,
    key: Option<i64>,
    request: ObjectRequest<'_>,
    most: usize,
    share: &mut Reservation,
) -> Result<Bytes, ObjectFailure> {
    let redactor = &endpoint.redactor;
    let failed = |failure: AttemptFailure| ObjectFailure::Failed(failure.at(&endpoint.label).into_error());
    let answer = endpoint.ask_about_object(request, key).await;
    let (head, body) = answer.map_err(|why| failed(AttemptFailure::no_answer(&why, redactor)))?.into_parts();
    let status = head.status.as_u16();
    if !head.status.is_success() {
        let body = error_body::read(attempt::readable(&head.headers, body)).await;
        let failure = AttemptFailure::of_answer(Protocol::Chat, status, &head.headers, &body, redactor);
        let error = failure.at(&endpoint.label).into_error();
        return Err(match status {
            404 | 410 => ObjectFailure::Unknown(error),
            _ => ObjectFailure::Failed(error),
        });
    }
    let body = attempt::without_codings(&head.headers, body, redactor).map_err(failed)?;
    document::read(body, most, Patience::of(endpoint), redactor, share).await.map_err(failed)
}
