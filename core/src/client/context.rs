//! The context of a typed call. The generated code can carry neither our errors nor the head of a response that it
//! fails to parse, so both travel here. This file also implements the hooks of that code.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::Client;
use crate::api::operation::{Operation, StreamMode};
use crate::transport::exchange::{Answer, AnswerBody, Form, Held};
use crate::transport::response::{Head, RawResponse};
use crate::wire::error::{Error, ErrorKind};

/// The status of the placeholder for a missing response; not one that a server can send.
const NO_ANSWER_STATUS: u16 = 999;

/// One typed call in progress: the inner value of a generated client, which passes it to its hooks.
#[derive(Debug, Clone)]
pub struct CallContext {
    pub(super) client: Client,
    pub(super) operation: &'static Operation,
    pub(super) state: Arc<Mutex<CallState>>,
}

#[derive(Debug, Default)]
pub(super) enum CallState {
    #[default]
    NotSent,
    /// The response was read whole.
    Answered(Head, Bytes),
    /// The response will be read as a stream.
    Opened(Head, Held),
    Failed(Error),
}

impl CallContext {
    /// The hook before a request is sent. Errors: the message that the generated client fails with (and drops).
    pub fn pre(&self, request: &mut reqwest::Request, operation_id: &str) -> Result<(), String> {
        let (transport, options) = (self.client.transport(), self.client.options());
        transport.prepare(request, self.operation, self.form(operation_id), options).map_err(|error| {
            let error = transport.shown(error);
            let message = error.message().to_owned();
            self.set_state(CallState::Failed(error.with_operation(self.operation)));
            message
        })
    }

    /// The hook that sends a request: it makes all attempts of the call.
    #[expect(clippy::missing_panics_doc, reason = "a status that came from an answer is a status")]
    pub async fn exec(&self, request: reqwest::Request, operation_id: &str) -> reqwest::Response {
        let (transport, options) = (self.client.transport(), self.client.options());
        let sent = transport.exchange(request, self.operation, self.form(operation_id), options).await;
        let (state, response) = match sent {
            Ok(Answer { head, body: AnswerBody::Open(response, held) }) => {
                (CallState::Opened(head, held), response)
            }
            Ok(Answer { head, body: AnswerBody::Whole(body) }) => {
                let raw = RawResponse::new(head.clone(), body.clone());
                match transport.accept(&raw, self.operation, options) {
                    Ok(()) => {
                        let mut response = http::Response::new(body.clone());
                        *response.status_mut() =
                            http::StatusCode::from_u16(head.status).expect("it came from an answer");
                        *response.headers_mut() = head.headers.clone();
                        (CallState::Answered(head, body), response.into())
                    }
                    Err(error) => (CallState::Failed(error), no_answer()),
                }
            }
            Err(error) => (CallState::Failed(error), no_answer()),
        };
        self.set_state(state);
        response
    }

    /// The generator turns the streamed form of an operation into a separate operation, named after it.
    fn form(&self, operation_id: &str) -> Form {
        match self.operation.stream {
            StreamMode::Always => Form::Stream,
            StreamMode::Parameter(_) if operation_id != self.operation.id => Form::Stream,
            StreamMode::Parameter(_) | StreamMode::Never => Form::Document,
        }
    }

    fn set_state(&self, state: CallState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    pub(super) fn take_state(&self) -> CallState {
        std::mem::take(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The error behind the generated client's: ours if there is one, otherwise the client's own.
    pub(super) fn error(&self, error: progenitor_client::Error) -> Error {
        match (self.take_state(), error) {
            (CallState::Failed(error), _) => error,
            (CallState::Answered(head, body), progenitor_client::Error::InvalidResponsePayload(_, error)) => {
                RawResponse::new(head, body).undecodable(self.operation, error)
            }
            (_, error) => Error::new(ErrorKind::InvalidRequest, "the request cannot be built")
                .quoting(error)
                .with_operation(self.operation)
                .shown(&self.client.redactor()),
        }
    }
}

/// The response that the generated client receives if the error is ours.
fn no_answer() -> reqwest::Response {
    let mut response = http::Response::new(Bytes::new());
    *response.status_mut() = http::StatusCode::from_u16(NO_ANSWER_STATUS).expect("three digits");
    response.into()
}
