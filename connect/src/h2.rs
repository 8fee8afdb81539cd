//! HTTP/2, by the `hyper` crate: one connection for all requests, driven by a task.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::error::Error;
use crate::request::RequestRef;
use crate::socket::Socket;

/// Sends requests over a connection; clones share it.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// Begins HTTP/2 on a new connection. `ping`: interval of pings while there are requests, and how long each may take.
pub(crate) async fn begin(socket: Socket, ping: Duration) -> Result<Sender, Error> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.timer(TokioTimer::new()).adaptive_window(true);
    builder.keep_alive_interval(ping).keep_alive_timeout(ping);
    let (sender, connection) =
        builder.handshake(TokioIo::new(socket)).await.map_err(|error| Error::Connect(error.into()))?;
    // Its failure reaches the requests on it.
    tokio::spawn(async { drop(connection.await) });
    Ok(sender)
}

/// Why there is no answer.
pub(crate) enum Failed {
    /// The connection has ended and has not taken the request.
    Unsent,
    Broken(Error),
}

/// Sends a request. `server`: scheme and authority.
pub(crate) async fn send(
    mut sender: Sender,
    request: RequestRef<'_>,
    server: &Uri,
) -> Result<Response<Incoming>, Failed> {
    let mut uri = server.clone().into_parts();
    uri.path_and_query = request.path_and_query.cloned().or(uri.path_and_query);
    let mut sent = Request::new(Full::new(request.body.clone()));
    *sent.method_mut() = request.method.clone();
    *sent.uri_mut() = Uri::from_parts(uri).unwrap_or_else(|_| server.clone());
    *sent.headers_mut() = request.headers.clone();
    remove_framing(sent.headers_mut());
    sender.try_send_request(sent).await.map_err(|mut failed| match failed.take_message() {
        Some(_) => Failed::Unsent,
        None => Failed::Broken(Error::Http2(failed.into_error())),
    })
}

/// Headers of a connection have no place in HTTP/2.
fn remove_framing(headers: &mut HeaderMap) {
    for name in
        [header::CONNECTION, header::CONTENT_LENGTH, header::HOST, header::TRANSFER_ENCODING, header::UPGRADE]
    {
        headers.remove(name);
    }
}
