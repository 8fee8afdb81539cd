//! HTTP/2, by the `hyper` crate: one connection for all requests, driven by a task.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use crate::error::Error;
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

/// Sends a request. `Err(Ok(request))`: the connection has ended and has not taken it.
pub(crate) async fn send(
    mut sender: Sender,
    mut request: Request<Bytes>,
    server: &Uri,
) -> Result<Response<Incoming>, Result<Request<Bytes>, Error>> {
    // The path and the query stay those of the request.
    let path = request.uri().path_and_query().cloned();
    let mut uri = server.clone().into_parts();
    uri.path_and_query = path.or(uri.path_and_query);
    *request.uri_mut() = Uri::from_parts(uri).unwrap_or_else(|_| server.clone());
    remove_framing(request.headers_mut());
    let (head, body) = request.into_parts();
    let sent = sender.try_send_request(Request::from_parts(head.clone(), Full::new(body.clone()))).await;
    sent.map_err(|mut failed| match failed.take_message() {
        Some(_) => Ok(Request::from_parts(head, body)),
        None => Err(Error::Http2(failed.into_error())),
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
