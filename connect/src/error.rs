//! Why there is no answer, or not all of it.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

/// Why there is no answer, or not all of it. The causes are in `source`; none of them quotes the request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No connection: the name is unknown, nobody listens, or the TLS handshake failed.
    #[error("cannot connect")]
    Connect(#[source] Box<dyn StdError + Send + Sync>),
    /// The address could not be looked up, connected to and agreed with in time.
    #[error("no connection within {0:?}")]
    ConnectTimeout(Duration),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// The server closed the connection before its answer began.
    #[error("the connection was closed before an answer began")]
    Closed,
    /// The server closed a connection that had served requests before, within a second after this one began: it has most likely not
    /// read it.
    #[error("the connection was closed before an answer began")]
    Stale,
    /// The server closed the connection in the midst of its answer.
    #[error("the connection was closed before the answer was complete")]
    Incomplete,
    /// The answer is not HTTP, or exceeds the bounds of its head.
    #[error("the answer is not valid HTTP/1.1: {0}")]
    Invalid(&'static str),
    /// A failure of HTTP/2.
    #[error("HTTP/2 failed")]
    Http2(#[source] hyper::Error),
}

impl Error {
    /// Whether the request was certainly not sent: there was no connection.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::ConnectTimeout(_))
    }

    /// Whether a connection took too long, or its other end no longer answers.
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
