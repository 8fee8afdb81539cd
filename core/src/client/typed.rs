//! One typed call: collects what the generated resources pass in, sends it as a raw call, and parses the
//! response.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Client;
use crate::api::chunk::Chunk;
use crate::api::file_part::FileParts;
use crate::api::operation::Operation;
use crate::stream::{EventStream, RawStream};
use crate::transport::generated::options::RequestOptions;
use crate::transport::options::Call;
use crate::transport::response::{Head, RawResponse, Response};
use crate::wire::error::{Error, ErrorKind};

/// One typed call as generated resources build it: its parameters and body, then the method for the desired result.
#[derive(Debug)]
#[must_use]
pub struct TypedCall<'c> {
    client: &'c Client,
    call: Call,
    /// Why a value can't be sent.
    failure: Option<Error>,
}

impl<'c> TypedCall<'c> {
    /// A call of an operation without parameters and without a body.
    pub fn new(client: &'c Client, operation: &'static Operation) -> Self {
        Self { client, call: Call::new(operation), failure: None }
    }

    /// Sets a path parameter.
    pub fn path(mut self, name: &str, value: &impl fmt::Display) -> Self {
        self.call = self.call.path(name, value.to_string());
        self
    }

    /// Adds a query parameter: one for each value of a list, and none for null.
    pub fn query(mut self, name: &str, value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => push(&mut self.call.query, name, value),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Sets a header, as [`TypedCall::query`] adds parameters.
    pub fn header(mut self, name: &str, value: &impl Serialize) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => push(&mut self.call.options.extra_headers, name, value),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Sets those of the headers that the operation takes.
    pub fn headers(mut self, given: &[(&'static str, String)]) -> Self {
        let taken = self.call.operation.header_parameters;
        let given = given.iter().filter(|(name, _)| taken.contains(name));
        let given = given.map(|(name, value)| ((*name).to_owned(), value.clone()));
        self.call.options.extra_headers.extend(given);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: &impl Serialize) -> Self {
        match serde_json::to_vec(body) {
            Ok(body) => self.call = self.call.object(body),
            Err(error) => self.fail(error),
        }
        self
    }

    /// Adds the files of a member of the body.
    pub fn files(mut self, member: &str, given: &impl FileParts) -> Self {
        self.call.files.extend(given.files().iter().map(|file| (member.to_owned(), file.clone())));
        self
    }

    fn fail(&mut self, error: serde_json::Error) {
        let failure = Error::new(ErrorKind::InvalidRequest, "the request cannot be built")
            .quoting(error)
            .with_operation(self.call.operation)
            .shown(&self.client.redactor());
        self.failure.get_or_insert(failure);
    }

    /// The call and its options, if everything in it can be sent.
    fn sound(mut self) -> Result<(&'c Client, Call, Cow<'c, RequestOptions>), Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let options = self.client.options();
        if self.call.options.extra_headers.is_empty() {
            return Ok((self.client, self.call, Cow::Borrowed(options)));
        }
        let own = std::mem::take(&mut self.call.options).over(options);
        Ok((self.client, self.call, Cow::Owned(own)))
    }

    async fn send(self) -> Result<(&'static Operation, RawResponse), Error> {
        let (client, call, options) = self.sound()?;
        let operation = call.operation;
        Ok((operation, client.transport().call(call, &options).await?))
    }

    /// The typed value.
    pub async fn value<T: DeserializeOwned>(self) -> Result<Response<T>, Error> {
        let (operation, raw) = self.send().await?;
        raw.parse(operation)
    }

    /// The head of a response without content.
    pub async fn nothing(self) -> Result<Response<()>, Error> {
        let (_, raw) = self.send().await?;
        let (head, _) = apart(raw);
        Ok(Response::new((), head))
    }

    /// The raw body.
    pub async fn bytes(self) -> Result<Response<Bytes>, Error> {
        let (_, raw) = self.send().await?;
        let (head, body) = apart(raw);
        Ok(Response::new(body, head))
    }

    /// The body as text.
    pub async fn text(self) -> Result<Response<String>, Error> {
        let (operation, raw) = self.send().await?;
        let text = raw.text(operation)?.to_owned();
        let (head, _) = apart(raw);
        Ok(Response::new(text, head))
    }

    /// The started stream.
    pub async fn stream<T: Chunk>(self) -> Result<EventStream<T>, Error> {
        let (client, call, options) = self.sound()?;
        let opened = client.transport().open(call, &options).await?;
        Ok(EventStream::new(RawStream::new(opened)))
    }
}

fn push(pairs: &mut Vec<(String, String)>, name: &str, value: Value) {
    match value {
        Value::Null => {}
        Value::Array(values) => values.into_iter().for_each(|value| push(pairs, name, value)),
        Value::String(text) => pairs.push((name.to_owned(), text)),
        other => pairs.push((name.to_owned(), other.to_string())),
    }
}

fn apart(raw: RawResponse) -> (Head, Bytes) {
    let RawResponse { status, headers, body, attempts, elapsed, secrets } = raw;
    (Head { status, headers, attempts, elapsed, secrets }, body)
}
