//! One typed call. A generated client builds its request and parses its value; this file combines the two again. The
//! generated code can carry neither our errors nor the head of a response that it fails to parse: both travel in the
//! context of the call.

use std::sync::Arc;

use bytes::Bytes;
use progenitor_client::{ByteStream, ResponseValue};
use serde::de::DeserializeOwned;

use super::Client;
use super::context::{CallContext, CallState};
use crate::api::operation::Operation;
use crate::stream::{EventStream, RawStream};
use crate::transport::base_url::check_parameter;
use crate::transport::exchange::Opened;
use crate::transport::response::{Head, RawResponse, Response};
use crate::wire::error::Error;

type GeneratedResult<T> = Result<T, progenitor_client::Error>;

/// One typed call, as generated resources make it: build the request with a generated client on [`TypedCall::context`],
/// then pass the response to the method for the wanted result.
#[derive(Debug)]
pub struct TypedCall {
    context: CallContext,
}

impl TypedCall {
    /// A call of an operation. `path`: names and values of its path parameters. Errors: the value of a path parameter
    /// could change the path around it (InvalidRequest).
    pub fn new(client: &Client, operation: &'static Operation, path: &[(&str, &str)]) -> Result<Self, Error> {
        for (name, value) in path {
            check_parameter(operation, name, value).map_err(|error| error.with_operation(operation))?;
        }
        Ok(Self { context: CallContext { client: client.clone(), operation, state: Arc::default() } })
    }

    /// The parts of a generated client: the gateway's address, the HTTP client and the context for its hooks.
    pub fn context(&self) -> (&str, reqwest::Client, CallContext) {
        let client = &self.context.client;
        (client.base_url(), client.transport().http().clone(), self.context.clone())
    }

    /// The value with its head, or our error.
    pub fn value<T>(self, answer: GeneratedResult<ResponseValue<T>>) -> Result<Response<T>, Error> {
        let value = answer.map_err(|error| self.context.error(error))?;
        let (head, _) = self.answered();
        Ok(Response::new(value.into_inner(), head))
    }

    /// The unparsed body with its head, or our error.
    pub fn bytes(self, answer: GeneratedResult<ResponseValue<ByteStream>>) -> Result<Response<Bytes>, Error> {
        answer.map_err(|error| self.context.error(error))?;
        let (head, body) = self.answered();
        Ok(Response::new(body, head))
    }

    /// The body as text, with its head, or our error.
    pub fn text(self, answer: GeneratedResult<ResponseValue<ByteStream>>) -> Result<Response<String>, Error> {
        answer.map_err(|error| self.context.error(error))?;
        let operation = self.context.operation;
        let (head, body) = self.answered();
        let raw = RawResponse::new(head.clone(), body);
        Ok(Response::new(raw.text(operation)?.to_owned(), head))
    }

    /// The started stream, or our error.
    pub fn stream<T: DeserializeOwned>(
        self,
        answer: GeneratedResult<ResponseValue<ByteStream>>,
    ) -> Result<EventStream<T>, Error> {
        let context = &self.context;
        let value = answer.map_err(|error| context.error(error))?;
        let CallState::Opened(head, hold) = context.take_state() else {
            unreachable!("a stream comes of an answer that was left open");
        };
        let bounds = context.client.transport().stream_bounds(context.client.options());
        let body = Box::pin(hold.over(value.into_inner_stream()));
        let opened = Opened { operation: context.operation, head, body, bounds };
        Ok(EventStream::new(RawStream::new(opened)))
    }

    fn answered(self) -> (Head, Bytes) {
        let CallState::Answered(head, body) = self.context.take_state() else {
            unreachable!("a value comes of an answer that was read whole");
        };
        (head, body)
    }
}
