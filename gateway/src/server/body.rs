//! Reads the request body within its limits.

use axum::body::Body;
use bytes::Bytes;
use gatewright::ErrorCode;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::connection::DRAIN;
use crate::config::Config;
use crate::wire::ApiError;

/// Errors: the content type is not JSON, or the body is too large, too slow or incomplete.
pub(super) async fn read_body(config: &Config, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
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
    let mut body = body;
    let read = tokio::time::timeout(config.body_timeout, Limited::new(&mut body, limit).collect()).await;
    match read {
        Err(_) => {
            let seconds = config.body_timeout.as_secs();
            Err(ApiError::new(
                &ErrorCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {seconds} s"),
            ))
        }
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            _ = tokio::time::timeout(DRAIN, async { while let Some(Ok(_)) = body.frame().await {} }).await;
            Err(too_large())
        }
        Ok(Err(error)) => {
            Err(ApiError::new(&ErrorCode::INVALID_JSON, format!("the body ended early: {error}")))
        }
    }
}
