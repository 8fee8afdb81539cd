//! Responses: the raw one with bytes, the typed one with a value, and the head that both share.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde::de::DeserializeOwned;

use crate::api::operation::{Operation, ResponseBody, StreamMode};
use crate::transport::secret::Secrets;
use crate::wire::error::{Error, ErrorKind};
use crate::wire::error_body::ErrorMarkers;
use crate::wire::json_weight;
use crate::wire::presence::{self, MissingMembers};
use crate::wire::repair;

/// Headers that carry the gateway's request id, in order of preference.
const REQUEST_ID_HEADERS: &[&str] =
    &["x-request-id", "x-gateway-request-id", "x-vendor-request-id", "request-id"];

/// Maximum length of a request id: it is part of every message.
const MAX_REQUEST_ID_BYTES: usize = 1024;

/// Status and headers of a response, and how it was obtained.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) attempts: u32,
    /// From the start of the call to the end of the body; for a stream, to its headers.
    pub(crate) elapsed: Duration,
    /// Secrets that the response may quote and that its errors must not.
    pub(crate) secrets: Secrets,
}

impl Head {
    pub(crate) fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers.get(http::header::CONTENT_TYPE)?.to_str().ok()
    }

    /// Adds the response's metadata to an error that it caused, and redacts the error.
    pub(crate) fn describe(&self, error: Error, operation: &Operation) -> Error {
        error
            .with_operation(operation)
            .with_status(self.status)
            .with_request_id(self.request_id())
            .with_headers(self.headers.clone())
            .with_attempts(self.attempts)
            .with_elapsed(self.elapsed)
            .shown(&self.secrets.redactor())
    }
}

pub(crate) fn request_id(headers: &HeaderMap) -> Option<&str> {
    let id = |name: &&str| headers.get(*name)?.to_str().ok().filter(|id| id.len() <= MAX_REQUEST_ID_BYTES);
    REQUEST_ID_HEADERS.iter().find_map(id)
}

/// A successful response whose body is not parsed. [`Operation::response`] says what the body is.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// use gatewright::types::ModelList;
/// use gatewright::{Call, operations};
///
/// let response = client.call(Call::new(&operations::LIST_MODELS)).await?;
/// println!("{} after {:?}: {} bytes", response.status, response.elapsed, response.body.len());
/// let models = response.parse::<ModelList>(&operations::LIST_MODELS)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RawResponse {
    /// HTTP status, 200 to 299.
    pub status: u16,
    /// Response headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// How many requests were sent for this response.
    pub attempts: u32,
    /// Time from the start of the call to the end of the body.
    pub elapsed: Duration,
    pub(crate) secrets: Secrets,
}

impl RawResponse {
    pub(crate) fn new(head: Head, body: Bytes) -> Self {
        let Head { status, headers, attempts, elapsed, secrets } = head;
        Self { status, headers, body, attempts, elapsed, secrets }
    }

    /// The request id assigned by the gateway.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations};
    ///
    /// let response = client.call(Call::new(&operations::LIST_MODELS)).await?;
    /// println!("request {}", response.request_id().unwrap_or("without an id"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    /// Parses the body. Errors: Decode.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations, types::ModelList};
    ///
    /// let response = client.call(Call::new(&operations::LIST_MODELS)).await?;
    /// let models = response.parse::<ModelList>(&operations::LIST_MODELS)?;
    /// println!("{} models", models.data.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn parse<T: DeserializeOwned>(self, operation: &Operation) -> Result<Response<T>, Error> {
        let value = self.read(operation, |body| serde_json::from_slice(body))?;
        let Self { status, headers, attempts, elapsed, secrets, .. } = self;
        Ok(Response::new(value, Head { status, headers, attempts, elapsed, secrets }))
    }

    /// Reads the body with a parser, and if that fails, once more after the repairs that events of streams get. Errors: Decode, for
    /// the body as it arrived.
    #[doc(hidden)]
    pub fn read<T, R: fmt::Display>(
        &self,
        operation: &Operation,
        parse: impl Fn(&[u8]) -> Result<T, R>,
    ) -> Result<T, Error> {
        parse(&self.body).or_else(|reason| {
            let repaired = repair::body(&self.body).and_then(|json| parse(json.as_bytes()).ok());
            repaired.ok_or_else(|| self.undecodable(operation, reason))
        })
    }

    /// Rejects a body that cannot be the operation's response: JSON by its first byte and by members that mark it as an
    /// error, anything else by its content type. Callers must check that it has the right form. Errors: Decode, with
    /// the message of an error document that was sent as a response.
    pub(crate) fn check(&self, operation: &Operation) -> Result<(), Error> {
        match (operation.response, self.first()) {
            (ResponseBody::Object | ResponseBody::Array, first) => self.check_json(operation, first),
            // The body of a success without content is ignored unless it is an error.
            (ResponseBody::Nothing, Some(b'{')) => self.check_error(operation),
            (ResponseBody::Nothing, _) => Ok(()),
            (ResponseBody::Text(media_type), _) => {
                self.check_media_type(operation, media_type)?;
                self.text(operation).map(|_| ())
            }
            (ResponseBody::Bytes(media_type), _) => self.check_media_type(operation, media_type),
        }
    }

    /// The body as text. Errors: Decode if it is not UTF-8.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations};
    ///
    /// let response = client.call(Call::new(&operations::LIST_MODELS)).await?;
    /// println!("{}", response.text(&operations::LIST_MODELS)?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn text(&self, operation: &Operation) -> Result<&str, Error> {
        std::str::from_utf8(&self.body).map_err(|error| self.undecodable(operation, error))
    }

    /// The first byte that is not white space.
    fn first(&self) -> Option<u8> {
        self.body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
    }

    fn check_json(&self, operation: &Operation, first: Option<u8>) -> Result<(), Error> {
        match (first, operation.response) {
            // An object in place of an array may be an error that says what is wrong.
            (Some(b'{'), _) | (Some(b'['), ResponseBody::Array) => {}
            // An operation that streams events may return an array of them.
            (Some(b'['), _) if operation.stream == StreamMode::Always => return Ok(()),
            (Some(b'['), _) => return Err(self.undecodable(operation, "it is an array, not an object")),
            (Some(_), _) => return Err(self.undecodable(operation, "it is not a JSON document")),
            (None, _) => return Err(self.undecodable(operation, "its body is empty")),
        }
        json_weight::check(&self.body).map_err(|heavy| self.undecodable(operation, heavy))?;
        if first == Some(b'{') {
            self.check_error(operation)?;
            if operation.response == ResponseBody::Array {
                return Err(self.undecodable(operation, "it is an object, not an array"));
            }
        }
        Ok(())
    }

    /// Errors: Decode if the document says that it is an error.
    fn check_error(&self, operation: &Operation) -> Result<(), Error> {
        // Almost no response contains this word.
        if memchr::memmem::find(&self.body, b"\"error\"").is_none() {
            return Ok(());
        }
        json_weight::check(&self.body).map_err(|heavy| self.undecodable(operation, heavy))?;
        let mut body = self.body.clone();
        let signs = ErrorMarkers::of(&body).or_else(|| {
            body = repair::body(&body)?.into();
            ErrorMarkers::of(&body)
        });
        // An object with an id exists and has failed: a task or a response reports that itself.
        if !signs.is_some_and(|signs| signs.is_error() && !signs.has_id()) {
            return Ok(());
        }
        let message = || "the response is an error without a message".to_owned();
        let error = Error::from_body(ErrorKind::Decode, body, message);
        Err(self.describe(error, operation))
    }

    /// Rejects a page or a document instead of other text or bytes. A server may use another media type for its
    /// bytes, or none, so only a body that is certainly something else is rejected. Errors: Decode.
    fn check_media_type(&self, operation: &Operation, expected: &str) -> Result<(), Error> {
        let Some(found) = self.media_type() else { return Ok(()) };
        let is = |media_type: &str| found.eq_ignore_ascii_case(media_type);
        if is(expected) || !(is("text/html") || is("application/json")) {
            return Ok(());
        }
        if self.first() == Some(b'{') {
            self.check_error(operation)?;
        }
        Err(self.undecodable(operation, format_args!("it is {found}, not {expected}")))
    }

    /// The media type that the response states, without its parameters.
    fn media_type(&self) -> Option<&str> {
        let value = self.headers.get(http::header::CONTENT_TYPE)?.to_str().ok()?;
        value.split(';').next().map(str::trim)
    }

    /// Checks that the response has the members that the specification promises for the operation. A body that cannot
    /// be parsed is left for its reader to report. Errors: Decode, with the violations.
    pub(crate) fn check_presence(&self, operation: &Operation) -> Result<(), Error> {
        if !presence::has_rules(operation) {
            return Ok(());
        }
        let Ok(answer) = self.read(operation, |body| serde_json::from_slice(body)) else { return Ok(()) };
        let MissingMembers { violations, more } = presence::check(operation, &answer);
        if violations.is_empty() {
            return Ok(());
        }
        let mut list: Vec<String> = violations.iter().map(ToString::to_string).collect();
        if more > 0 {
            list.push(format!("and {more} more"));
        }
        let message =
            format!("the response lacks members that the specification requires: {}", list.join("; "));
        let error = Error::new(ErrorKind::Decode, message).with_violations(violations);
        Err(self.describe(error.with_body(self.body.clone()), operation))
    }

    /// The error for a body that is not what the operation returns; it carries this response's status, headers, request
    /// id and body. `reason`: what the reader failed on.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::{Call, operations};
    ///
    /// let response = client.call(Call::new(&operations::LIST_MODELS)).await?;
    /// let models: serde_json::Value = serde_json::from_slice(&response.body)
    ///     .map_err(|error| response.undecodable(&operations::LIST_MODELS, error))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn undecodable(&self, operation: &Operation, reason: impl fmt::Display) -> Error {
        let error = Error::new(ErrorKind::Decode, "the response cannot be read").quoting(reason);
        self.describe(error.with_body(self.body.clone()), operation)
    }

    /// Adds the response's metadata to an error that it caused.
    fn describe(&self, error: Error, operation: &Operation) -> Error {
        error
            .with_operation(operation)
            .with_status(self.status)
            .with_request_id(self.request_id())
            .with_headers(self.headers.clone())
            .with_attempts(self.attempts)
            .with_elapsed(self.elapsed)
            .shown(&self.secrets.redactor())
    }
}

/// A successful response with its typed value, to which it dereferences.
///
/// ```no_run
/// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
/// let models = client.models().list().await?;
/// println!("{:?} after {} attempts", models.request_id(), models.attempts());
/// for model in &models.data {
///     println!("{}", model.id);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Response<T> {
    value: T,
    head: Head,
}

impl<T> Response<T> {
    pub(crate) fn new(value: T, head: Head) -> Self {
        Self { value, head }
    }

    /// HTTP status, 200 to 299.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let models = client.models().list().await?;
    /// assert_eq!(models.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Response headers.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let models = client.models().list().await?;
    /// println!("{:?}", models.headers().get(http::header::CONTENT_TYPE));
    /// # Ok(())
    /// # }
    /// ```
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The request id assigned by the gateway.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let models = client.models().list().await?;
    /// println!("request {}", models.request_id().unwrap_or("without an id"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        self.head.request_id()
    }

    /// How many requests were sent for this response.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let models = client.models().list().await?;
    /// println!("after {} retries", models.attempts() - 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn attempts(&self) -> u32 {
        self.head.attempts
    }

    /// Time from the start of the call to the end of the body.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// let models = client.models().list().await?;
    /// println!("after {:?}", models.elapsed());
    /// # Ok(())
    /// # }
    /// ```
    pub fn elapsed(&self) -> Duration {
        self.head.elapsed
    }

    /// The value alone.
    ///
    /// ```no_run
    /// # async fn example(client: gatewright::Client) -> Result<(), gatewright::Error> {
    /// use gatewright::types::ModelList;
    ///
    /// let models: ModelList = client.models().list().await?.into_inner();
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Adds the response's metadata to an error that it caused, and redacts the error.
    pub(crate) fn describe(&self, error: Error, operation: &Operation) -> Error {
        self.head.describe(error, operation)
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CONTENT_TYPE;

    use super::*;
    use crate::api::operations::LIST_MODELS;

    /// The outcome for a response with this content type and body if `expected` is expected.
    fn outcome(expected: ResponseBody, media_type: &'static str, body: &'static [u8]) -> Result<(), String> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(media_type))]);
        let secrets = Secrets::default();
        let head = Head { status: 200, headers, attempts: 1, elapsed: Duration::ZERO, secrets };
        let operation = Operation { response: expected, ..LIST_MODELS };
        let raw = RawResponse::new(head, Bytes::from_static(body));
        raw.check(&operation).map_err(|error| error.message().to_owned())
    }

    const ERROR: &[u8] = br#"{"error": {"message": "no berth", "type": "server_error", "code": "full"}}"#;

    #[test]
    fn array_operation_accepts_an_array_and_rejects_an_object() {
        let json = "application/json";
        assert_eq!(outcome(ResponseBody::Array, json, b" [1]"), Ok(()));
        assert_eq!(outcome(ResponseBody::Object, json, b"{}"), Ok(()));
        let message = outcome(ResponseBody::Array, json, b"{}").expect_err("an object");
        assert!(message.contains("it is an object, not an array"), "{message}");
        let message = outcome(ResponseBody::Object, json, b"[]").expect_err("an array");
        assert!(message.contains("it is an array, not an object"), "{message}");
        assert!(outcome(ResponseBody::Array, json, b"").is_err());
    }

    #[test]
    fn empty_response_operation_accepts_any_body_but_an_error() {
        assert_eq!(outcome(ResponseBody::Nothing, "text/plain", b""), Ok(()));
        assert_eq!(outcome(ResponseBody::Nothing, "text/plain", b"done"), Ok(()));
        assert_eq!(outcome(ResponseBody::Nothing, "application/json", br#"{"ok": true}"#), Ok(()));
        let message = outcome(ResponseBody::Nothing, "application/json", ERROR).expect_err("an error");
        assert!(message.contains("no berth"), "{message}");
    }

    #[test]
    fn text_and_bytes_reject_only_html_and_json_content_types() {
        let (text, bytes) = (ResponseBody::Text("text/csv"), ResponseBody::Bytes("image/png"));
        assert_eq!(outcome(text, "text/csv; charset=utf-8", b"a,b"), Ok(()));
        assert_eq!(outcome(text, "text/plain", b""), Ok(()));
        assert_eq!(outcome(bytes, "application/octet-stream", &[0, 255]), Ok(()));
        let message = outcome(bytes, "text/html", b"<title>Busy</title>").expect_err("a page");
        assert!(message.contains("it is text/html, not image/png"), "{message}");
        let message = outcome(bytes, "application/json", ERROR).expect_err("an error");
        assert!(message.contains("no berth"), "{message}");
        assert!(outcome(text, "text/csv", &[0xff]).is_err(), "not UTF-8");
    }
}
