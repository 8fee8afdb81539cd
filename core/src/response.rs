//! Answers: the raw one of bytes, the typed one around a value, and the head both have.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde::de::DeserializeOwned;

use crate::error::{Error, ErrorKind};
use crate::error_body::Signs;
use crate::json_weight;
use crate::operation::{Operation, StreamMode};
use crate::presence::{self, Lacking};
use crate::secret::Secrets;

/// Headers that carry the gateway's id of a request, the preferred first.
const REQUEST_ID_HEADERS: &[&str] =
    &["x-request-id", "x-gateway-request-id", "x-vendor-request-id", "request-id"];

/// What is longer is no id, and would be part of every message.
const MAX_REQUEST_ID_BYTES: usize = 1024;

/// Status and headers of an answer, and how it was come by.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) attempts: u32,
    /// From the call's beginning to the end of the body; of a stream, to its head.
    pub(crate) elapsed: Duration,
    /// What the answer may quote and no error of it may.
    pub(crate) secrets: Secrets,
}

impl Head {
    pub(crate) fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    pub(crate) fn content_type(&self) -> Option<&str> {
        self.headers.get(http::header::CONTENT_TYPE)?.to_str().ok()
    }

    /// Writes what is known of the answer onto an error that it led to, which may be shown then.
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

/// A successful answer as it came: its body is a JSON document that nobody has parsed yet.
#[derive(Debug, Clone)]
pub struct RawResponse {
    /// HTTP status, 200 to 299.
    pub status: u16,
    /// Response headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
    /// How many requests were sent for this answer.
    pub attempts: u32,
    /// From the call's beginning to the end of the body.
    pub elapsed: Duration,
    pub(crate) secrets: Secrets,
}

impl RawResponse {
    pub(crate) fn new(head: Head, body: Bytes) -> Self {
        let Head { status, headers, attempts, elapsed, secrets } = head;
        Self { status, headers, body, attempts, elapsed, secrets }
    }

    /// The gateway's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        request_id(&self.headers)
    }

    /// Parses the body. Errors: Decode.
    pub fn parse<T: DeserializeOwned>(self, operation: &Operation) -> Result<Response<T>, Error> {
        match serde_json::from_slice(&self.body) {
            Ok(value) => {
                let Self { status, headers, attempts, elapsed, secrets, .. } = self;
                Ok(Response::new(value, Head { status, headers, attempts, elapsed, secrets }))
            }
            Err(error) => Err(self.undecodable(operation, error)),
        }
    }

    /// Tells what cannot be the operation's answer from one, by its first byte and by the members that say it is an
    /// error: whether it has the right form is the caller's to find out. Errors: Decode, with what an error document
    /// says in the place of an answer.
    pub(crate) fn check(&self, operation: &Operation) -> Result<(), Error> {
        match self.body.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => {}
            // What streams as events may come as an array of them.
            Some(b'[') if operation.stream == StreamMode::Always => return Ok(()),
            Some(b'[') => return Err(self.undecodable(operation, "it is an array, not an object")),
            Some(_) => return Err(self.undecodable(operation, "it is not a JSON document")),
            None => return Err(self.undecodable(operation, "its body is empty")),
        }
        json_weight::check(&self.body).map_err(|heavy| self.undecodable(operation, heavy))?;
        // Almost no answer has the word.
        let may_be_error = memchr::memmem::find(&self.body, b"\"error\"").is_some();
        let signs = may_be_error.then(|| Signs::of(&self.body)).flatten();
        // What has an id is there, and failed: a task or a response tells so itself.
        if !signs.is_some_and(|signs| signs.is_error() && !signs.has_id()) {
            return Ok(());
        }
        let message = || "the answer is an error without a message".to_owned();
        let error = Error::from_body(ErrorKind::Decode, self.body.clone(), message);
        Err(self.describe(error, operation))
    }

    /// Tells whether the answer lacks what the specification promises of the operation's. What cannot be parsed is the
    /// reader's to tell. Errors: Decode, with the violations.
    pub(crate) fn check_presence(&self, operation: &Operation) -> Result<(), Error> {
        if !presence::has_rules(operation) {
            return Ok(());
        }
        let Ok(answer) = serde_json::from_slice(&self.body) else { return Ok(()) };
        let Lacking { violations, more } = presence::check(operation, &answer);
        if violations.is_empty() {
            return Ok(());
        }
        let mut list: Vec<String> = violations.iter().map(ToString::to_string).collect();
        if more > 0 {
            list.push(format!("and {more} more"));
        }
        let message = format!("the answer lacks what the specification promises: {}", list.join("; "));
        let error = Error::new(ErrorKind::Decode, message).with_violations(violations);
        Err(self.describe(error.with_body(self.body.clone()), operation))
    }

    /// The error for a body that is not what the operation returns; it carries this answer's status, headers,
    /// request id and body. `reason`: what the reader stumbled on.
    pub fn undecodable(&self, operation: &Operation, reason: impl fmt::Display) -> Error {
        let error = Error::new(ErrorKind::Decode, "the answer cannot be read").quoting(reason);
        self.describe(error.with_body(self.body.clone()), operation)
    }

    /// Writes what is known of the answer onto an error that it led to.
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

/// A successful answer around its typed value, which it dereferences to.
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
    pub fn status(&self) -> u16 {
        self.head.status
    }

    /// Response headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The gateway's id of the request.
    pub fn request_id(&self) -> Option<&str> {
        self.head.request_id()
    }

    /// How many requests were sent for this answer.
    pub fn attempts(&self) -> u32 {
        self.head.attempts
    }

    /// From the call's beginning to the end of the body.
    pub fn elapsed(&self) -> Duration {
        self.head.elapsed
    }

    /// The value alone.
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
