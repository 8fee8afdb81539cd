//! A request, borrowed from the caller, so that it can be sent again without a copy.

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Uri};

use crate::proxy::Proxy;

/// A request that borrows its headers from the caller.
#[derive(Debug, Clone, Copy)]
pub struct RequestRef<'a> {
    /// The HTTP method.
    pub method: &'a Method,
    /// The request target; `/` if none.
    pub path_and_query: Option<&'a PathAndQuery>,
    /// All headers except those that frame the message.
    pub headers: &'a HeaderMap,
    /// The whole body.
    pub body: &'a Bytes,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'a> {
    /// Scheme and authority.
    pub(crate) server: &'a Uri,
    /// The proxy that gets the request in order to forward it.
    pub(crate) forwarder: Option<&'a Proxy>,
}

impl<'a> From<&'a Request<Bytes>> for RequestRef<'a> {
    fn from(request: &'a Request<Bytes>) -> Self {
        Self {
            method: request.method(),
            path_and_query: request.uri().path_and_query(),
            headers: request.headers(),
            body: request.body(),
        }
    }
}
