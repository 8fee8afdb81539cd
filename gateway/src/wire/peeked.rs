//! Looks at the first bytes of a body before it is read.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;

use super::body::Body;

/// Maximum number of bytes, and of packets, after which a look ends.
const MAX_PEEKED: usize = 64;

/// Why the first bytes could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeekError {
    /// The next packet took too long.
    Silent,
    /// The body ended with an error.
    Broken,
}

/// The first bytes of a body, and the intact body. Reads packets until `is_enough` holds; a packet may end anywhere. There
/// are fewer bytes if the body ends. `idle_timeout`: for each packet.
pub(crate) async fn peek(
    mut body: Body,
    idle_timeout: Duration,
    is_enough: impl Fn(&[u8]) -> bool,
) -> Result<(Bytes, Body), PeekError> {
    let mut seen = Bytes::new();
    // Empty packets count, too: a server could send them without end.
    for _ in 0..MAX_PEEKED {
        if seen.len() >= MAX_PEEKED || is_enough(&seen) {
            break;
        }
        let next = tokio::time::timeout(idle_timeout, body.frame()).await.map_err(|_| PeekError::Silent)?;
        let Some(frame) = next.transpose().map_err(|_| PeekError::Broken)? else { break };
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

    const PATIENCE: Duration = Duration::from_mins(1);

    /// A body of these packets, each after a pause.
    fn paced(packet: &'static str, pause: Duration) -> Body {
        Body::from_stream(futures_util::stream::unfold((), move |()| async move {
            tokio::time::sleep(pause).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(packet.as_bytes())), ()))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn peek_timeout_applies_per_packet() {
        let (seen, _) = peek(paced("\n", PATIENCE / 2), PATIENCE, |_| false).await.expect("packets in time");
        assert_eq!(seen.len(), MAX_PEEKED);
        let silent = peek(paced("\n", 2 * PATIENCE), PATIENCE, |_| false).await;
        assert_eq!(silent.err(), Some(PeekError::Silent));
        let (seen, _) =
            peek(paced("", PATIENCE / 2), PATIENCE, |_| false).await.expect("the empty packets end");
        assert!(seen.is_empty());
    }

    #[tokio::test]
    async fn peek_takes_only_the_packets_it_needs() {
        let packets = |packet: &'static str, count: usize| {
            let packet = move |_| Ok::<_, std::io::Error>(Bytes::from_static(packet.as_bytes()));
            Body::from_stream(futures_util::stream::iter((0..count).map(packet)))
        };
        let (seen, body) = peek(packets("ab", 9), PATIENCE, |seen| seen.len() > 3).await.expect("a body");
        assert_eq!(&seen[..], b"abab");
        assert_eq!(&body.collect().await.expect("whole").to_bytes()[..], "ab".repeat(9).as_bytes());
        let (seen, body) = peek(packets("a", 1000), PATIENCE, |_| false).await.expect("a body");
        assert_eq!(seen.len(), MAX_PEEKED);
        assert_eq!(body.collect().await.expect("whole").to_bytes().len(), 1000);
    }

    #[tokio::test]
    async fn body_is_replayed_from_the_start_after_a_peek() {
        let (seen, body) =
            peek(Body::from("hello"), PATIENCE, |seen| !seen.is_empty()).await.expect("a body");
        assert_eq!(
            (&seen[..], &body.collect().await.expect("whole").to_bytes()[..]),
            (&b"hello"[..], &b"hello"[..])
        );
        let (seen, body) = peek(Body::empty(), PATIENCE, |_| false).await.expect("a body");
        assert!(seen.is_empty() && body.collect().await.expect("whole").to_bytes().is_empty());
    }
}
