//! Reads the request body within its limits.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use gatewright::ErrorCode;
use gatewright::redact::Redactor;
use gatewright_config::Config;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::connection::DRAIN;
use crate::bounds::gathering::Gathering;
use crate::bounds::memory_budget::{Reservation, ReservationError};
use crate::relay::AttemptFailure;
use crate::wire::{ApiError, Body, content_coding};

/// How long a response waits for the rest of an unread body. Clients usually send it right after the head.
const REST: Duration = Duration::from_millis(200);
/// Maximum size of that rest, in bytes.
const MAX_REST: u64 = 256 * 1024;

/// The media types of bodies.
const JSON: &str = "application/json";
const FORM: &str = "multipart/form-data";

/// Why a body has not been read.
enum Unread<E> {
    /// It can't be read, or is too large.
    Failed(E),
    /// The memory budget is exhausted.
    NoRoom(ReservationError),
}

/// Reads the whole body, and leaves nothing of it. `share`: an empty reservation; it grows as the body arrives, and the body keeps it
/// until it is dropped.
///
/// Errors: the content type is neither JSON nor, if `is_form`, that of a form, its content coding is not known or broken, the
/// body is too large, too slow or incomplete, or the memory budget is exhausted.
pub(super) async fn read_body(
    config: &Config,
    mut share: Reservation,
    headers: &HeaderMap,
    is_form: bool,
    body: &mut Body,
) -> Result<Bytes, ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    let expected = if is_form { FORM } else { JSON };
    if !media_type.eq_ignore_ascii_case(expected) {
        let message = format!("the content-type must be {expected}, not {media_type:?}");
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT, HeaderValue::from_static(expected)));
    }
    let codings = content_coding::codings(headers).map_err(|_| {
        let message = "the content-encoding of the body is not supported; send it uncompressed, or with gzip, deflate, br or \
            zstd";
        ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT_ENCODING, content_coding::CODINGS)
    })?;
    let limit = config.max_body_bytes;
    let too_large = || {
        let message = format!("the body is larger than {limit} bytes, the limit of the gateway");
        ApiError::new(&ErrorCode::REQUEST_TOO_LARGE, message)
    };
    let announced: Option<usize> = text(header::CONTENT_LENGTH).parse().ok();
    // A client that waits for `100 Continue` has not sent anything yet.
    if announced.is_some_and(|length| length > limit) && headers.contains_key(header::EXPECT) {
        return Err(too_large());
    }
    let most = announced.map_or(limit, |length| length.min(limit));
    let reading = gather(Limited::new(&mut *body, limit), Gathering::new(&mut share, most));
    match tokio::time::timeout(config.body_timeout, reading).await {
        Err(_) => {
            let seconds = config.body_timeout.as_secs();
            Err(ApiError::new(
                &ErrorCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {seconds} s"),
            ))
        }
        Ok(Ok(gathered)) => {
            *body = Body::empty();
            if codings.is_empty() {
                return Ok(share.attach(gathered));
            }
            let mut decoded_share = share.sibling();
            let coded = Body::from(share.attach(gathered));
            // No larger than a body that is sent as it is.
            let decoded = Limited::new(content_coding::decoded(&codings, coded), limit);
            match gather(decoded, Gathering::new(&mut decoded_share, limit)).await {
                Ok(decoded) => Ok(decoded_share.attach(decoded)),
                Err(Unread::NoRoom(why)) => Err(no_room(why)),
                Err(Unread::Failed(error)) if error.is::<LengthLimitError>() => Err(too_large()),
                Err(Unread::Failed(_)) => {
                    let coding = codings.join(", ");
                    let message = format!("the body does not match its content-encoding, {coding}");
                    Err(ApiError::new(&ErrorCode::INVALID_JSON, message))
                }
            }
        }
        Ok(Err(Unread::NoRoom(why))) => Err(no_room(why)),
        Ok(Err(Unread::Failed(error))) if error.is::<LengthLimitError>() => {
            _ = tokio::time::timeout(DRAIN, async { while let Some(Ok(_)) = body.frame().await {} }).await;
            Err(too_large())
        }
        Ok(Err(Unread::Failed(error))) => {
            let message = format!("the body ended early: {error}");
            let refusal = ApiError::new(&ErrorCode::INVALID_JSON, message);
            Err(if is_malformed(&*error) { refusal } else { ApiError::client_disconnected() })
        }
    }
}

/// Whether the frame of a body is malformed. Otherwise its client has left.
fn is_malformed(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.kind() == io::ErrorKind::Other;
        }
        cause = error.source();
    }
    false
}

/// The error of a request for which there is no memory.
pub(super) fn no_room(why: ReservationError) -> ApiError {
    AttemptFailure::no_room(why, &Redactor::default()).into_error()
}

/// All of a body.
async fn gather<B: http_body::Body<Data = Bytes> + Unpin>(
    mut body: B,
    mut gathering: Gathering<'_>,
) -> Result<Bytes, Unread<B::Error>> {
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(Unread::Failed)?.into_data() else { continue };
        gathering.push(piece).map_err(Unread::NoRoom)?;
    }
    Ok(gathering.finish())
}

/// Discards the rest of a body, if it is small and arrives soon. Returns whether nothing is left: otherwise the connection
/// can't serve another request. `waits`: whether the client waits for `100 Continue` before it sends the body.
pub(super) async fn discard_rest(body: &mut Body, waits: bool) -> bool {
    if body.is_end_stream() {
        return true;
    }
    if waits || body.size_hint().lower() > MAX_REST {
        return false;
    }
    let discard = async {
        let mut discarded = 0;
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return false };
            discarded += frame.data_ref().map_or(0, |data| data.len() as u64);
            if discarded > MAX_REST {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(REST, discard).await.unwrap_or(false)
}
