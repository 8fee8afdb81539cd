//! Reads the request body within its limits.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use gatewright::ErrorCode;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::connection::DRAIN;
use crate::config::Config;
use crate::wire::ApiError;

/// How long a response waits for the rest of a body that nobody read. Clients usually send it right behind the head.
const REST: Duration = Duration::from_millis(200);
/// Maximum size of that rest, in bytes.
const MAX_REST: u64 = 256 * 1024;

/// Reads the body to its end, and leaves nothing of it.
///
/// Errors: the content type is not JSON, or the body is too large, too slow or incomplete.
pub(super) async fn read_body(
    config: &Config,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<Bytes, ApiError> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = text(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let message = format!("the content-type must be application/json, not {media_type:?}");
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT, HeaderValue::from_static("application/json")));
    }
    if !matches!(text(header::CONTENT_ENCODING), "" | "identity") {
        let message = "compressed request bodies are not accepted; send the body without content-encoding";
        return Err(ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT_ENCODING, HeaderValue::from_static("identity")));
    }
    let limit = config.max_body_bytes;
    let too_large = || {
        let message = format!("the body is larger than {limit} bytes, the limit of the gateway");
        ApiError::new(&ErrorCode::REQUEST_TOO_LARGE, message)
    };
    let announced = text(header::CONTENT_LENGTH).parse().unwrap_or(0_usize);
    // A client that waits for `100 Continue` has not sent anything yet.
    if announced > limit && headers.contains_key(header::EXPECT) {
        return Err(too_large());
    }
    let read = tokio::time::timeout(config.body_timeout, Limited::new(&mut *body, limit).collect()).await;
    match read {
        Err(_) => {
            let seconds = config.body_timeout.as_secs();
            Err(ApiError::new(
                &ErrorCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {seconds} s"),
            ))
        }
        Ok(Ok(collected)) => {
            *body = Body::empty();
            Ok(collected.to_bytes())
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            _ = tokio::time::timeout(DRAIN, async { while let Some(Ok(_)) = body.frame().await {} }).await;
            Err(too_large())
        }
        Ok(Err(error)) => {
            Err(ApiError::new(&ErrorCode::INVALID_JSON, format!("the body ended early: {error}")))
        }
    }
}

/// Discards the rest of a body, if little is left and it comes soon. Returns whether none is left: else the connection
/// cannot serve another request. `waits`: whether the client sends the body only when asked to.
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
