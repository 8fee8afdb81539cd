//! How requests reach the gateway: over our own connections if it is reached directly, through the HTTP library if
//! there is a proxy. With our own connections, the task that waits for a response reads it from the socket itself, and
//! no other task is woken.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, TryStreamExt as _};
use gatewright_connect::{Pool, RequestRef, WatchedSocket};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, StatusCode};
use http_body_util::{BodyDataStream, BodyExt as _};
use hyper::body::{Body as _, Frame};
use tower_http::decompression::Decompression;
use tower_service::Service;
use url::{Position, Url};

use crate::transport::connecting::Connecting;
use crate::wire::error::{Error, ErrorKind};

/// The content encodings that can be decoded, the most compact first.
const ENCODINGS: HeaderValue = HeaderValue::from_static("zstd, br, gzip, deflate");

/// How requests reach the gateway.
pub(crate) enum Route {
    Direct(Pool),
    Library(reqwest::Client),
}

/// A response whose body has not been read.
pub(crate) struct Incoming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The bytes of a body, in packets as they arrive.
pub(crate) enum Body {
    /// As received over our own connection.
    Direct(Box<gatewright_connect::Body>),
    /// Decoded, or through the HTTP library.
    Other(Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send + Sync>>),
}

/// Why there is no response, or only part of one.
#[derive(Debug)]
pub(crate) enum HttpError {
    Library(reqwest::Error),
    Connection(gatewright_connect::Error),
    /// Its content encoding is broken, or the connection is.
    Content(Box<dyn std::error::Error + Send + Sync>),
    /// The request's address can't be sent.
    Address(http::Error),
}

impl Route {
    /// Errors (Configuration): the proxy cannot be used, or TLS cannot be set up.
    pub(crate) fn new(connecting: &Connecting, target: &Url) -> Result<Self, Error> {
        if let Some(pool) = connecting.pool(target)? {
            return Ok(Self::Direct(pool));
        }
        let library = connecting
            .client_builder(target)?
            // An API does not redirect; following a redirect would send the key to wherever a proxy points.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Configuration, "the HTTP client cannot be set up").with_source(error)
            })?;
        Ok(Self::Library(library))
    }

    /// Sends a request and waits for the head of the response. The request can be sent again. If it has no
    /// Accept-Encoding, the encodings we can decode are added.
    pub(crate) async fn send(&self, request: &mut reqwest::Request) -> Result<Incoming, HttpError> {
        match self {
            Self::Direct(pool) => {
                request.headers_mut().entry(ACCEPT_ENCODING).or_insert(ENCODINGS);
                decoded(directly(pool, request).await?).await
            }
            Self::Library(library) => Ok(library.execute(copy(request)).await?.into()),
        }
    }
}

impl Body {
    /// Lets the reader watch the connection, as [`gatewright_connect::Body::watch`] does.
    pub(crate) fn watch(&mut self) -> Option<WatchedSocket> {
        match self {
            Self::Direct(body) => body.watch(),
            Self::Other(_) => None,
        }
    }

    /// Lets the runtime watch it again.
    pub(crate) fn drive(&mut self) -> Result<(), HttpError> {
        match self {
            Self::Direct(body) => body.drive().map_err(HttpError::Connection),
            Self::Other(_) => Ok(()),
        }
    }
}

impl Stream for Body {
    type Item = Result<Bytes, HttpError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let body = match self.get_mut() {
            Self::Direct(body) => body,
            Self::Other(stream) => return stream.as_mut().poll_next(context),
        };
        let frame = std::task::ready!(Pin::new(&mut **body).poll_frame(context));
        // Our own connections produce no other frames.
        let data = frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()));
        Poll::Ready(data.map(|data| data.map_err(HttpError::Connection)))
    }
}

/// A copy of a request, which shares its body.
pub(crate) fn copy(request: &reqwest::Request) -> reqwest::Request {
    request.try_clone().expect("the body is bytes, never a stream")
}

/// Sends a request over our own connections; they use only the path and query of its URL.
async fn directly(
    pool: &Pool,
    request: &mut reqwest::Request,
) -> Result<http::Response<gatewright_connect::Body>, HttpError> {
    let body = bytes(request);
    let path = PathAndQuery::try_from(&request.url()[Position::BeforePath..Position::AfterQuery]);
    let path = path.map_err(|error| HttpError::Address(error.into()))?;
    let sent = RequestRef {
        method: request.method(),
        path_and_query: Some(&path),
        headers: request.headers(),
        body: &body,
    };
    pool.send(sent).await.map_err(HttpError::Connection)
}

/// The body of a request, which shares its bytes.
fn bytes(request: &mut reqwest::Request) -> Bytes {
    let Some(body) = request.body_mut().take() else { return Bytes::new() };
    // The library exposes its bytes only through the body.
    let whole = body.collect().now_or_never().and_then(Result::ok);
    let bytes = whole.expect("the body is bytes, never a stream").to_bytes();
    *request.body_mut() = Some(bytes.clone().into());
    bytes
}

/// Decodes the content encoding, if there is one.
async fn decoded(mut response: http::Response<gatewright_connect::Body>) -> Result<Incoming, HttpError> {
    if !response.headers().contains_key(CONTENT_ENCODING) {
        let (head, body) = response.into_parts();
        let body = Body::Direct(Box::new(body));
        return Ok(Incoming { status: head.status, headers: head.headers, body });
    }
    // Behind the decoder, only the runtime can watch it.
    response.body_mut().drive().map_err(HttpError::Connection)?;
    let is_stream =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(EVENTS));
    let response = response.map(|body| PacketBody { body, rest: Bytes::new(), is_stream });
    let answered = Decompression::new(EncodedResponse(Some(response))).call(http::Request::new(())).await;
    let (head, body) = answered.unwrap_or_else(|never| match never {}).into_parts();
    let body = Body::Other(Box::pin(BodyDataStream::new(body).map_err(HttpError::Content)));
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

impl hyper::body::Body for PacketBody {
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

impl From<reqwest::Response> for Incoming {
    fn from(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = Body::Other(Box::pin(response.bytes_stream().map_err(HttpError::Library)));
        Self { status, headers, body }
    }
}

impl HttpError {
    pub(crate) fn is_timeout(&self) -> bool {
        match self {
            Self::Library(error) => error.is_timeout(),
            Self::Connection(error) => error.is_timeout(),
            Self::Content(_) | Self::Address(_) => false,
        }
    }

    pub(crate) fn is_connect(&self) -> bool {
        match self {
            Self::Library(error) => error.is_connect(),
            Self::Connection(error) => error.is_connect(),
            Self::Content(_) | Self::Address(_) => false,
        }
    }

    /// Whether the request itself can't be sent.
    pub(crate) fn is_of_request(&self) -> bool {
        match self {
            Self::Library(error) => error.is_builder(),
            Self::Address(_) => true,
            Self::Connection(_) | Self::Content(_) => false,
        }
    }

    /// Whether decoding the content failed.
    pub(crate) fn is_of_content(&self) -> bool {
        match self {
            Self::Library(error) => error.is_decode(),
            Self::Content(_) => true,
            Self::Connection(_) | Self::Address(_) => false,
        }
    }

    /// The same without the URL of the request, which may contain secrets.
    pub(crate) fn without_url(self) -> Self {
        match self {
            Self::Library(error) => Self::Library(error.without_url()),
            other => other,
        }
    }
}

impl From<reqwest::Error> for HttpError {
    fn from(error: reqwest::Error) -> Self {
        Self::Library(error)
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Library(error) => error.fmt(f),
            Self::Connection(error) => error.fmt(f),
            Self::Content(error) => error.fmt(f),
            Self::Address(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for HttpError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(match self {
            Self::Library(error) => error,
            Self::Connection(error) => error,
            Self::Content(error) => &**error,
            Self::Address(error) => error,
        })
    }
}
