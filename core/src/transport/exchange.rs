//! Sends requests: headers, deadlines, retries, limits. Knows operations but not their types; both the raw front end
//! and the generated client use it. This file handles the attempts of a call; exchange/attempt.rs handles one attempt.

mod attempt;
mod body;
mod guarded_body;
mod pool;
mod request;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};
use tracing::Instrument as _;

use crate::api::operation::Operation;
use crate::transport::base_url::BaseUrl;
use crate::transport::clock::Clock;
use crate::transport::connecting::Connecting;
use crate::transport::generated::options::{DEFAULT_IDLE_TIMEOUT, RequestOptions, Settled};
use crate::transport::middleware::{Attempt, Middleware};
use crate::transport::options::Call;
use crate::transport::outgoing::Outgoing;
use crate::transport::response::{Head, RawResponse};
use crate::transport::retry;
use crate::transport::route::{Body, Route};
use crate::transport::secret::{self, ApiKeyProvider, KeySource, KnownKeys, Secrets};
use crate::transport::trace::CallSpan;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::panics::may_panic_on_purpose;

use self::attempt::Failed;
pub(crate) use self::guarded_body::GuardedBody;
use self::pool::{Lease, Pool};

#[cfg(any(test, fuzzing))]
pub(crate) use self::attempt::status_error;
pub(crate) use self::attempt::{ERROR_BODY_TIME, body_error, cause_and_way_out, read_some, root_cause};
pub(crate) use self::request::{asks_for_text, check_default_headers};

const RETRY_COUNT: HeaderName = HeaderName::from_static("x-gatewright-retry-count");

/// The settings of a client, fixed when it is built.
pub(crate) struct Settings {
    pub(crate) settled: Settled,
    pub(crate) validate: bool,
    pub(crate) user_agent: String,
    pub(crate) connecting: Connecting,
    /// The client's own keys known so far.
    pub(crate) known_keys: Arc<KnownKeys>,
    pub(crate) middleware: Vec<Arc<dyn Middleware>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) telemetry: bool,
}

/// One gateway, one key, one pool of connections.
pub(crate) struct Transport {
    route: Route,
    base: BaseUrl,
    key: KeySource,
    /// The header with the key, if the key is fixed.
    authorization: Option<HeaderValue>,
    user_agent: HeaderValue,
    pool: Pool,
    settings: Settings,
}

/// Whether one document or a stream is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseMode {
    Document,
    Stream,
}

/// A successful response.
struct Answer {
    head: Head,
    body: AnswerBody,
}

enum AnswerBody {
    Whole(Bytes),
    /// The body has not been read.
    Open(GuardedBody),
}

/// A response whose body is still open: the source of a stream.
pub(crate) struct Opened {
    pub(crate) operation: &'static Operation,
    pub(crate) head: Head,
    pub(crate) body: GuardedBody,
    pub(crate) bounds: Bounds,
}

/// How long the connection may be silent, and the option that sets this time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdleTimeout {
    pub(crate) limit: Duration,
    pub(crate) option: &'static str,
}

/// How long a stream may be silent, and how much it may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Maximum time without a byte.
    pub(crate) silence: IdleTimeout,
    /// Maximum time without an event of the response: keep-alive comments, events without data and pings do not count.
    pub(crate) event_idle: Duration,
    /// Maximum size of a body that turns out to be one JSON document, and of the document that a stream amounts to.
    pub(crate) max_body_bytes: usize,
}

/// A successful attempt: a document with its body, or a stream with its place in the pool.
enum Success {
    Whole(Bytes),
    Open(Body, Lease),
}

/// How long one call may take, and when it began.
struct Deadline<'a> {
    clock: &'a dyn Clock,
    started: Instant,
    timeout: Duration,
}

impl Transport {
    pub(crate) fn new(base: BaseUrl, key: KeySource, settings: Settings) -> Result<Self, Error> {
        let user_agent = HeaderValue::try_from(&settings.user_agent).map_err(|error| {
            Error::new(ErrorKind::Configuration, "the user agent cannot be sent as a header")
                .with_source(error)
        })?;
        let route = Route::new(&settings.connecting, base.url())?;
        let pool = Pool::new(settings.settled.max_connections, settings.settled.pool_timeout)?;
        let authorization = match &key {
            KeySource::Fixed(key) => Some(key.authorization()),
            KeySource::Provider(_) => None,
        };
        Ok(Self { route, base, key, authorization, user_agent, pool, settings })
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// How connections are made, for requests to other hosts.
    pub(crate) fn connecting(&self) -> &Connecting {
        &self.settings.connecting
    }

    /// The client's user agent, for requests to other hosts.
    pub(crate) fn user_agent(&self) -> &HeaderValue {
        &self.user_agent
    }

    /// Maximum time without a byte of a response, for requests to other hosts.
    pub(crate) fn idle_timeout(&self) -> Duration {
        self.settings.settled.idle_timeout.unwrap_or(DEFAULT_IDLE_TIMEOUT)
    }

    /// How long the response to a call with these options may be silent: the `idle_timeout` of the call or the client,
    /// otherwise the default or the call's timeout, whichever is shorter.
    fn silence(&self, options: &RequestOptions) -> IdleTimeout {
        let timeout = self.timeout(options);
        match options.idle_timeout.or(self.settings.settled.idle_timeout) {
            Some(limit) => IdleTimeout { limit, option: "idle_timeout" },
            None if timeout < DEFAULT_IDLE_TIMEOUT => IdleTimeout { limit: timeout, option: "timeout" },
            None => IdleTimeout { limit: DEFAULT_IDLE_TIMEOUT, option: "idle_timeout" },
        }
    }

    fn timeout(&self, options: &RequestOptions) -> Duration {
        options.timeout.unwrap_or(self.settings.settled.timeout)
    }

    /// The client's keys, which errors about requests to other hosts must not quote either.
    pub(crate) fn known_keys(&self) -> &Arc<KnownKeys> {
        &self.settings.known_keys
    }

    /// Redacts an error that occurred outside of the attempts, such as while building the request.
    pub(crate) fn shown(&self, error: Error) -> Error {
        error.shown(&Secrets::known(self.known_keys()).redactor())
    }

    /// Time and random numbers, for code that waits alongside this transport.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.settings.clock
    }

    /// Sends a raw call and reads the whole response.
    pub(crate) async fn call(&self, call: Call, options: &RequestOptions) -> Result<RawResponse, Error> {
        may_panic_on_purpose!(Call);
        Box::pin(self.whole(call, options)).await.map_err(|error| self.shown(error))
    }

    async fn whole(&self, call: Call, options: &RequestOptions) -> Result<RawResponse, Error> {
        let operation = call.operation;
        let request = self
            .build(call, ResponseMode::Document, options)
            .map_err(|error| error.with_operation(operation))?;
        let answer = self.exchange(request, operation, ResponseMode::Document, options).await?;
        let AnswerBody::Whole(body) = answer.body else {
            unreachable!("a document is read whole by exchange");
        };
        let response = RawResponse::new(answer.head, body);
        self.accept(&response, operation, options).map(|()| response)
    }

    /// Rejects a body that cannot be the operation's response and, with `validate`, a response that lacks required
    /// members.
    fn accept(
        &self,
        response: &RawResponse,
        operation: &Operation,
        options: &RequestOptions,
    ) -> Result<(), Error> {
        response.check(operation)?;
        if options.validate.unwrap_or(self.settings.validate) {
            response.check_presence(operation)?;
        }
        Ok(())
    }

    /// How long a stream may be silent, and how much it may hold.
    fn stream_bounds(&self, options: &RequestOptions) -> Bounds {
        Bounds {
            silence: self.silence(options),
            event_idle: options.event_timeout.unwrap_or(self.settings.settled.event_timeout),
            max_body_bytes: self.settings.settled.max_body_bytes,
        }
    }

    /// Sends a raw call and leaves the response open, to be read as a stream.
    pub(crate) async fn open(&self, call: Call, options: &RequestOptions) -> Result<Opened, Error> {
        may_panic_on_purpose!(Call);
        Box::pin(self.opened(call, options)).await.map_err(|error| self.shown(error))
    }

    async fn opened(&self, call: Call, options: &RequestOptions) -> Result<Opened, Error> {
        let operation = call.operation;
        let request = self
            .build(call, ResponseMode::Stream, options)
            .map_err(|error| error.with_operation(operation))?;
        let answer = self.exchange(request, operation, ResponseMode::Stream, options).await?;
        let AnswerBody::Open(body) = answer.body else {
            unreachable!("a stream is left open by exchange");
        };
        Ok(Opened { operation, head: answer.head, body, bounds: self.stream_bounds(options) })
    }

    /// Sends a prepared request until it succeeds, fails permanently, or the deadline passes. A stream's body is left
    /// unread: nothing is retried once it has started.
    async fn exchange(
        &self,
        request: Outgoing,
        operation: &'static Operation,
        mode: ResponseMode,
        options: &RequestOptions,
    ) -> Result<Answer, Error> {
        let span =
            CallSpan::begin(operation, &request, mode == ResponseMode::Stream, self.settings.telemetry);
        let answer = self.attempts(request, operation, mode, options).instrument(span.span()).await;
        // Errors of an attempt are already redacted; this covers errors outside of the attempts, such as those of a key
        // provider.
        let answer = answer.map_err(|error| self.shown(error));
        let (head, success) = answer.inspect_err(|error| span.failed(error))?;
        let body = match success {
            Success::Whole(body) => {
                span.answered(&head, &body);
                AnswerBody::Whole(body)
            }
            Success::Open(body, lease) => AnswerBody::Open(GuardedBody::new(body, lease, span.opened(&head))),
        };
        Ok(Answer { head, body })
    }

    async fn attempts(
        &self,
        mut request: Outgoing,
        operation: &'static Operation,
        mode: ResponseMode,
        options: &RequestOptions,
    ) -> Result<(Head, Success), Error> {
        let clock = self.clock();
        let timeout = self.timeout(options);
        let deadline = Deadline { clock, started: clock.now(), timeout };
        let max_retries = options.max_retries.unwrap_or(self.settings.settled.max_retries);
        let mut provider = match &self.key {
            KeySource::Provider(provider) if !request.headers.contains_key(AUTHORIZATION) => {
                set_key(&mut request, &**provider, false, &deadline, &self.settings.known_keys)
                    .await
                    .map_err(|error| error.with_operation(operation))?;
                Some(&**provider)
            }
            _ => None,
        };
        let (mut number, mut retries, mut previous) = (0, 0, None);
        loop {
            number += 1;
            request.headers.insert(RETRY_COUNT, HeaderValue::from(number - 1));
            let answer = if self.settings.middleware.is_empty() {
                let sent = self.send(&mut request, mode, &deadline, options).await;
                sent.map_err(|error| Failed { error, is_final: false })
            } else {
                // Middleware changes its own attempt only.
                let (request, remaining) = (request.clone(), deadline.remaining());
                let attempt = Attempt { operation, request, number, max_retries, remaining, previous };
                self.wrapped(attempt, mode, &deadline, options).await
            };
            let Failed { error, is_final } = match answer {
                Ok((mut head, body)) => {
                    head.attempts = number;
                    head.elapsed = deadline.elapsed();
                    return Ok((head, body));
                }
                Err(failed) => failed,
            };
            let described = |error: Error| {
                error.with_operation(operation).with_attempts(number).with_elapsed(deadline.elapsed())
            };
            if is_final {
                return Err(described(error));
            }
            previous = Some(error.kind());
            if error.status() == Some(http::StatusCode::UNAUTHORIZED.as_u16())
                && let Some(provider) = provider.take()
            {
                // An expired key is not a failure of the gateway: this attempt does not count as a retry.
                let known = &self.settings.known_keys;
                set_key(&mut request, provider, true, &deadline, known).await.map_err(described)?;
                continue;
            }
            let failure = retry::Failure {
                kind: error.kind(),
                code: error.code(),
                error_type: error.error_type(),
                headers: error.headers(),
            };
            let context = retry::RetryContext {
                retries,
                max_retries,
                remaining: deadline.remaining(),
                now: clock.system_time(),
                random: clock.random(),
            };
            let Some(pause) = retry::pause(failure, context) else { return Err(described(error)) };
            clock.sleep(pause).await;
            retries += 1;
        }
    }
}

/// Asks a provider for the key and sets it on the request.
async fn set_key(
    request: &mut Outgoing,
    provider: &dyn ApiKeyProvider,
    refresh: bool,
    deadline: &Deadline<'_>,
    known: &KnownKeys,
) -> Result<(), Error> {
    let fetching = secret::provided(provider, refresh);
    let Ok(key) = tokio::time::timeout(deadline.remaining(), fetching).await else {
        let message = format!(
            "the API key provider returned no key within {:?}, the call's deadline",
            deadline.timeout
        );
        return Err(Error::new(ErrorKind::Timeout, message));
    };
    let key = key?;
    known.remember(&key);
    request.headers.insert(AUTHORIZATION, key.authorization());
    Ok(())
}

impl Deadline<'_> {
    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.started)
    }

    fn remaining(&self) -> Duration {
        self.timeout.saturating_sub(self.elapsed())
    }

    fn passed(&self) -> Error {
        let message = format!("no response within {:?}, the deadline for all attempts", self.timeout);
        Error::new(ErrorKind::Timeout, message)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("base_url", &self.base.as_str())
            .field("key", &self.key)
            .field("timeout", &self.settings.settled.timeout)
            .field("max_retries", &self.settings.settled.max_retries)
            .field("connecting", &self.settings.connecting)
            .finish_non_exhaustive()
    }
}
