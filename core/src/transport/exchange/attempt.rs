//! One attempt of a call: middleware, a place in the pool, the request, and as much of the response as is wanted.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::LOCATION;
use tokio::time::timeout;

use super::{Deadline, ResponseMode, Success, Transport, request};
use crate::transport::generated::options::RequestOptions;
use crate::transport::middleware::{Attempt, Outcome, SuccessResponse};
use crate::transport::outgoing::Outgoing;
use crate::transport::response::{Head, request_id};
use crate::transport::route::{Body, HttpError, Incoming};
use crate::transport::secret::Secrets;
use crate::transport::{retry, tls};
use crate::wire::error::{Error, ErrorKind};
use crate::wire::error_body::MAX_ERROR_BODY_BYTES;

/// Time limit for reading the body of an error. Whatever has arrived by then is used.
pub(crate) const ERROR_BODY_TIME: Duration = Duration::from_secs(5);
/// Time that middleware gets after the deadline to observe an attempt that was cut short.
const AFTER_TIME: Duration = Duration::from_secs(5);

/// An attempt that failed.
pub(super) struct Failed {
    pub(super) error: Error,
    /// Whether the attempt must not be retried, whatever the error.
    pub(super) is_final: bool,
}

impl Transport {
    /// Sends one request, wrapped in the middleware.
    pub(super) async fn wrapped(
        &self,
        mut attempt: Attempt,
        mode: ResponseMode,
        deadline: &Deadline<'_>,
        options: &RequestOptions,
    ) -> Result<(Head, Success), Failed> {
        let tried = |error| Failed { error, is_final: false };
        let middleware = &self.settings.middleware;
        let began = deadline.elapsed();
        let mut passed = 0;
        let mut result = Ok(());
        for one in middleware {
            result = match timeout(deadline.remaining(), one.before(&mut attempt)).await {
                Ok(result) => result.map_err(|error| Failed { error, is_final: true }),
                Err(_) => Err(tried(deadline.passed())),
            };
            if result.is_err() {
                break;
            }
            passed += 1;
        }
        let result = match result.and_then(|()| check_framing(&attempt)) {
            Ok(()) => self.send(&mut attempt.request, mode, deadline, options).await.map_err(tried),
            Err(failed) => Err(failed),
        };
        let elapsed = deadline.elapsed().saturating_sub(began);
        let (outcome, rest) = match result {
            Ok((head, body)) => {
                let whole = if let Success::Whole(body) = &body { Some(body.clone()) } else { None };
                let answered =
                    SuccessResponse { status: head.status, headers: head.headers.clone(), body: whole };
                (Outcome { elapsed, answer: Ok(answered) }, Ok((head, body)))
            }
            Err(Failed { error, is_final }) => (Outcome { elapsed, answer: Err(error) }, Err(is_final)),
        };
        let after = async {
            let mut noted = Ok(());
            for one in middleware[..passed].iter().rev() {
                let result = one.after(&attempt, &outcome).await;
                noted = noted.and(result);
            }
            noted
        };
        // Middleware that takes too long to observe a response does not change its outcome.
        if let Ok(Err(error)) = timeout(deadline.remaining().saturating_add(AFTER_TIME), after).await {
            return Err(Failed { error, is_final: true });
        }
        match (rest, outcome.answer) {
            (Ok(answer), _) => Ok(answer),
            (Err(is_final), Err(error)) => Err(Failed { error, is_final }),
            (Err(_), Ok(_)) => unreachable!("an attempt that failed has an error"),
        }
    }

    pub(super) async fn send(
        &self,
        request: &mut Outgoing,
        mode: ResponseMode,
        deadline: &Deadline<'_>,
        options: &RequestOptions,
    ) -> Result<(Head, Success), Error> {
        // The response may quote what was sent, and middleware may have changed the headers by now.
        let secrets = Secrets::of(request, &self.settings.known_keys);
        let sent = self.answer(request, &secrets, mode, deadline, options).await;
        sent.map_err(|error| error.shown(&secrets.redactor()))
    }

    /// Errors: as they occur, not redacted.
    async fn answer(
        &self,
        request: &mut Outgoing,
        secrets: &Secrets,
        mode: ResponseMode,
        deadline: &Deadline<'_>,
        options: &RequestOptions,
    ) -> Result<(Head, Success), Error> {
        let lease = self.pool.lease(deadline.remaining()).await?;
        let first_byte = options.first_byte_timeout.or(self.settings.settled.first_byte_timeout);
        let remaining = deadline.remaining();
        let limit = first_byte.map_or(remaining, |first_byte| first_byte.min(remaining));
        let response = match timeout(limit, self.route.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.send_error(error)),
            Err(_) if limit < remaining => {
                let message = format!("the response did not start within {limit:?} (first_byte_timeout)");
                return Err(Error::new(ErrorKind::Timeout, message));
            }
            Err(_) => return Err(deadline.passed()),
        };
        let Incoming { status, headers, body } = response;
        let head = Head {
            status: status.as_u16(),
            headers,
            attempts: 0,
            elapsed: Duration::ZERO,
            secrets: secrets.clone(),
        };
        if !status.is_success() {
            let body = read_some(body, deadline.remaining().min(ERROR_BODY_TIME)).await;
            let now = deadline.clock.system_time();
            let retry_after = retry::retry_after(&head.headers, now);
            return Err(status_error(head, body).with_retry_after(retry_after));
        }
        if mode == ResponseMode::Stream {
            return Ok((head, Success::Open(body, lease)));
        }
        let idle = self.silence(options).limit;
        let reading = read_whole(body, idle, self.settings.settled.max_body_bytes);
        let read = timeout(deadline.remaining(), reading).await.unwrap_or_else(|_| Err(deadline.passed()));
        match read {
            Ok(body) => Ok((head, Success::Whole(body))),
            Err(error) => Err(error
                .with_status(head.status)
                .with_request_id(head.request_id())
                .with_headers(head.headers)),
        }
    }

    fn send_error(&self, error: HttpError) -> Error {
        let kind = if error.is_timeout() {
            ErrorKind::Timeout
        } else if error.is_of_request() {
            ErrorKind::InvalidRequest
        } else {
            ErrorKind::Connection
        };
        let what = match kind {
            ErrorKind::Timeout => "timed out connecting to",
            ErrorKind::InvalidRequest => "cannot send the request to",
            _ if error.is_connect() => "cannot connect to",
            _ => "the connection broke before a response arrived from",
        };
        let through = self.settings.connecting.through();
        let message = format!("{what} {}{through}", self.base.as_str());
        Error::new(kind, message).quoting(cause_and_way_out(&error)).caused_by(error)
    }
}

fn check_framing(attempt: &Attempt) -> Result<(), Failed> {
    match attempt.headers().keys().find(|name| request::is_framing(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!("middleware set the header {name:?}, which only the transport may set");
            Err(Failed { error: Error::new(ErrorKind::InvalidRequest, message), is_final: true })
        }
    }
}

/// Reads a body to its end. Errors: it exceeds the limit (Decode), breaks off (Connection) or falls silent (Timeout).
async fn read_whole(mut stream: Body, idle: Duration, limit: usize) -> Result<Bytes, Error> {
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    loop {
        let packet = match timeout(idle, stream.next()).await {
            Err(_) => {
                let message = format!("no data of the response arrived for {idle:?}");
                return Err(Error::new(ErrorKind::Timeout, message));
            }
            Ok(None) => break,
            Ok(Some(packet)) => packet.map_err(body_error)?,
        };
        // A compressed body may yield packets endlessly without ever waiting.
        tokio::task::consume_budget().await;
        if first.len() + whole.len() + packet.len() > limit {
            return Err(Error::new(ErrorKind::Decode, format!("the response is larger than {limit} bytes")));
        }
        // Most responses arrive in one packet, which is passed on without a copy.
        if first.is_empty() && whole.is_empty() {
            first = packet;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&packet);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// Reads an error's body until its end, its size limit or the time limit, whichever comes first.
pub(crate) async fn read_some(mut stream: Body, within: Duration) -> Bytes {
    let mut body = BytesMut::new();
    let reading = async {
        while let Some(Ok(packet)) = stream.next().await {
            tokio::task::consume_budget().await;
            let room = MAX_ERROR_BODY_BYTES - body.len();
            body.extend_from_slice(&packet[..packet.len().min(room)]);
            if body.len() == MAX_ERROR_BODY_BYTES {
                break;
            }
        }
    };
    // Too late or cut off: use what has arrived.
    let _ = timeout(within, reading).await;
    body.freeze()
}

/// The error for a body that was cut off or could not be decompressed.
pub(crate) fn body_error(error: HttpError) -> Error {
    Error::new(ErrorKind::Connection, "the connection broke during the response")
        .quoting(root_cause(&error))
        .caused_by(error)
}

/// Why a request could not be sent and, if known, what to do about it.
pub(crate) fn cause_and_way_out(error: &(dyn std::error::Error + 'static)) -> String {
    let cause = root_cause(error);
    tls::way_out(error).map_or(cause.clone(), |way_out| format!("{cause}: {way_out}"))
}

/// The innermost message, which a person can act on.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The error for an unsuccessful response.
pub(crate) fn status_error(head: Head, body: Bytes) -> Error {
    let status = head.status;
    let fallback = || {
        let location = head.headers.get(LOCATION).and_then(|value| value.to_str().ok());
        match location {
            Some(location) if (300..400).contains(&status) => {
                format!("the gateway redirects to {location}, which is not followed: check the base URL")
            }
            _ => http::StatusCode::from_u16(status)
                .ok()
                .and_then(|status| status.canonical_reason())
                .map_or_else(|| format!("status {status}"), str::to_owned),
        }
    };
    Error::from_body(ErrorKind::from_status(status), body, fallback)
        .with_status(status)
        .with_request_id(request_id(&head.headers))
        .with_headers(head.headers)
}
