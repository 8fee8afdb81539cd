//! The sockets that a gateway listens on.

use std::future::poll_fn;
use std::io;
use std::io::ErrorKind::{ConnectionAborted, ConnectionReset};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use gatewright_config::{Config, is_listen_address};
use tokio::net::{TcpListener, TcpStream};

use super::bind_error::BindError;

/// One socket.
struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    is_tls: bool,
}

/// All sockets, the plain ones first.
pub(super) struct Listeners {
    listeners: Vec<Listener>,
    /// The socket polled first.
    first: AtomicUsize,
}

/// An accepted connection.
pub(super) struct AcceptedConnection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) is_tls: bool,
}

impl Listeners {
    /// Binds the addresses of a configuration.
    pub(super) async fn bind(config: &Config) -> Result<Self, BindError> {
        let plain = config.listen.iter().map(|address| (address, false));
        let tls = config.tls.iter().flat_map(|tls| &tls.listen).map(|address| (address, true));
        Self::at(plain.chain(tls)).await
    }

    /// Binds addresses, each with or without TLS.
    pub(super) async fn at(addresses: impl Iterator<Item = (&String, bool)>) -> Result<Self, BindError> {
        let mut listeners = Vec::new();
        for (listen, is_tls) in addresses {
            let failed = |source| BindError::Listen { listen: listen.clone(), source };
            // For a bare port, the system would only report that it doesn't know the name.
            if !is_listen_address(listen) {
                let form = "an address must be host and port, such as 127.0.0.1:8080";
                return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, form)));
            }
            let socket = TcpListener::bind(listen).await.map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            listeners.push(Listener { socket, address, is_tls });
        }
        if listeners.is_empty() {
            return Err(BindError::Nowhere);
        }
        Ok(Self { listeners, first: AtomicUsize::new(0) })
    }

    /// The address of the first socket.
    pub(super) fn address(&self) -> SocketAddr {
        self.listeners[0].address
    }

    /// The base URLs of all sockets.
    pub(super) fn urls(&self) -> impl Iterator<Item = String> {
        let scheme = |is_tls: bool| if is_tls { "https" } else { "http" };
        self.listeners
            .iter()
            .map(move |listener| format!("{}://{}", scheme(listener.is_tls), listener.address))
    }

    /// Accepts a connection on any socket. The socket polled first changes each time, so that a busy one doesn't starve
    /// the others.
    pub(super) async fn accept(&self) -> io::Result<AcceptedConnection> {
        let first = self.first.fetch_add(1, Ordering::Relaxed);
        poll_fn(|context| {
            for at in 0..self.listeners.len() {
                let listener = &self.listeners[first.wrapping_add(at) % self.listeners.len()];
                while let Poll::Ready(accepted) = listener.socket.poll_accept(context) {
                    let (stream, peer) = match accepted {
                        // A client that left the queue must not delay the next one.
                        Err(error) if matches!(error.kind(), ConnectionAborted | ConnectionReset) => continue,
                        Err(error) => return Poll::Ready(Err(error)),
                        Ok(accepted) => accepted,
                    };
                    // Without it, every event of a stream may wait 40 ms for the acknowledgement of the previous one.
                    // Fails if the client has gone, which the connection then detects.
                    _ = stream.set_nodelay(true);
                    return Poll::Ready(Ok(AcceptedConnection { stream, peer, is_tls: listener.is_tls }));
                }
            }
            Poll::Pending
        })
        .await
    }
}
