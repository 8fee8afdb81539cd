//! Content codings (RFC 9110, 8.4): decodes requests and upstreams' responses.

mod inflated;

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Frame;
use tower::Service;
use tower_http::decompression::Decompression;

use self::inflated::DecodedBody;
use super::body::{Body, BodyError};
use super::peeked::PeekedBody;

/// The supported codings, best compression first.
pub(crate) const CODINGS: HeaderValue = HeaderValue::from_static("zstd, br, gzip, deflate");
/// Maximum number of codings of one body: each multiplies the size it may grow to.
const MAX_CODINGS: usize = 2;
/// Magic numbers of gzip and zstd. JSON and events never begin like this.
const MAGIC: [(&[u8], &str); 2] = [(&[0x1f, 0x8b], "gzip"), (&[0x28, 0xb5, 0x2f, 0xfd], "zstd")];

/// The codings of a body, in the order in which they were applied. Errors: one of them is unknown, or there are too many.
pub(crate) fn codings(headers: &HeaderMap) -> Result<Vec<&'static str>, UnsupportedCoding> {
    let mut codings = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for name in value.to_str().map_err(|_| UnsupportedCoding)?.split(',') {
            let name = name.trim().to_ascii_lowercase();
            let coding = match name.as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => "gzip",
                "deflate" => "deflate",
                "br" => "br",
                "zstd" => "zstd",
                _ => return Err(UnsupportedCoding),
            };
            if codings.len() == MAX_CODINGS {
                return Err(UnsupportedCoding);
            }
            codings.push(coding);
        }
    }
    Ok(codings)
}

/// An unsupported coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnsupportedCoding;

/// A decoded body. Its reader must limit its size: a coded body may grow a thousandfold.
pub(crate) fn decoded(codings: &[&'static str], body: Body) -> Body {
    codings.iter().rev().fold(body, |body, coding| decode(coding, body))
}

fn decode(coding: &'static str, body: Body) -> Body {
    if coding == "deflate" {
        return Body::new(DecodedBody::new(body));
    }
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    let answered = Decompression::new(ReadyResponse(Some(response))).call(http::Request::new(()));
    match answered.now_or_never() {
        Some(Ok(response)) => Body::new(response.into_body()),
        Some(Err(never)) => match never {},
        // The response is available, so its future completes immediately.
        None => Body::empty(),
    }
}

/// An available response, in the form that the library expects.
struct ReadyResponse(Option<Response<Body>>);

impl Service<http::Request<()>> for ReadyResponse {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<()>) -> Self::Future {
        ready(Ok(self.0.take().unwrap_or_default()))
    }
}

/// A body that may be encoded without declaring it, as some providers and proxies send: its first bytes reveal it. A
/// plain body costs a single check.
pub(crate) struct Unlabelled<B>(DecodeState<B>);

enum DecodeState<B> {
    Begins(B),
    Plain(B),
    Coded(Body),
    Over,
}

impl<B> Unlabelled<B> {
    pub(crate) fn new(body: B) -> Self {
        Self(DecodeState::Begins(body))
    }
}

impl<B> http_body::Body for Unlabelled<B>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let DecodeState::Begins(body) = &mut this.0 {
            let first = std::task::ready!(Pin::new(body).poll_frame(context));
            let DecodeState::Begins(body) = std::mem::replace(&mut this.0, DecodeState::Over) else {
                return Poll::Ready(None);
            };
            let magic = first.as_ref().and_then(|frame| {
                let data = frame.as_ref().ok()?.data_ref()?;
                MAGIC.iter().find(|(magic, _)| data.starts_with(magic))
            });
            let Some((_, coding)) = magic else {
                this.0 = DecodeState::Plain(body);
                return Poll::Ready(first.map(|frame| frame.map_err(Into::into)));
            };
            let first = first.and_then(|frame| frame.ok()?.into_data().ok());
            this.0 = DecodeState::Coded(decode(coding, Body::new(PeekedBody::new(first, body))));
        }
        match &mut this.0 {
            DecodeState::Plain(body) => {
                Pin::new(body).poll_frame(context).map(|frame| frame.map(|frame| frame.map_err(Into::into)))
            }
            DecodeState::Coded(body) => Pin::new(body).poll_frame(context),
            DecodeState::Begins(_) | DecodeState::Over => Poll::Ready(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use http_body_util::{BodyExt as _, Limited};

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn read(names: &str) -> Result<Vec<&'static str>, UnsupportedCoding> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, names.parse().expect("a value"));
        codings(&headers)
    }

    async fn text(body: Body) -> String {
        String::from_utf8(body.collect().await.expect("it is whole").to_bytes().into()).expect("text")
    }

    #[test]
    fn codings_are_parsed_in_order_and_unknown_ones_rejected() {
        assert_eq!(read("identity, X-GZIP , br"), Ok(vec!["gzip", "br"]));
        assert_eq!(read("identity"), Ok(vec![]));
        for unknown in ["compress", "gzip, gzip, gzip", "gzip;q=1"] {
            assert_eq!(read(unknown), Err(UnsupportedCoding), "{unknown}");
        }
    }

    #[tokio::test]
    async fn codings_are_decoded_in_reverse_order() {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(b"hello").expect("memory");
        let twice = gzip(&zlib.finish().expect("memory"));
        assert_eq!(text(decoded(&["deflate", "gzip"], Body::from(twice))).await, "hello");
        assert_eq!(text(decoded(&[], Body::from("hello"))).await, "hello");
    }

    #[tokio::test]
    async fn unlabelled_gzip_is_detected_by_its_magic_bytes() {
        assert_eq!(text(Body::new(Unlabelled::new(Body::from(gzip(b"hello"))))).await, "hello");
        assert_eq!(text(Body::new(Unlabelled::new(Body::from("{}")))).await, "{}");
        assert_eq!(text(Body::new(Unlabelled::new(Body::empty()))).await, "");
    }

    #[tokio::test]
    async fn decompression_bomb_is_stopped_at_the_bound() {
        let small = gzip(&vec![0; 64 << 20]);
        assert!(small.len() < 100_000);
        let bounded = Limited::new(decoded(&["gzip"], Body::from(small)), 1 << 20).collect().await;
        assert!(bounded.is_err());
    }
}
