//! Looks at the first bytes of a body before it is read.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;

/// Maximum number of bytes after which a look ends with the chunk that reaches it.
const MAX_PEEKED: usize = 64;

/// The first bytes of a body, and the intact body. Reads chunks until `is_enough` holds; a packet may end anywhere. There
/// are fewer bytes if the body ends. Errors: it ended with one.
pub(crate) async fn peek(
    mut body: Body,
    is_enough: impl Fn(&[u8]) -> bool,
) -> Result<(Bytes, Body), axum::Error> {
    let mut seen = Bytes::new();
    while seen.len() < MAX_PEEKED && !is_enough(&seen) {
        let Some(frame) = body.frame().await.transpose()? else { break };
        let Ok(data) = frame.into_data() else { break };
        seen = if seen.is_empty() { data } else { [seen, data].concat().into() };
    }
    let first = (!seen.is_empty()).then(|| seen.clone());
    Ok((seen, Body::new(PeekedBody::new(first, body))))
}

/// A body whose first bytes have already been read.
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
    async fn a_look_takes_as_many_packets_as_it_needs_and_no_more() {
        let packets = |packet: &'static str, count: usize| {
            let packet = move |_| Ok::<_, std::io::Error>(Bytes::from_static(packet.as_bytes()));
            Body::from_stream(futures_util::stream::iter((0..count).map(packet)))
        };
        let (seen, body) = peek(packets("ab", 9), |seen| seen.len() > 3).await.expect("a body");
        assert_eq!(&seen[..], b"abab");
        assert_eq!(&body.collect().await.expect("whole").to_bytes()[..], "ab".repeat(9).as_bytes());
        let (seen, body) = peek(packets("a", 1000), |_| false).await.expect("a body");
        assert_eq!(seen.len(), MAX_PEEKED);
        assert_eq!(body.collect().await.expect("whole").to_bytes().len(), 1000);
    }

    #[tokio::test]
    async fn a_body_is_read_from_its_beginning_after_a_look() {
        let (seen, body) = peek(Body::from("hello"), |seen| !seen.is_empty()).await.expect("a body");
        assert_eq!(
            (&seen[..], &body.collect().await.expect("whole").to_bytes()[..]),
            (&b"hello"[..], &b"hello"[..])
        );
        let (seen, body) = peek(Body::empty(), |_| false).await.expect("a body");
        assert!(seen.is_empty() && body.collect().await.expect("whole").to_bytes().is_empty());
    }
}
