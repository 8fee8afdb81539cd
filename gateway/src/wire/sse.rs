//! Server-sent events as a response. Events are produced when the connection takes them: a client that disconnects stops
//! the generation, and nothing is buffered for a slow client.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, header};

use super::body::Body;
use super::response::Response;

/// Responds with a stream of events, piece by piece. `delay`: pause before each piece.
pub(crate) fn respond(pieces: impl Iterator<Item = Bytes> + Send + 'static, delay: Duration) -> Response {
    let body = Body::from_stream(stream::unfold(pieces, move |mut pieces| async move {
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        pieces.next().map(|piece| (Ok::<_, Infallible>(piece), pieces))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
