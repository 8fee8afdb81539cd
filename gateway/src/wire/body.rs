//! The body of a request or a response: whole, or a stream.

use std::fmt;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};

/// Why a body broke off.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a request or a response. Bytes that are there from the beginning take no allocation of their own.
///
/// # Examples
///
/// ```
/// use gatewright_gateway::Body;
/// use http_body::Body as _;
///
/// let body = Body::from("hello");
/// assert_eq!(body.size_hint().exact(), Some(5));
/// assert!(Body::empty().is_end_stream());
/// ```
#[derive(Default)]
pub struct Body(BodyRepr);

enum BodyRepr {
    Whole(Bytes),
    Stream(UnsyncBoxBody<Bytes, BodyError>),
}

impl Default for BodyRepr {
    fn default() -> Self {
        Self::Whole(Bytes::new())
    }
}

impl Body {
    /// No bytes.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A body of another type.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static,
    {
        Self(BodyRepr::Stream(body.map_err(Into::into).boxed_unsync()))
    }

    /// The chunks of a stream, until it ends or fails.
    pub fn from_stream<S, C, E>(stream: S) -> Self
    where
        S: Stream<Item = Result<C, E>> + Send + 'static,
        C: Into<Bytes> + 'static,
        E: Into<BodyError> + 'static,
    {
        Self::new(StreamBody::new(stream.map_ok(|chunk| Frame::data(chunk.into()))))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = http_body::Body::size_hint(self).exact();
        f.debug_struct("Body").field("size", &size).finish_non_exhaustive()
    }
}

/// Bodies of what is there from the beginning.
macro_rules! whole {
    ($($kind:ty),*) => {
        $(
            impl From<$kind> for Body {
                fn from(content: $kind) -> Self {
                    Self(BodyRepr::Whole(content.into()))
                }
            }
        )*
    };
}

whole!(Bytes, Vec<u8>, String, &'static str, &'static [u8]);

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.0 {
            BodyRepr::Whole(bytes) => {
                let bytes = mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            BodyRepr::Stream(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyRepr::Whole(bytes) => bytes.is_empty(),
            BodyRepr::Stream(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyRepr::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyRepr::Stream(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body::Body as _;

    use super::*;

    #[tokio::test]
    async fn whole_bodies_have_one_frame_and_their_size() {
        for (mut body, text) in [
            (Body::from("text"), "text"),
            (Body::from(vec![b'a'; 3]), "aaa"),
            (Body::from(String::new()), ""),
            (Body::empty(), ""),
        ] {
            assert_eq!(body.size_hint().exact(), Some(text.len() as u64));
            assert_eq!(body.is_end_stream(), text.is_empty());
            let first = body.frame().await.map(|frame| frame.expect("no failure").into_data().expect("data"));
            assert_eq!(first.unwrap_or_default(), text);
            assert!(body.is_end_stream() && body.frame().await.is_none());
        }
    }

    #[tokio::test]
    async fn stream_ends_with_its_error() {
        let chunks = [Ok("one"), Ok("two"), Err("it broke")];
        let mut body = Body::from_stream(futures_util::stream::iter(chunks));
        assert_eq!(body.size_hint().exact(), None);
        for expected in ["one", "two"] {
            let frame = body.frame().await.expect("a frame").expect("no failure");
            assert_eq!(frame.into_data().expect("data"), expected);
        }
        let error = body.frame().await.expect("a frame").expect_err("the failure");
        assert_eq!(error.to_string(), "it broke");
    }

    #[test]
    fn body_shows_its_size_but_not_its_content() {
        assert_eq!(format!("{:?}", Body::from("secret")), "Body { size: Some(6), .. }");
    }
}
