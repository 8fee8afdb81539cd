//! Connections to one HTTP server.
//!
//! A [`Pool`] sends requests with complete bodies and streams the responses. This crate implements HTTP/1.1 itself, in
//! the task that sends the request and reads the body: a connection has no task, no channel and no buffers of its own,
//! so a chunk of a response wakes one task, and waiting for a response takes a few hundred bytes. If a server chooses
//! HTTP/2 in the TLS handshake, the `hyper` crate handles it.
//!
//! A pool can reach its server through a [`Proxy`].
//!
//! No redirects or retries: those belong in the layers above this crate.
//!
//! It has no stable interface: it is a part of the crate `gatewright`, which is what programs use.

mod body;
mod dial;
mod error;
mod h1;
mod h2;
mod idle;
mod pool;
mod proxy;
mod request;
mod socket;
mod tcp;
mod watching;

pub use self::body::Body;
pub use self::error::Error;
pub use self::h2::STREAM_WINDOW;
pub use self::pool::{Pool, Settings};
pub use self::proxy::Proxy;
pub use self::request::RequestRef;
pub use self::tcp::{SocketGuard, WatchedSocket};
pub use self::watching::Slot;

pub mod http1 {
    //! The parts of HTTP/1.1 (RFC 9112) that a server needs as well.
    pub use crate::h1::{Framing, ScanOffset, of_request};
}

#[cfg(fuzzing)]
pub mod fuzzing {
    //! The entry point of the fuzz target. Not part of the API.
    pub use crate::h1::fuzzing::answer;
}
