//! Sends requests to the gateway. The task that waits for a response reads it from the socket itself, and no other task is
//! woken.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use gatewright_connect::{Pool, RequestRef, WatchedSocket};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body::{Body as _, Frame};
use http_body_util::BodyDataStream;
use tower_http::decompression::Decompression;
use tower_service::Service;
use url::{Position, Url};

use crate::transport::connecting::Connecting;
use crate::transport::outgoing::Outgoing;
use crate::wire::error::Error;

/// The content encodings that can be decoded, the most compact first.
const ENCODINGS: HeaderValue = HeaderValue::from_static("zstd, br, gzip, deflate");

/// The connections to the gateway.
pub(crate) struct Route(Pool);

/// A response whose body has not been read.
pub(crate) struct Incoming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The bytes of a body, in packets as they arrive.
pub(crate) enum Body {
    /// As received.
    Received(Box<gatewright_connect::Body>),
    Decoded(Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send + Sync>>),
}

/// Why there is no response, or only part of one.
#[derive(Debug)]
pub(crate) enum HttpError {
    Connection(gatewright_connect::Error),
    /// Its content encoding is broken, or the connection is.
    Content(Box<dyn std::error::Error + Send + Sync>),
    /// The request's address can't be sent.
    Address(http::Error),
}

impl Route {
    /// Errors (Configuration): TLS cannot be set up.
    pub(crate) fn new(connecting: &Connecting, target: &Url) -> Result<Self, Error> {
        connecting.pool(target).map(Self)
    }

    /// Sends a request and waits for the head of the response. The request can be sent again. If it has no
    /// Accept-Encoding, the encodings we can decode are added.
    pub(crate) async fn send(&self, request: &mut Outgoing) -> Result<Incoming, HttpError> {
        request.headers.entry(ACCEPT_ENCODING).or_insert(ENCODINGS);
        decoded(exchange(&self.0, request).await?).await
    }
}

impl Body {
    /// Lets the reader watch the connection, as [`gatewright_connect::Body::watch`] does.
    pub(crate) fn watch(&mut self) -> Option<WatchedSocket> {
        match self {
            Self::Received(body) => body.watch(),
            Self::Decoded(_) => None,
        }
    }

    /// Lets the runtime watch it again.
    pub(crate) fn drive(&mut self) -> Result<(), HttpError> {
        match self {
            Self::Received(body) => body.drive().map_err(HttpError::Connection),
            Self::Decoded(_) => Ok(()),
        }
    }
}

impl Stream for Body {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let body = match self.get_mut() {
            Self::Received(body) => body,
            Self::Decoded(stream) => return stream.as_mut().poll_next(context),
        };
        let frame = std::task::ready!(Pin::new(&mut **body).poll_frame(context));
        // A connection produces no other frames.
        let data = frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()));
        Poll::Ready(data.map(|data| data.map_err(HttpError::Connection)))
    }
}

/// Sends a request to the pool's server, which uses only the path and query of its URL.
pub(crate) async fn exchange(
    pool: &Pool,
    request: &Outgoing,
) -> Result<http::Response<gatewright_connect::Body>, HttpError> {
    let path = PathAndQuery::try_from(&request.url[Position::BeforePath..Position::AfterQuery]);
    let path = path.map_err(|error| HttpError::Address(error.into()))?;
    let empty = Bytes::new();
    let sent = RequestRef {
        method: &request.method,
        path_and_query: Some(&path),
        headers: &request.headers,
        body: request.body.as_ref().unwrap_or(&empty),
    };
    pool.send(sent).await.map_err(HttpError::Connection)
}

/// Decodes the content encoding, if there is one.
async fn decoded(mut response: http::Response<gatewright_connect::Body>) -> Result<Incoming, HttpError> {
    if !response.headers().contains_key(CONTENT_ENCODING) {
        let (head, body) = response.into_parts();
        let body = Body::Received(Box::new(body));
        return Ok(Incoming { status: head.status, headers: head.headers, body });
    }
    // Behind the decoder, only the runtime can watch it.
    response.body_mut().drive().map_err(HttpError::Connection)?;
    let is_stream =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENTS));
    let response = response.map(|body| PacketBody { body, rest: Bytes::new(), is_stream });
    let answered = Decompression::new(EncodedResponse(Some(response))).call(http::Request::new(())).await;
    let (head, body) = answered.unwrap_or_else(|never| match never {}).into_parts();
    let body = Body::Decoded(Box::pin(BodyDataStream::new(body).map_err(HttpError::Content)));
    Ok(Incoming { status: head.status, headers: head.headers, body })
}

/// A received response, in the form that the content-encoding library takes.
struct EncodedResponse(Option<http::Response<PacketBody>>);

/// The media type of a stream, without parameters.
const EVENTS: &[u8] = b"text/event-stream";

/// A body for a decoder. A stream's body is passed byte by byte: a decoder that fails within a packet loses what it has
/// read of that packet, and complete events must still be delivered.
struct PacketBody {
    body: gatewright_connect::Body,
    rest: Bytes,
    is_stream: bool,
}

impl http_body::Body for PacketBody {
    type Data = Bytes;
    type Error = gatewright_connect::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        while this.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => this.rest = frame.into_data().unwrap_or_default(),
                ended => return Poll::Ready(ended),
            }
        }
        let length = if this.is_stream { 1 } else { this.rest.len() };
        Poll::Ready(Some(Ok(Frame::data(this.rest.split_to(length)))))
    }
}

impl Service<http::Request<()>> for EncodedResponse {
    type Response = http::Response<PacketBody>;
    type Error = std::convert::Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: http::Request<()>) -> Self::Future {
        ready(Ok(self.0.take().expect("it is called once")))
    }
}

impl HttpError {
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self, Self::Connection(error) if error.is_timeout())
    }

    pub(crate) fn is_connect(&self) -> bool {
        matches!(self, Self::Connection(error) if error.is_connect())
    }

    /// Whether the request itself can't be sent.
    pub(crate) fn is_of_request(&self) -> bool {
        matches!(self, Self::Address(_))
    }

    /// Whether decoding the content failed.
    pub(crate) fn is_of_content(&self) -> bool {
        matches!(self, Self::Content(_))
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connection(error) => error.fmt(f),
            Self::Content(error) => error.fmt(f),
            Self::Address(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HttpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Connection(error) => error,
            Self::Content(error) => &**error,
            Self::Address(error) => error,
        })
    }
}
