//! The end of a failed stream, in the form of the client's protocol.

use gatewright::ErrorCode;
use serde_json::{Value, json};

use crate::conversation::{Failure, Protocol, ProviderExtra};
use crate::failure::code_of;
use crate::inspect::StreamInspector;

/// Why a stream failed.
#[derive(Debug, Clone, Copy)]
pub struct StreamError<'a> {
    /// Determines type and status.
    pub code: &'static ErrorCode,
    /// The code that clients read: the provider's, if it has one.
    pub word: &'a str,
    /// For people.
    pub message: &'a str,
    /// The request field at fault.
    pub param: Option<&'a str>,
    /// The rest of the provider's error.
    pub beyond: Option<&'a ProviderExtra>,
}

impl<'a> StreamError<'a> {
    /// A provider's error.
    pub fn of(failure: &'a Failure) -> Self {
        let (code, beyond) = (code_of(failure.kind), failure.beyond.as_deref());
        let word = failure.code.as_deref().unwrap_or(code.code);
        Self { code, word, message: &failure.message, param: failure.param.as_deref(), beyond }
    }

    /// A document of a protocol, with the rest of the provider's error if that is of this protocol.
    pub(crate) fn complete(&self, protocol: Protocol, mut document: Value) -> Value {
        if let Some(beyond) = self.beyond.filter(|beyond| beyond.protocol == protocol) {
            beyond.write(&mut document);
        }
        document
    }

    /// The event of the chat protocol, and of others that don't define one.
    pub(crate) fn standard_event(&self) -> String {
        let Self { code, word, message, param, .. } = *self;
        let error = json!({ "message": message, "type": code.error_type, "param": param, "code": word });
        format!("data: {}\n\n", self.complete(Protocol::Chat, json!({ "error": error })))
    }
}

impl Protocol {
    /// The event that ends a failed stream, without a marker of success. `inspector`: what was passed through before. `now`: Unix
    /// time in seconds.
    pub fn error_event(self, error: &StreamError<'_>, inspector: &StreamInspector, now: u64) -> String {
        match self.client_codec() {
            Some(codec) => codec.error_event(error, inspector, now),
            None => error.standard_event(),
        }
    }

    /// The event with which a server of the protocol that fails in mid-stream reports it. `number`: that of the event.
    pub fn server_error_event(self, message: &str, number: usize) -> Option<String> {
        Some(self.client_codec()?.server_error_event(message, number))
    }
}
