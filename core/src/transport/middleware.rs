//! The caller's code around every attempt: it sees the request and its outcome, and may change headers or stop the
//! call.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::api::operation::{Method, Operation};
use crate::transport::outgoing::Outgoing;
use crate::transport::response::request_id;
use crate::transport::secret;
use crate::wire::error::{Error, ErrorKind};

/// Code that runs around every attempt of every call of a client, retries included.
///
/// If there are several, `before` runs in the given order and `after` in reverse; `after` runs only if its `before`
/// succeeded. Both count against the call's deadline. Neither runs after the call is dropped.
///
/// ```
/// use std::sync::Arc;
///
/// use gatewright::{Attempt, BoxFuture, Client, Error, Middleware, Outcome};
///
/// /// Prints how long each attempt took.
/// struct Timing;
///
/// impl Middleware for Timing {
///     fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
///         println!("{} {}: {:?}", attempt.operation().id, attempt.number(), outcome.elapsed());
///         Box::pin(async { Ok(()) })
///     }
/// }
///
/// let client = Client::builder().api_key("my-key").middleware(Arc::new(Timing)).build()?;
/// # Ok::<(), Error>(())
/// ```
pub trait Middleware: Send + Sync {
    /// Runs before an attempt is sent. Its changes apply to this attempt only.
    ///
    /// Errors: the call fails with this error and is not retried.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # use std::sync::Arc;
    /// # use gatewright::{Attempt, BoxFuture, Client, Error, ErrorKind, Middleware};
    /// /// Lets nothing out.
    /// struct Closed;
    ///
    /// impl Middleware for Closed {
    ///     fn before<'a>(&'a self, _: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
    ///         Box::pin(async { Err(Error::new(ErrorKind::PermissionDenied, "not at night")) })
    ///     }
    /// }
    ///
    /// let client = Client::builder().api_key("my-key").middleware(Arc::new(Closed)).build()?;
    /// let error = client.models().list().await.unwrap_err();
    /// assert_eq!(error.message(), "not at night");
    /// # Ok::<(), Error>(())
    /// # }).unwrap();
    /// ```
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        let _ = attempt;
        Box::pin(async { Ok(()) })
    }

    /// Runs after an attempt: it got a whole response, the headers of a stream, or failed.
    ///
    /// Errors: the call fails with this error instead of the outcome and is not retried.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # use std::sync::Arc;
    /// # use std::sync::atomic::{AtomicU32, Ordering};
    /// # use gatewright::{Attempt, BoxFuture, Client, Error, Middleware, Outcome};
    /// /// Counts attempts that failed.
    /// #[derive(Default)]
    /// struct Failures(AtomicU32);
    ///
    /// impl Middleware for Failures {
    ///     fn after<'a>(&'a self, _: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
    ///         self.0.fetch_add(outcome.error().is_some().into(), Ordering::Relaxed);
    ///         Box::pin(async { Ok(()) })
    ///     }
    /// }
    ///
    /// let failures = Arc::new(Failures::default());
    /// # // No server listens there.
    /// let client = Client::builder().base_url("http://127.0.0.1:1").max_retries(1);
    /// let client = client.api_key("my-key").no_proxy().middleware(failures.clone()).build()?;
    /// assert!(client.models().list().await.is_err());
    /// assert_eq!(failures.0.load(Ordering::Relaxed), 2);
    /// # Ok::<(), Error>(())
    /// # }).unwrap();
    /// ```
    fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        let _ = (attempt, outcome);
        Box::pin(async { Ok(()) })
    }
}

/// One request of a call, before or after it is sent.
///
/// ```
/// use gatewright::{Attempt, BoxFuture, Error, Middleware};
/// use http::HeaderValue;
///
/// /// Says in a header which attempt it is.
/// struct Counted;
///
/// impl Middleware for Counted {
///     fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
///         let number = HeaderValue::from(attempt.number());
///         attempt.headers_mut().insert("x-attempt", number);
///         Box::pin(async { Ok(()) })
///     }
/// }
/// ```
pub struct Attempt {
    pub(crate) operation: &'static Operation,
    pub(crate) request: Outgoing,
    pub(crate) number: u32,
    pub(crate) max_retries: u32,
    pub(crate) remaining: Duration,
    pub(crate) previous: Option<ErrorKind>,
}

impl Attempt {
    /// The operation called.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// println!("{}", attempt.operation().qualified_name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// 1 for the first attempt of a call.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// if attempt.number() > 1 {
    ///     println!("once more");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Attempts that the call may make after the first.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// println!("attempt {} of {}", attempt.number(), attempt.max_retries() + 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_retries(&self) -> u32 {
        self.max_retries
    }

    /// Time left of the call's deadline when the attempt began.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// let milliseconds = attempt.remaining().as_millis().to_string();
    /// attempt.headers_mut().insert("x-deadline-ms", milliseconds.parse().expect("digits"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn remaining(&self) -> Duration {
        self.remaining
    }

    /// Why the previous attempt failed; none for the first.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// if let Some(kind) = attempt.previous() {
    ///     println!("again after {kind:?}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn previous(&self) -> Option<ErrorKind> {
        self.previous
    }

    /// HTTP method.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// println!("{} {}", attempt.method().as_str(), attempt.url());
    /// # Ok(())
    /// # }
    /// ```
    pub fn method(&self) -> Method {
        self.operation.method
    }

    /// The whole URL, including the query.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// assert!(attempt.url().starts_with("https://gateway.example/v1/"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn url(&self) -> &str {
        self.request.url.as_str()
    }

    /// The headers to be sent, including the key.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// let is_json = attempt.headers().get(http::header::CONTENT_TYPE).is_some();
    /// # Ok(())
    /// # }
    /// ```
    pub fn headers(&self) -> &HeaderMap {
        &self.request.headers
    }

    /// The headers, which may be changed before the attempt is sent. Only the transport may set those that frame the
    /// message: an attempt with one of them fails with InvalidRequest.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// use http::HeaderValue;
    ///
    /// attempt.headers_mut().insert("x-tenant", HeaderValue::from_static("harbour"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.request.headers
    }

    /// Replaces the headers: one pair per name, the values of a repeated header joined by `, `. An unchanged header
    /// keeps its bytes and its repetitions; a new value is as secret as the one it replaces.
    ///
    /// Errors (Configuration): a name or a value that cannot be sent.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// attempt.set_headers(&[("x-tenant".to_owned(), "harbour".to_owned())])?;
    /// assert_eq!(attempt.headers().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_headers(&mut self, values: &[(String, String)]) -> Result<(), Error> {
        let headers = &mut self.request.headers;
        let mut put = HeaderMap::with_capacity(values.len());
        for (name, value) in values {
            let unusable = || {
                let message = format!("middleware: {name} or its value cannot be sent as a header");
                Error::new(ErrorKind::Configuration, message)
            };
            let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
            if joined(headers, &header).as_ref() == Some(value) {
                put.extend(headers.get_all(&header).iter().map(|value| (header.clone(), value.clone())));
                continue;
            }
            let mut value = HeaderValue::from_str(value).map_err(|_| unusable())?;
            value.set_sensitive(headers.get_all(&header).iter().any(HeaderValue::is_sensitive));
            // Replaces a header of the same name in another case.
            put.insert(header, value);
        }
        *headers = put;
        Ok(())
    }

    /// The body as it is sent, if the operation has one: JSON, or a form with its files.
    ///
    /// ```
    /// # fn example(attempt: &mut gatewright::Attempt) -> Result<(), gatewright::Error> {
    /// println!("{} bytes", attempt.body().map_or(0, <[u8]>::len));
    /// # Ok(())
    /// # }
    /// ```
    pub fn body(&self) -> Option<&[u8]> {
        self.request.body.as_deref()
    }
}

/// The values of a header as one text; bytes that are not text become U+FFFD.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.map(String::from).reduce(|all, value| format!("{all}, {value}"))
}

/// Shows neither secret headers nor secret query parameters; shows only the length of the body.
impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempt")
            .field("operation", &self.operation.id)
            .field("number", &self.number)
            .field("url", &secret::redacted_url(&self.request.url))
            .field("headers", &secret::RedactedHeaders(self.headers()))
            .field("body_bytes", &self.body().map(<[u8]>::len))
            .finish_non_exhaustive()
    }
}

/// The outcome of an attempt. The response is not redacted; the error and the `Debug` output are.
///
/// ```
/// use gatewright::Outcome;
///
/// /// A line for a log.
/// fn log_line(outcome: &Outcome) -> String {
///     match outcome.error() {
///         Some(error) => format!("failed after {:?}: {error}", outcome.elapsed()),
///         None => format!("{:?} after {:?}", outcome.status(), outcome.elapsed()),
///     }
/// }
/// ```
pub struct Outcome {
    pub(crate) elapsed: Duration,
    pub(crate) answer: Result<SuccessResponse, Error>,
}

/// A successful response; its body may not have been read.
pub(crate) struct SuccessResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    /// None for a stream.
    pub(crate) body: Option<Bytes>,
}

impl Outcome {
    /// HTTP status, if there was a response.
    ///
    /// ```
    /// # fn example(outcome: &gatewright::Outcome) {
    /// if outcome.status() == Some(429) {
    ///     println!("too many requests");
    /// }
    /// # }
    /// ```
    pub fn status(&self) -> Option<u16> {
        match &self.answer {
            Ok(answered) => Some(answered.status),
            Err(error) => error.status(),
        }
    }

    /// Response headers, if there was a response; those of a failure are redacted, as in its error.
    ///
    /// ```
    /// # fn example(outcome: &gatewright::Outcome) {
    /// let left = outcome.headers().and_then(|headers| headers.get("x-ratelimit-remaining"));
    /// println!("{left:?}");
    /// # }
    /// ```
    pub fn headers(&self) -> Option<&HeaderMap> {
        match &self.answer {
            Ok(answered) => Some(&answered.headers),
            Err(error) => error.headers(),
        }
    }

    /// The request id assigned by the gateway.
    ///
    /// ```
    /// # fn example(outcome: &gatewright::Outcome) {
    /// println!("request {}", outcome.request_id().unwrap_or("without an id"));
    /// # }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.headers().and_then(request_id)
    }

    /// The response body, if it was read: whole on success, cut at
    /// [`MAX_ERROR_BODY_BYTES`](crate::MAX_ERROR_BODY_BYTES) on failure. None for a stream.
    ///
    /// ```
    /// # fn example(outcome: &gatewright::Outcome) {
    /// println!("{} bytes", outcome.body().map_or(0, |body| body.len()));
    /// # }
    /// ```
    pub fn body(&self) -> Option<&Bytes> {
        match &self.answer {
            Ok(answered) => answered.body.as_ref(),
            Err(error) => error.body(),
        }
    }

    /// The failure, if the attempt failed. Whether it is retried is not decided yet.
    ///
    /// ```
    /// # fn example(outcome: &gatewright::Outcome) {
    /// if let Some(error) = outcome.error() {
    ///     eprintln!("{error}");
    /// }
    /// # }
    /// ```
    pub fn error(&self) -> Option<&Error> {
        self.answer.as_ref().err()
    }

    /// Time from the start of the attempt to the end of the body; for a stream, to its headers. It includes the wait
    /// for the pool.
    ///
    /// ```
    /// # fn example(outcome: &gatewright::Outcome) {
    /// println!("{:?} after {:?}", outcome.status(), outcome.elapsed());
    /// # }
    /// ```
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

/// Shows no headers, and only the length of the body.
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
