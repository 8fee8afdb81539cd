//! Sends requests: headers, deadlines, retries, bounds. Knows operations but no types of theirs; both the raw
//! front and the generated client go through it.

mod hooks;

use std::fmt;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::base_url::BaseUrl;
use crate::error::{Error, ErrorKind};
use crate::limits;
use crate::operation::{Method, Operation, StreamMode};
use crate::options::{Call, RequestOptions};
use crate::response::{Head, RawResponse, request_id};
use crate::retry;
use crate::secret::ApiKey;
use crate::stream::{Bounds, RawStream};

pub(crate) use self::hooks::{CallContext, TypedCall};

/// Of the body of an error so much is kept, in bytes.
pub const MAX_ERROR_BODY_BYTES: usize = 1024 * 1024;
/// The body of an error is waited for this long: what has arrived by then will do.
const ERROR_BODY_TIME: Duration = Duration::from_secs(5);

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const RETRY_COUNT: HeaderName = HeaderName::from_static("x-gatewright-retry-count");
/// Added by the generated client; the version is part of the path (section 9).
const API_VERSION: HeaderName = HeaderName::from_static("api-version");

/// Headers that say how the message is framed: not for callers to set.
const FRAMING_HEADERS: &[&str] =
    &["connection", "content-length", "host", "te", "transfer-encoding", "upgrade"];

/// What a client is told once, when it is built.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) event_timeout: Duration,
    pub(crate) max_retries: u32,
    pub(crate) max_body_bytes: usize,
    pub(crate) validate: bool,
    pub(crate) user_agent: String,
}

/// One gateway, one key, one pool of connections.
pub(crate) struct Transport {
    http: reqwest::Client,
    base: BaseUrl,
    key: ApiKey,
    user_agent: HeaderValue,
    settings: Settings,
}

/// Whether one document or a stream is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Document,
    Stream,
}

/// A successful answer.
pub(crate) struct Answer {
    pub(crate) head: Head,
    pub(crate) body: AnswerBody,
}

pub(crate) enum AnswerBody {
    Whole(Bytes),
    /// Its body has not been read.
    Open(reqwest::Response),
}

/// An attempt that failed, with what the retry policy looks at.
struct Failed {
    error: Error,
    headers: HeaderMap,
}

impl Transport {
    pub(crate) fn new(base: BaseUrl, key: ApiKey, settings: Settings) -> Result<Self, Error> {
        let user_agent = HeaderValue::try_from(&settings.user_agent).map_err(|error| {
            Error::new(ErrorKind::Configuration, "the user agent cannot be sent as a header")
                .with_source(error)
        })?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(crate::tls::client_config(base.is_https())?)
            .connect_timeout(settings.connect_timeout)
            .tcp_nodelay(true)
            // An API does not redirect; following would carry the key to wherever a proxy points.
            .redirect(reqwest::redirect::Policy::none())
            // The only retries are ours: they count, pause and are bounded by the deadline.
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Configuration, "the HTTP client cannot be set up").with_source(error)
            })?;
        Ok(Self { http, base, key, user_agent, settings })
    }

    pub(crate) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    pub(crate) fn base(&self) -> &BaseUrl {
        &self.base
    }

    /// Sends a raw call and reads its answer whole.
    pub(crate) async fn call(&self, call: Call) -> Result<RawResponse, Error> {
        let (operation, options) = (call.operation, call.options.clone());
        let request = self.build(call, Form::Document).map_err(|error| error.with_operation(operation))?;
        let answer = self.exchange(request, operation, Form::Document, &options).await?;
        let AnswerBody::Whole(body) = answer.body else {
            unreachable!("a document is read whole by exchange");
        };
        let response = RawResponse::new(answer.head, body);
        // Every operation answers with an object or an array. The first byte tells a page or a text from one
        // without a parse, which is the caller's.
        match response.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => Ok(response),
            _ => Err(response.undecodable(operation, "it is not a JSON document")),
        }
    }

    /// Sends a raw call and gives its answer as a stream.
    pub(crate) async fn open(&self, call: Call) -> Result<RawStream, Error> {
        let (operation, options) = (call.operation, call.options.clone());
        let request = self.build(call, Form::Stream).map_err(|error| error.with_operation(operation))?;
        let answer = self.exchange(request, operation, Form::Stream, &options).await?;
        let AnswerBody::Open(response) = answer.body else {
            unreachable!("a stream is left open by exchange");
        };
        Ok(RawStream::new(operation, answer.head, Box::pin(response.bytes_stream()), self.stream_bounds()))
    }

    pub(crate) fn stream_bounds(&self) -> Bounds {
        Bounds {
            idle: self.settings.idle_timeout,
            event_idle: self.settings.event_timeout,
            max_body_bytes: self.settings.max_body_bytes,
        }
    }

    fn build(&self, call: Call, form: Form) -> Result<reqwest::Request, Error> {
        let Call { operation, path, query, body, options } = call;
        let mut url = self.base.join(operation, &path)?;
        for (name, value) in &query {
            if !operation.query_parameters.contains(&name.as_str()) {
                let message = format!("unknown query parameter {name:?}; extra_query takes any");
                return Err(Error::new(ErrorKind::InvalidRequest, message));
            }
            url.query_pairs_mut().append_pair(name, value);
        }
        let mut request = reqwest::Request::new(operation.method.into(), url);
        match (operation.has_body, body) {
            (true, Some(body)) => *request.body_mut() = Some(body.into()),
            (false, None) => {}
            (true, None) => return Err(Error::new(ErrorKind::InvalidRequest, "the operation needs a body")),
            (false, Some(_)) => {
                return Err(Error::new(ErrorKind::InvalidRequest, "the operation takes no body"));
            }
        }
        self.prepare(&mut request, operation, form, &options)?;
        Ok(request)
    }

    /// Makes a request ready to be sent: checks that its URL is the operation's and its body within the limits,
    /// and sets everything that all requests carry.
    pub(crate) fn prepare(
        &self,
        request: &mut reqwest::Request,
        operation: &Operation,
        form: Form,
        options: &RequestOptions,
    ) -> Result<(), Error> {
        self.base.check(operation, request.url())?;
        let invalid = |message: String| Error::new(ErrorKind::InvalidRequest, message);
        match (form, operation.stream) {
            (Form::Stream, StreamMode::Never) => {
                return Err(invalid("the operation does not stream".to_owned()));
            }
            (Form::Document, StreamMode::Always) => {
                return Err(invalid("the operation answers only with a stream: open one".to_owned()));
            }
            (form, StreamMode::Parameter(name)) => {
                if let Some(body) = request.body().and_then(reqwest::Body::as_bytes) {
                    let switched = with_stream_switch(body, name, form == Form::Stream)?;
                    if let Some(body) = switched {
                        *request.body_mut() = Some(body.into());
                    }
                }
            }
            _ => {}
        }
        if self.settings.validate {
            check_limits(request, operation)?;
        }
        let present: Vec<String> = request.url().query_pairs().map(|(name, _)| name.into_owned()).collect();
        for (name, value) in operation.fixed_query {
            if !present.iter().any(|present| present == name) {
                request.url_mut().query_pairs_mut().append_pair(name, value);
            }
        }
        for (name, value) in &options.extra_query {
            request.url_mut().query_pairs_mut().append_pair(name, value);
        }
        let has_body = request.body().is_some();
        let headers = request.headers_mut();
        headers.remove(API_VERSION);
        headers.insert(AUTHORIZATION, self.key.authorization());
        headers.insert(USER_AGENT, self.user_agent.clone());
        let accept = match form {
            Form::Document => "application/json",
            Form::Stream => "text/event-stream, application/json",
        };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if form == Form::Stream {
            // Something on the way that compresses tends to hold events back until its buffer is full.
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if operation.method == Method::Post {
            let key = uuid::Uuid::new_v4().to_string();
            headers
                .insert(IDEMPOTENCY_KEY, HeaderValue::try_from(key).expect("hexadecimal digits and dashes"));
        }
        set_extra_headers(headers, &options.extra_headers)
    }

    /// Sends a prepared request until it succeeds, fails for good, or the deadline passes. A stream's body is left
    /// unread: once it has begun nothing is tried again.
    pub(crate) async fn exchange(
        &self,
        request: reqwest::Request,
        operation: &Operation,
        form: Form,
        options: &RequestOptions,
    ) -> Result<Answer, Error> {
        let started = Instant::now();
        let timeout = options.timeout.unwrap_or(self.settings.timeout);
        let deadline = started + timeout;
        let max_retries = options.max_retries.unwrap_or(self.settings.max_retries);
        let mut retries = 0;
        loop {
            let mut attempt = request.try_clone().expect("the body is bytes, never a stream");
            attempt.headers_mut().insert(RETRY_COUNT, HeaderValue::from(retries));
            let Failed { error, headers } = match self.attempt(attempt, form, deadline, timeout).await {
                Ok((mut head, body)) => {
                    head.attempts = retries + 1;
                    head.elapsed = started.elapsed();
                    return Ok(Answer { head, body });
                }
                Err(failed) => failed,
            };
            let failure = retry::Failure {
                kind: error.kind(),
                code: error.code(),
                error_type: error.error_type(),
                headers: Some(&headers),
            };
            let judged = retry::Attempt {
                retries,
                max_retries,
                remaining: deadline.saturating_duration_since(Instant::now()),
                now: SystemTime::now(),
                random: rand::random(),
            };
            let Some(pause) = retry::pause(failure, judged) else {
                return Err(error.with_operation(operation).with_attempts(retries + 1));
            };
            tokio::time::sleep(pause).await;
            retries += 1;
        }
    }

    async fn attempt(
        &self,
        request: reqwest::Request,
        form: Form,
        deadline: Instant,
        timeout: Duration,
    ) -> Result<(Head, AnswerBody), Failed> {
        let too_late = || {
            let message = format!("no answer within {timeout:?}, the deadline of all attempts together");
            Failed::without_answer(Error::new(ErrorKind::Timeout, message))
        };
        let response = match timeout_at(deadline, self.http.execute(request)).await {
            Err(_) => return Err(too_late()),
            Ok(Err(error)) => return Err(Failed::without_answer(self.send_error(error))),
            Ok(Ok(response)) => response,
        };
        let head = Head {
            status: response.status().as_u16(),
            headers: response.headers().clone(),
            attempts: 0,
            elapsed: Duration::ZERO,
        };
        if !response.status().is_success() {
            let until = deadline.min(Instant::now() + ERROR_BODY_TIME);
            let body = read_some(response, until).await;
            return Err(Failed { error: status_error(&head, body), headers: head.headers });
        }
        if form == Form::Stream {
            return Ok((head, AnswerBody::Open(response)));
        }
        match timeout_at(deadline, self.read_whole(response)).await {
            Ok(Ok(body)) => Ok((head, AnswerBody::Whole(body))),
            Ok(Err(error)) => {
                let error = error.with_status(head.status).with_request_id(head.request_id());
                Err(Failed { error, headers: head.headers })
            }
            Err(_) => Err(too_late()),
        }
    }

    /// Reads a body to its end. Errors: it is longer than the bound (Decode), breaks off (Connection) or falls
    /// silent (Timeout).
    async fn read_whole(&self, response: reqwest::Response) -> Result<Bytes, Error> {
        let limit = self.settings.max_body_bytes;
        let mut stream = response.bytes_stream();
        let mut first = Bytes::new();
        let mut whole = BytesMut::new();
        loop {
            let idle = self.settings.idle_timeout;
            let packet = match tokio::time::timeout(idle, stream.next()).await {
                Err(_) => {
                    let message = format!("not a byte of the answer arrived for {idle:?}");
                    return Err(Error::new(ErrorKind::Timeout, message));
                }
                Ok(None) => break,
                Ok(Some(packet)) => packet.map_err(body_error)?,
            };
            if first.len() + whole.len() + packet.len() > limit {
                return Err(Error::new(
                    ErrorKind::Decode,
                    format!("the answer is longer than {limit} bytes"),
                ));
            }
            // Most answers come in one packet, which is passed on without a copy.
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

    fn send_error(&self, error: reqwest::Error) -> Error {
        let kind = if error.is_timeout() {
            ErrorKind::Timeout
        } else if error.is_builder() {
            ErrorKind::InvalidRequest
        } else {
            ErrorKind::Connection
        };
        let what = match kind {
            ErrorKind::Timeout => "no connection in time to",
            ErrorKind::InvalidRequest => "a request that cannot be sent to",
            _ if error.is_connect() => "cannot connect to",
            _ => "the connection broke before an answer had come from",
        };
        let message = format!("{what} {}: {}", self.base.as_str(), root_cause(&error));
        Error::new(kind, message).with_source(error.without_url())
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("base_url", &self.base.as_str())
            .field("key", &self.key)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Failed {
    fn without_answer(error: Error) -> Self {
        Self { error, headers: HeaderMap::new() }
    }
}

/// The error for a body that broke off or could not be decompressed.
pub(crate) fn body_error(error: reqwest::Error) -> Error {
    let message = format!("the connection broke while the answer was arriving: {}", root_cause(&error));
    Error::new(ErrorKind::Connection, message).with_source(error.without_url())
}

/// The innermost message: what a person can act on.
pub(crate) fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The error that an unsuccessful answer means.
fn status_error(head: &Head, body: Bytes) -> Error {
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
        .with_retry_after(retry::retry_after(&head.headers, SystemTime::now()))
}

/// Reads what comes of an error's body until its end, its bound or a point in time, whichever is first.
async fn read_some(response: reqwest::Response, until: Instant) -> Bytes {
    let mut stream = response.bytes_stream();
    let mut body = BytesMut::new();
    while let Ok(Some(Ok(packet))) = timeout_at(until, stream.next()).await {
        let room = MAX_ERROR_BODY_BYTES - body.len();
        body.extend_from_slice(&packet[..packet.len().min(room)]);
        if body.len() == MAX_ERROR_BODY_BYTES {
            break;
        }
    }
    body.freeze()
}

fn set_extra_headers(headers: &mut HeaderMap, extra: &[(String, String)]) -> Result<(), Error> {
    for (name, value) in extra {
        // The value may be a secret: only the name is told.
        let refuse =
            |why: &str| Error::new(ErrorKind::InvalidRequest, format!("extra header {name:?} {why}"));
        let parsed = HeaderName::try_from(name).map_err(|_| refuse("has no valid name"))?;
        if FRAMING_HEADERS.contains(&parsed.as_str()) {
            return Err(refuse("is the transport's to set"));
        }
        let value = HeaderValue::try_from(value).map_err(|_| refuse("has a value that cannot be sent"))?;
        headers.insert(parsed, value);
    }
    Ok(())
}

/// The body with its streaming member set as wanted; none where it is so already. A body that is no JSON object is
/// refused.
fn with_stream_switch(body: &[u8], member: &str, wanted: bool) -> Result<Option<Vec<u8>>, Error> {
    struct Switch<'a>(&'a str, Option<serde_json::Value>);

    impl<'de> serde::de::Visitor<'de> for Switch<'_> {
        type Value = Option<serde_json::Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(mut self, mut map: A) -> Result<Self::Value, A::Error> {
            while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                if name == self.0 {
                    self.1 = Some(map.next_value()?);
                } else {
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
            }
            Ok(self.1)
        }
    }

    let refuse = |error: serde_json::Error| {
        let message = format!("the body is not a JSON object: {error}");
        Error::new(ErrorKind::InvalidRequest, message).with_source(error)
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let present =
        serde::de::Deserializer::deserialize_map(&mut reader, Switch(member, None)).map_err(refuse)?;
    reader.end().map_err(refuse)?;
    if present.as_ref().and_then(serde_json::Value::as_bool) == Some(wanted) || (present.is_none() && !wanted)
    {
        return Ok(None);
    }
    if present.is_none() {
        // Inserted as text, so that numbers and the order of members stay as they were written.
        let start = 1 + memchr::memchr(b'{', body).expect("it was read as an object");
        let is_empty = body[start..].trim_ascii_start().starts_with(b"}");
        let separator = if is_empty { "" } else { "," };
        let switch = format!("{}:{wanted}{separator}", serde_json::Value::from(member));
        return Ok(Some([&body[..start], switch.as_bytes(), &body[start..]].concat()));
    }
    let mut object =
        serde_json::Map::deserialize(&mut serde_json::Deserializer::from_slice(body)).map_err(refuse)?;
    object.insert(member.to_owned(), wanted.into());
    serde_json::to_vec(&object).map(Some).map_err(refuse)
}

fn check_limits(request: &reqwest::Request, operation: &Operation) -> Result<(), Error> {
    let Some(body) = request.body().and_then(reqwest::Body::as_bytes) else { return Ok(()) };
    let value: serde_json::Value = serde_json::from_slice(body).map_err(|error| {
        Error::new(ErrorKind::InvalidRequest, format!("the body is not JSON: {error}")).with_source(error)
    })?;
    if !limits::is_catalogued(&value) {
        return Ok(());
    }
    let violations = limits::check(operation, &value);
    if violations.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Err(Error::new(ErrorKind::InvalidRequest, list.join("; ")).with_violations(violations))
}
