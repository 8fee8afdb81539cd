//! Code of a caller's around every attempt: it sees what is sent and what came of it, and may change headers or
//! stop the call.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::HeaderMap;

use crate::error::{Error, ErrorKind};
use crate::operation::{Method, Operation};
use crate::response::request_id;
use crate::secret;

/// Code that runs around every attempt of every call of a client, retries included.
///
/// With several, `before` runs in the order they were given in and `after` in the reverse; `after` runs for those
/// whose `before` succeeded. Both count against the call's deadline. A call that is dropped runs neither again.
pub trait Middleware: Send + Sync {
    /// Before an attempt is sent. What it changes holds for this attempt alone: the next one begins anew.
    ///
    /// Errors: the call fails with this error, and nothing is tried again.
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        let _ = attempt;
        Box::pin(async { Ok(()) })
    }

    /// After an attempt has ended: answered whole, answered with a stream's head, or failed.
    ///
    /// Errors: the call fails with this error in place of the outcome, and nothing is tried again.
    fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        let _ = (attempt, outcome);
        Box::pin(async { Ok(()) })
    }
}

/// One request of a call, about to be sent or sent.
pub struct Attempt {
    pub(crate) operation: &'static Operation,
    pub(crate) request: reqwest::Request,
    pub(crate) number: u32,
    pub(crate) max_retries: u32,
    pub(crate) remaining: Duration,
    pub(crate) previous: Option<ErrorKind>,
}

impl Attempt {
    /// The operation called.
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// 1 for the first attempt of a call.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Tries the call may make after the first.
    pub fn max_retries(&self) -> u32 {
        self.max_retries
    }

    /// Time left of the call's deadline when the attempt began.
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// Why the attempt before this one failed; none for the first.
    pub fn previous(&self) -> Option<ErrorKind> {
        self.previous
    }

    /// HTTP method.
    pub fn method(&self) -> Method {
        self.operation.method
    }

    /// The whole address, query included.
    pub fn url(&self) -> &str {
        self.request.url().as_str()
    }

    /// The headers to be sent, the key among them.
    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// The headers, to be changed before the attempt is sent. Those that frame the message are the transport's: an
    /// attempt that has one of them fails with InvalidRequest.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        self.request.headers_mut()
    }

    /// The JSON body, where the operation has one.
    pub fn body(&self) -> Option<&[u8]> {
        self.request.body().and_then(reqwest::Body::as_bytes)
    }
}

/// Shows neither secret headers nor secret query parameters, and of the body its length.
impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("operation", &self.operation.id)
            .field("number", &self.number)
            .field("url", &secret::redacted_url(self.request.url()))
            .field("headers", &secret::RedactedHeaders(self.headers()))
            .field("body_bytes", &self.body().map(<[u8]>::len))
            .finish_non_exhaustive()
    }
}

/// What came of an attempt. What it gives of an answer is as it came; only its error, and its `Debug`, are redacted.
pub struct Outcome {
    pub(crate) elapsed: Duration,
    pub(crate) answer: Result<Answered, Error>,
}

/// A successful answer, as far as it has been read.
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// None for a stream.
    pub(crate) body: Option<Bytes>,
}

impl Outcome {
    /// HTTP status, where there was an answer.
    pub fn status(&self) -> Option<u16> {
        match &self.answer {
            Ok(answered) => Some(answered.status),
            Err(error) => error.status(),
        }
    }

    /// Headers of the answer, where there was one; of a failure, as its error has them: without secrets.
    pub fn headers(&self) -> Option<&HeaderMap> {
        match &self.answer {
            Ok(answered) => Some(&answered.headers),
            Err(error) => error.headers(),
        }
    }

    /// The gateway's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.headers().and_then(request_id)
    }

    /// The answer's body, where it has been read: whole on success, cut at
    /// [`MAX_ERROR_BODY_BYTES`](crate::MAX_ERROR_BODY_BYTES) on failure. None for a stream.
    pub fn body(&self) -> Option<&Bytes> {
        match &self.answer {
            Ok(answered) => answered.body.as_ref(),
            Err(error) => error.body(),
        }
    }

    /// The failure, where the attempt failed. Whether it is tried again is not decided yet.
    pub fn error(&self) -> Option<&Error> {
        self.answer.as_ref().err()
    }

    /// From the attempt's beginning to the end of the body; of a stream, to its head. A wait for the pool is part of
    /// it.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

/// Shows no header, and of the body its length.
impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcome")
            .field("elapsed", &self.elapsed)
            .field("status", &self.status())
            .field("body_bytes", &self.body().map(Bytes::len))
            .field("error", &self.error())
            .finish_non_exhaustive()
    }
}
