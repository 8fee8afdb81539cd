//! A response body that holds a value until it has been sent or its client is gone.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::body::{Body, BodyError};
use super::response::{Response, json_bytes};

/// Chunk size of a long document. A server drops a body once it has taken the last chunk, which may be sent much later.
pub(crate) const PIECE: usize = 64 * 1024;

/// See the module.
struct GuardedBody<T> {
    body: Body,
    _held: T,
}

/// Holds a value for as long as a response is being sent.
pub(crate) fn hold<T: Send + Unpin + 'static>(response: Response, held: T) -> Response {
    response.map(|body| Body::new(GuardedBody { body, _held: held }))
}

/// A successful response with a JSON document, which holds a value until all but the last chunk has been sent.
pub(crate) fn held_json<T: Send + Unpin + 'static>(document: Bytes, held: T) -> Response {
    if document.len() <= PIECE {
        return hold(json_bytes(document), held);
    }
    let response = json_bytes(Bytes::new());
    hold(response.map(|_| Body::new(ChunkedDocument(document))), held)
}

impl<T: Unpin> http_body::Body for GuardedBody<T> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A document in chunks.
struct ChunkedDocument(Bytes);

impl http_body::Body for ChunkedDocument {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let length = self.0.len().min(PIECE);
        let piece = self.0.split_to(length);
        Poll::Ready((length > 0).then_some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
