//! The route of requests to the gateway: connections of our own where it is reached directly, the HTTP library where a
//! proxy stands between. Over our own, whoever waits for an answer reads it from the socket: no other task is woken.

use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{FutureExt as _, Stream, TryStreamExt as _};
use gatewright_connect::Pool;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use http_body_util::{BodyDataStream, BodyExt as _};
use tower_http::decompression::Decompression;
use tower_service::Service;
use url::{Position, Url};

use crate::transport::connecting::Connecting;
use crate::wire::error::{Error, ErrorKind};

/// The encodings of content that are read, the densest first.
const ENCODINGS: HeaderValue = HeaderValue::from_static("zstd, br, gzip, deflate");

/// How requests reach the gateway.
pub(crate) enum Route {
    Direct(Pool),
    Library(reqwest::Client),
}

/// An answer whose body has not been read.
pub(crate) struct Incoming {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
}

/// The bytes of a body, in packets as they come.
pub(crate) type Body = Pin<Box<dyn Stream<Item = Result<Bytes, HttpError>> + Send + Sync>>;

/// Why there is no answer, or not all of it.
#[derive(Debug)]
pub(crate) enum HttpError {
    Library(reqwest::Error),
    Connection(gatewright_connect::Error),
    /// Its content encoding is broken, or the connection beneath.
    Content(Box<dyn std::error::Error + Send + Sync>),
    /// The request has no address that can be sent.
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

    /// Sends a request and waits for the head of the answer.
    pub(crate) async fn send(&self, request: reqwest::Request) -> Result<Incoming, HttpError> {
        match self {
            Self::Direct(pool) => {
                let response = pool.send(direct(request)?).await.map_err(HttpError::Connection)?;
                Ok(decoded(response).await)
            }
            Self::Library(library) => Ok(library.execute(request).await?.into()),
        }
    }
}

/// A request as our own connections take it: of its address, only the path and the query.
fn direct(mut request: reqwest::Request) -> Result<http::Request<Bytes>, HttpError> {
    let body = request.body_mut().take().map(|body| {
        let collected = body.collect().now_or_never().and_then(Result::ok);
        collected.expect("the body is bytes, never a stream").to_bytes()
    });
    let mut sent = http::Request::new(body.unwrap_or_default());
    *sent.method_mut() = request.method().clone();
    let path = PathAndQuery::try_from(&request.url()[Position::BeforePath..Position::AfterQuery]);
    *sent.uri_mut() = Uri::from(path.map_err(|error| HttpError::Address(error.into()))?);
    std::mem::swap(sent.headers_mut(), request.headers_mut());
    sent.headers_mut().entry(ACCEPT_ENCODING).or_insert(ENCODINGS);
    Ok(sent)
}

/// Undoes the content encoding, if there is one.
async fn decoded(response: http::Response<gatewright_connect::Body>) -> Incoming {
    if !response.headers().contains_key(CONTENT_ENCODING) {
        let (head, body) = response.into_parts();
        let body = Box::pin(BodyDataStream::new(body).map_err(HttpError::Connection));
        return Incoming { status: head.status, headers: head.headers, body };
    }
    let answered = Decompression::new(Answered(Some(response))).call(http::Request::new(())).await;
    let (head, body) = answered.unwrap_or_else(|never| match never {}).into_parts();
    let body = Box::pin(BodyDataStream::new(body).map_err(HttpError::Content));
    Incoming { status: head.status, headers: head.headers, body }
}

/// An answer at hand, in the form that the library for content encodings takes.
struct Answered(Option<http::Response<gatewright_connect::Body>>);

impl Service<http::Request<()>> for Answered {
    type Response = http::Response<gatewright_connect::Body>;
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
        Self { status, headers, body: Box::pin(response.bytes_stream().map_err(HttpError::Library)) }
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

    /// Whether the request cannot be sent at all.
    pub(crate) fn is_of_request(&self) -> bool {
        match self {
            Self::Library(error) => error.is_builder(),
            Self::Address(_) => true,
            Self::Connection(_) | Self::Content(_) => false,
        }
    }

    /// Whether the content was being decoded.
    pub(crate) fn is_of_content(&self) -> bool {
        match self {
            Self::Library(error) => error.is_decode(),
            Self::Content(_) => true,
            Self::Connection(_) | Self::Address(_) => false,
        }
    }

    /// The same without the address of the request, which may hold secrets.
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
