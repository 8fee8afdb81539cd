//! Looks at the first chunk of a body before it is read.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;

/// The first chunk of a body (empty if there is none), and the intact body. Errors: the body ended with one.
pub(crate) async fn peek(mut body: Body) -> Result<(Bytes, Body), axum::Error> {
    let frame = body.frame().await.transpose()?;
    let first = frame.and_then(|frame| frame.into_data().ok());
    let seen = first.clone().unwrap_or_default();
    Ok((seen, Body::new(PeekedBody::new(first, body))))
}

/// A body whose first chunk has already been read.
pub(crate) struct PeekedBody<B> {
    first: Option<Bytes>,
    rest: B,
}

impl<B> PeekedBody<B> {
    pub(crate) fn new(first: Option<Bytes>, rest: B) -> Self {
        Self { first, rest }
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for PeekedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        match this.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => Pin::new(&mut this.rest).poll_frame(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_read_from_its_beginning_after_a_look() {
        let (seen, body) = peek(Body::from("hello")).await.expect("a body");
        assert_eq!(
            (&seen[..], &body.collect().await.expect("whole").to_bytes()[..]),
            (&b"hello"[..], &b"hello"[..])
        );
        let (seen, body) = peek(Body::empty()).await.expect("a body");
        assert!(seen.is_empty() && body.collect().await.expect("whole").to_bytes().is_empty());
    }
}
