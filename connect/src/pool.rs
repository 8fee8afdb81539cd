//! A pool of reusable connections to one server.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Response, StatusCode, Uri};
use rustls::ClientConfig;
use tokio::time::Instant;

use crate::body::Body;
use crate::dial::{Dialer, NewConnection};
use crate::error::Error;
use crate::h1::H1Connection;
use crate::h2;
use crate::idle::Idle;
use crate::proxy::Proxy;
use crate::request::RequestRef;
use crate::socket::Socket;

/// How long a request waits for a connection that another request is opening before it opens its own.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often to check whether a server has announced its concurrency limit for a connection.
const LOOK: Duration = Duration::from_millis(1);

/// Maximum number of attempts for a request that a connection did not accept: open connections may be about to close.
const MAX_UNSENT: usize = 3;

/// How connections are opened and kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time limit for a new connection, including the DNS lookup and the TLS handshake.
    pub connect_timeout: Duration,
    /// Maximum number of idle connections that stay open; with 0, an HTTP/2 connection serves only one request,
    /// too.
    pub max_idle: usize,
    /// How long an idle connection stays open.
    pub idle_timeout: Duration,
    /// Interval of TCP keep-alive packets, so that a network that forgets idle connections doesn't drop them.
    pub keep_alive: Option<Duration>,
    /// Interval of pings on an HTTP/2 connection with requests, and how long each may take.
    pub ping: Duration,
    /// The proxy on the way to the server.
    pub proxy: Option<Proxy>,
    /// Whether an HTTP/1.1 connection may serve another request after a response with this head. After a response that no such
    /// server sends, what arrives next may belong to anything.
    pub is_reusable: fn(StatusCode, &HeaderMap) -> bool,
}

/// The connections to one server. Clones share them.
#[derive(Debug, Clone)]
pub struct Pool {
    shared: Arc<PoolInner>,
}

#[derive(Debug)]
struct PoolInner {
    dialer: Dialer,
    settings: Settings,
    idle: Arc<Idle>,
    /// Held while opening a connection on which the server may choose HTTP/2: requests that wait may be able to
    /// share it.
    choosing: tokio::sync::Mutex<LastProtocol>,
}

/// The HTTP version that the server chose last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastProtocol {
    Unknown,
    Http1,
}

/// Where a request can be sent.
enum PoolRoute {
    Http1(H1Connection<Socket>),
    Http2(h2::StreamSlot),
}

impl Pool {
    /// A pool without connections. `server`: scheme (`http` or `https`) and authority; the rest is ignored. `tls`: for the
    /// server and the proxy, without ALPN, which is set here.
    pub fn new(server: Uri, tls: ClientConfig, settings: Settings) -> Self {
        let dialer = Dialer::new(server, tls, settings.keep_alive, settings.proxy.clone());
        let idle = Arc::new(Idle::new(settings.max_idle, settings.idle_timeout));
        let choosing = tokio::sync::Mutex::new(LastProtocol::Unknown);
        Self { shared: Arc::new(PoolInner { dialer, settings, idle, choosing }) }
    }

    /// Whether this pool connects to that server with that timeout.
    pub fn serves(&self, server: &Uri, connect_timeout: Duration) -> bool {
        let own = self.shared.dialer.server();
        own.scheme() == server.scheme()
            && own.authority() == server.authority()
            && self.shared.settings.connect_timeout == connect_timeout
    }

    /// Sends a request and waits for the head of the response. Sets the body's length and the other headers that frame a
    /// message. Needs a Tokio runtime with I/O and time enabled.
    pub async fn send<'a>(&self, request: impl Into<RequestRef<'a>>) -> Result<Response<Body>, Error> {
        self.shared.send(self.shared.at_hand(), request.into()).await
    }

    /// The same over a connection of its own, for a request that another connection has lost ([`Error::Stale`]), if the server may
    /// get it twice.
    pub async fn send_anew<'a>(&self, request: impl Into<RequestRef<'a>>) -> Result<Response<Body>, Error> {
        self.shared.send(Some(self.shared.dial().await?), request.into()).await
    }
}

impl PoolInner {
    /// `way`: the first connection to try; if none is given, a new one is opened.
    async fn send(
        &self,
        mut way: Option<PoolRoute>,
        request: RequestRef<'_>,
    ) -> Result<Response<Body>, Error> {
        let server = self.dialer.server();
        let destination = self.dialer.destination();
        let mut unsent = 0;
        loop {
            let (next, is_own) = match way.take() {
                Some(way) => (way, false),
                // Boxed: few requests open a connection, and the future of each would have the size of that.
                None => Box::pin(self.connect()).await?,
            };
            match next {
                PoolRoute::Http1(connection) => match connection.send(request, destination).await {
                    Ok((head, mut reading)) => {
                        if !(self.settings.is_reusable)(head.status, &head.headers) {
                            reading.close_at_end();
                        }
                        return Ok(Response::from_parts(head, Body::http1(reading, &self.idle)?));
                    }
                    Err(Error::Unsent) if unsent + 1 < MAX_UNSENT => unsent += 1,
                    Err(error) => return Err(error),
                },
                PoolRoute::Http2(place) => match h2::send(place, request, server).await {
                    Ok((response, held)) => return Ok(response.map(|body| Body::http2(body, held))),
                    // Try again, perhaps over a new connection.
                    Err(h2::Failed::Unsent) if !is_own && unsent + 1 < MAX_UNSENT => unsent += 1,
                    Err(h2::Failed::Unsent) => return Err(Error::Closed),
                    Err(h2::Failed::Broken(error)) => return Err(error),
                },
            }
        }
    }

    fn at_hand(&self) -> Option<PoolRoute> {
        let http2 = if self.dialer.is_tls() { self.idle.http2() } else { None };
        http2.map(PoolRoute::Http2).or_else(|| self.idle.take().map(PoolRoute::Http1))
    }

    /// A new connection, or one that another request has opened in the meantime; the flag tells whether it is
    /// new.
    async fn connect(&self) -> Result<(PoolRoute, bool), Error> {
        let own = |way| (way, true);
        if !self.dialer.is_tls() {
            return self.dial().await.map(own);
        }
        let patience = PATIENCE.min(self.settings.connect_timeout);
        let until = Instant::now() + patience;
        let Ok(mut choice) = tokio::time::timeout_at(until, self.choosing.lock()).await else {
            return self.dial().await.map(own);
        };
        loop {
            if let Some(way) = self.at_hand() {
                return Ok((way, false));
            }
            // The concurrency limit of a new connection's server is still on its way.
            if !self.idle.has_unknown_limit() || Instant::now() >= until {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        if *choice == LastProtocol::Http1 {
            // Each request needs a connection of its own.
            drop(choice);
            return self.dial().await.map(own);
        }
        let way = self.dial().await?;
        if let PoolRoute::Http1(_) = way {
            *choice = LastProtocol::Http1;
        }
        Ok((way, true))
    }

    async fn dial(&self) -> Result<PoolRoute, Error> {
        let limit = self.settings.connect_timeout;
        let dialing = async {
            match self.dialer.dial().await? {
                NewConnection::Http1(socket) => Ok(PoolRoute::Http1(H1Connection::new(socket))),
                NewConnection::Http2(socket) => {
                    let connection = h2::begin(socket, self.settings.ping).await?;
                    let place = connection.place().ok_or(Error::Closed)?;
                    self.idle.put_http2(connection);
                    Ok(PoolRoute::Http2(place))
                }
            }
        };
        tokio::time::timeout(limit, dialing).await.unwrap_or(Err(Error::ConnectTimeout(limit)))
    }
}
