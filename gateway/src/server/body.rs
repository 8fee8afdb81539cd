//! Reads the request body within its limits.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use gatewright::ErrorCode;
use http::{HeaderMap, HeaderValue, header};
use http_body::Body as _;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use super::connection::DRAIN;
use crate::config::Config;
use crate::wire::{ApiError, content_coding};

/// How long a response waits for the rest of an unread body. Clients usually send it right after the head.
const REST: Duration = Duration::from_millis(200);
/// Maximum size of that rest, in bytes.
const MAX_REST: u64 = 256 * 1024;

/// Reads the body to its end, leaving it empty.
///
/// Errors: the content type is not JSON, its content coding is unknown or broken, or the body is too large, too slow or
/// incomplete.
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
    let codings = content_coding::codings(headers).map_err(|_| {
        let message = "the body has a content-encoding that is not known here; send it as it is, or in gzip, deflate, br or zstd";
        ApiError::new(&ErrorCode::UNSUPPORTED_MEDIA_TYPE, message)
            .header(header::ACCEPT_ENCODING, content_coding::CODINGS)
    })?;
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
    let read = tokio::time::timeout(config.body_timeout, gather(Limited::new(&mut *body, limit))).await;
    match read {
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
                return Ok(gathered);
            }
            // The same limit as for an uncompressed body.
            match gather(Limited::new(content_coding::decoded(&codings, Body::from(gathered)), limit)).await {
                Ok(decoded) => Ok(decoded),
                Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
                Err(_) => {
                    let coding = codings.join(", ");
                    let message = format!("the body is not in the content-encoding that it names, {coding}");
                    Err(ApiError::new(&ErrorCode::INVALID_JSON, message))
                }
            }
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

/// The whole body. A single piece is not copied; several are, so that none keeps its read buffer alive: pieces may be as
/// small as the client likes.
async fn gather<B: http_body::Body<Data = Bytes> + Unpin>(mut body: B) -> Result<Bytes, B::Error> {
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if first.is_empty() && rest.is_empty() {
            first = piece;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&piece);
    }
    Ok(if rest.is_empty() { first } else { rest.freeze() })
}

/// Discards the rest of a body, if it is small and arrives soon. Returns whether nothing is left: otherwise the
/// connection can't serve another request. `waits`: whether the client sends the body only when asked to.
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    /// A piece that is a small part of its buffer. Counts how many are alive.
    struct Piece([u8; 1], Arc<AtomicUsize>);

    impl AsRef<[u8]> for Piece {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Piece {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn small_pieces_of_a_body_do_not_keep_the_memory_that_they_were_read_into() {
        const PIECES: usize = 10_000;
        let living = Arc::new(AtomicUsize::new(0));
        let most = Arc::new(AtomicUsize::new(0));
        let pieces = stream::iter(0..PIECES).map(|_| {
            let count = living.fetch_add(1, Ordering::Relaxed) + 1;
            most.fetch_max(count, Ordering::Relaxed);
            let piece = Bytes::from_owner(Piece(*b"x", Arc::clone(&living)));
            Ok::<_, Infallible>(Frame::data(piece))
        });
        let gathered = gather(StreamBody::new(pieces)).await.expect("no failure");
        assert_eq!((gathered.len(), most.load(Ordering::Relaxed)), (PIECES, 2));
    }

    #[tokio::test]
    async fn a_body_of_one_piece_is_not_copied() {
        let whole = Bytes::from(vec![7; 100]);
        let gathered = gather(http_body_util::Full::new(whole.clone())).await.expect("no failure");
        assert_eq!(gathered.as_ptr(), whole.as_ptr());
    }
}
