//! Why there is no response, or only part of one.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

/// Why there is no response, or only part of one. The causes are in `source`; none of them quotes the
/// request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection: the name is unknown, no server listens, or the TLS handshake failed.
    #[error("cannot connect")]
    Connect(#[source] Box<dyn StdError + Send + Sync>),
    /// DNS lookup, connect and TLS handshake did not finish in time.
    #[error("no connection within {0:?}")]
    ConnectTimeout(Duration),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// The server closed the connection before it sent any of its response.
    #[error("the connection was closed before a response started")]
    Closed,
    /// The server closed a connection that had served requests before, within a second after this one began. It may have
    /// read and processed the request, although most servers that close an idle connection have not.
    #[error("the connection was closed before a response started")]
    Stale,
    /// The same before anything of the request was written: the server has not read it.
    #[error("the connection was closed before the request was sent")]
    Unsent,
    /// The server closed the connection in the midst of its answer.
    #[error("the connection was closed before the response was complete")]
    Incomplete,
    /// The response is not HTTP, or its head exceeds the limits.
    #[error("the response is not valid HTTP/1.1: {0}")]
    Invalid(&'static str),
    /// An HTTP/2 error.
    #[error("HTTP/2 failed")]
    Http2(#[source] hyper::Error),
}

impl Error {
    /// Whether the request was certainly not sent, because there was no connection.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::ConnectTimeout(_))
    }

    /// Whether connecting took too long, or the peer stopped responding.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::ConnectTimeout(_) => true,
            Self::Broken(error) => error.kind() == io::ErrorKind::TimedOut,
            Self::Http2(error) => error.is_timeout(),
            _ => false,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}
