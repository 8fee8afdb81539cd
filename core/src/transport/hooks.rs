//! The generated client on this transport: it builds requests and reads values, its hooks hand everything between
//! to [`Transport`](super::Transport). An error of ours cannot pass through the generated code, nor can the head of
//! an answer that it fails to read: both travel in the context of the call.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use progenitor_client::{ByteStream, ClientHooks, ClientInfo, OperationInfo, ResponseValue};
use serde::de::DeserializeOwned;

use super::{Answer, AnswerBody, Form, Held};
use crate::base_url::check_parameter;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::generated::client::Client as GeneratedClient;
use crate::operation::{Operation, StreamMode};
use crate::response::{Head, RawResponse, Response};
use crate::stream::{EventStream, RawStream};

/// The status of the stand-in for an answer that never came; not one a server can send.
const NO_ANSWER_STATUS: u16 = 999;

type GeneratedResult<T> = Result<T, progenitor_client::Error>;

/// One typed call under way: the generated client's inner value.
#[derive(Debug, Clone)]
pub(crate) struct CallContext {
    client: Client,
    operation: &'static Operation,
    outcome: Arc<Mutex<Outcome>>,
}

#[derive(Debug, Default)]
enum Outcome {
    #[default]
    NotSent,
    /// Read whole.
    Answered(Head, Bytes),
    /// To be read as a stream.
    Opened(Head, Held),
    Failed(Error),
}

impl CallContext {
    /// The generator makes the streamed form of an operation one of its own, named after it.
    fn form(&self, info: &OperationInfo) -> Form {
        match self.operation.stream {
            StreamMode::Always => Form::Stream,
            StreamMode::Parameter(_) if info.operation_id != self.operation.id => Form::Stream,
            StreamMode::Parameter(_) | StreamMode::Never => Form::Document,
        }
    }

    fn set_outcome(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    }

    fn take_outcome(&self) -> Outcome {
        std::mem::take(&mut *self.outcome.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The error behind the generated client's: ours where one is known, else what it says itself.
    fn error(&self, error: progenitor_client::Error) -> Error {
        match (self.take_outcome(), error) {
            (Outcome::Failed(error), _) => error,
            (Outcome::Answered(head, body), progenitor_client::Error::InvalidResponsePayload(_, error)) => {
                RawResponse::new(head, body).undecodable(self.operation, error)
            }
            (_, error) => Error::new(ErrorKind::InvalidRequest, "the request cannot be built")
                .quoting(error)
                .with_operation(self.operation)
                .shown(&self.client.redactor()),
        }
    }
}

impl ClientHooks<CallContext> for GeneratedClient {
    async fn pre<E>(
        &self,
        request: &mut reqwest::Request,
        info: &OperationInfo,
    ) -> Result<(), progenitor_client::Error<E>> {
        let context = self.inner();
        let prepared = context.client.transport().prepare(
            request,
            context.operation,
            context.form(info),
            context.client.options(),
        );
        prepared.map_err(|error| {
            let error = context.client.transport().shown(error);
            let message = error.message().to_owned();
            context.set_outcome(Outcome::Failed(error.with_operation(context.operation)));
            progenitor_client::Error::Custom(message)
        })
    }

    async fn exec(
        &self,
        request: reqwest::Request,
        info: &OperationInfo,
    ) -> reqwest::Result<reqwest::Response> {
        let context = self.inner();
        let transport = context.client.transport();
        let sent = transport
            .exchange(request, context.operation, context.form(info), context.client.options())
            .await;
        let (outcome, response) = match sent {
            Ok(Answer { head, body: AnswerBody::Open(response, held) }) => {
                (Outcome::Opened(head, held), response)
            }
            Ok(Answer { head, body: AnswerBody::Whole(body) }) => {
                let raw = RawResponse::new(head.clone(), body.clone());
                match transport.accept(&raw, context.operation, context.client.options()) {
                    Ok(()) => {
                        let mut response = http::Response::new(body.clone());
                        *response.status_mut() =
                            http::StatusCode::from_u16(head.status).expect("it came from an answer");
                        *response.headers_mut() = head.headers.clone();
                        (Outcome::Answered(head, body), response.into())
                    }
                    Err(error) => (Outcome::Failed(error), no_answer()),
                }
            }
            Err(error) => (Outcome::Failed(error), no_answer()),
        };
        context.set_outcome(outcome);
        Ok(response)
    }
}

/// What the generated client is given where the error is ours.
fn no_answer() -> reqwest::Response {
    let mut response = http::Response::new(Bytes::new());
    *response.status_mut() = http::StatusCode::from_u16(NO_ANSWER_STATUS).expect("three digits");
    response.into()
}

/// One typed call, as the generated resources make it: build the request with [`TypedCall::generated`], hand the
/// answer to [`TypedCall::value`] or [`TypedCall::stream`].
pub(crate) struct TypedCall {
    generated: GeneratedClient,
}

impl TypedCall {
    /// Errors: a path parameter could leave its place in the path (InvalidRequest).
    pub(crate) fn new(
        client: &Client,
        operation: &'static Operation,
        path: &[(&str, &str)],
    ) -> Result<Self, Error> {
        for (name, value) in path {
            check_parameter(operation, name, value).map_err(|error| error.with_operation(operation))?;
        }
        let context = CallContext { client: client.clone(), operation, outcome: Arc::default() };
        let http = client.transport().http().clone();
        Ok(Self { generated: GeneratedClient::new_with_client(client.base_url(), http, context) })
    }

    pub(crate) fn generated(&self) -> &GeneratedClient {
        &self.generated
    }

    /// The value with its head, or our error.
    #[expect(clippy::unused_async, reason = "generated resources await every step of a call alike")]
    pub(crate) async fn value<T>(
        self,
        answer: GeneratedResult<ResponseValue<T>>,
    ) -> Result<Response<T>, Error> {
        let context = self.generated.inner();
        let value = answer.map_err(|error| context.error(error))?;
        let Outcome::Answered(head, _) = context.take_outcome() else {
            unreachable!("a value comes of an answer that was read whole");
        };
        Ok(Response::new(value.into_inner(), head))
    }

    /// The stream that has begun, or our error.
    #[expect(clippy::unused_async, reason = "generated resources await every step of a call alike")]
    pub(crate) async fn stream<T: DeserializeOwned>(
        self,
        answer: GeneratedResult<ResponseValue<ByteStream>>,
    ) -> Result<EventStream<T>, Error> {
        let context = self.generated.inner();
        let value = answer.map_err(|error| context.error(error))?;
        let Outcome::Opened(head, hold) = context.take_outcome() else {
            unreachable!("a stream comes of an answer that was left open");
        };
        let bounds = context.client.transport().stream_bounds(context.client.options());
        let body = Box::pin(hold.over(value.into_inner_stream()));
        let raw = RawStream::new(context.operation, head, body, bounds);
        Ok(EventStream::new(raw))
    }
}
