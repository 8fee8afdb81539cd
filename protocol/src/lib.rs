//! The wire protocols. Each translates to and from the neutral form (`conversation.rs`), in both directions:
//! six pure functions per protocol, never one per pair. A protocol that only upstreams speak has the three of providers.
//!
//! | function | from | to |
//! |---|---|---|
//! | `request_in` | a client's request | the conversation |
//! | `request_out` | the conversation | a provider's request |
//! | `answer_in` | a provider's answer | the answer |
//! | `answer_out` | the answer | a client's answer |
//! | `StreamIn` | a provider's events | deltas |
//! | `StreamOut` | deltas | a client's events |
//!
//! Errors have the same two directions: `failure_in`, and the gateway's `ApiError` for the client.
//!
//! The crate does no I/O. It has no stable interface: it is a part of the crate `gatewright-gateway`.

mod answer_adapter;
mod answer_format;
mod cache_marks;
mod calls;
mod capabilities;
mod chat;
mod citations;
pub mod conversation;
mod converse;
mod effort;
mod failure;
mod frames;
pub mod grammar;
pub mod json;
pub mod judge;
mod media;
mod members;
mod messages;
mod native;
mod pieces;
mod proof;
mod provider_extra;
mod responses;
mod sequence;
mod stop_sequences;
mod surrogates;
mod thoughts;
mod tool_answers;
mod tool_calls;
mod tool_choice;
pub mod tree;
mod turns;
mod user;
mod videos;
mod whole_json;

use serde_json::Value;

pub use self::answer_adapter::AnswerAdapter;
pub use self::capabilities::{Capabilities, Roles, Thinking, TokenLimit};
pub use self::chat::has_functions;
pub use self::failure::code_of;
pub use self::proof::{Marking, mark};
use self::provider_extra::AnswerExtra;
use self::sequence::SequencedStream;
pub use self::sequence::failure_of;
pub use self::surrogates::mended as without_half_characters;
use self::turns::ArrangedConversation;
pub use self::videos::{Finished, Report, VideoDimensions, VideoForm, VideoStage};
use crate::conversation::{Answer, Conversation, Delta, Failure, JsonPointer, Protocol};

/// Why a client's documents are never of the converse protocol.
const NO_CLIENT: &str = "no client speaks the converse protocol";

/// A request in the provider's format.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedRequest {
    /// The body. In the native and the converse protocol, model and streaming are part of the path, which the
    /// gateway writes.
    pub body: Value,
    /// Where the client wrote what this protocol can't express.
    pub dropped: Vec<JsonPointer>,
}

/// Defaults for what the neutral form needs and a request may omit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Defaults {
    /// `max_tokens` for protocols that require it.
    pub max_tokens: u64,
    /// How to ask for thinking in the messages protocol.
    pub thinking: Thinking,
    /// Whether custom tools must be sent as functions.
    pub functions_only: bool,
    /// Which parts of its protocol the upstream's server supports.
    pub capabilities: Capabilities,
}

impl Defaults {
    /// These defaults for an upstream with the given capabilities.
    #[must_use]
    pub fn of_upstream(self, capabilities: Capabilities) -> Self {
        Self { functions_only: !capabilities.custom_tools, capabilities, ..self }
    }
}

/// A provider's document that doesn't match its protocol. The text says what is wrong and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedDocument(pub String);

/// What a client's answer repeats from its request, and what the gateway decides.
#[derive(Debug, Clone, Default)]
pub struct ResponseContext {
    /// The model name the client used.
    pub model: String,
    /// The client's request, for answers that echo parts of it (responses).
    pub request: Value,
    /// Whether the last chunk of a stream includes the usage (chat).
    pub include_usage: bool,
    /// Whether the client uses `functions`, the predecessor of tools (chat).
    pub has_functions: bool,
    /// Id of the answer, if the provider gives none.
    pub id: String,
    /// Unix time in seconds, if the provider gives none.
    pub created: u64,
}

/// Translates a provider's stream, event by event.
pub trait StreamIn: Send {
    /// Translates one event. `name`: its `event` line, if present.
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument>;

    /// The connection ended. Emits what is still pending if the stream is complete but lacks an end marker.
    /// Errors: the stream ended early.
    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument>;

    /// Number of bytes buffered until more arrives.
    fn held(&self) -> usize {
        0
    }
}

/// Writes a client's stream, delta by delta.
pub trait StreamOut: Send {
    /// Writes the events of a delta, framed as server-sent events.
    fn delta(&mut self, delta: Delta, bytes: &mut Vec<u8>);

    /// Ends a failed stream the way the protocol reports errors, without the success marker.
    fn fail(&mut self, failure: &Failure, bytes: &mut Vec<u8>);
}

impl Protocol {
    /// Reads a client's request that has passed schema validation. `model` and `stream` come from the path in
    /// the native protocol, from the body in the others.
    pub fn request_in(
        self,
        body: Value,
        model: &str,
        stream: bool,
    ) -> Result<Conversation, MalformedDocument> {
        match self {
            Self::Chat => chat::request_in(body, model, stream),
            Self::Responses => responses::request_in(body, model, stream),
            Self::Messages => messages::request_in(body, model, stream),
            Self::Native => native::request_in(body, model, stream),
            Self::Converse => Err(MalformedDocument(NO_CLIENT.to_owned())),
        }
    }

    /// Writes a provider's request.
    pub fn request_out(self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        if conversation.source == self {
            return self.write_request(conversation, defaults);
        }
        let ArrangedConversation { conversation, lost } = turns::arrange(conversation, self, defaults);
        let mut outgoing = self.write_request(&conversation, defaults);
        outgoing.dropped.extend(lost);
        outgoing
    }

    fn write_request(self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        match self {
            Self::Chat => chat::request_out(conversation, defaults),
            Self::Responses => responses::request_out(conversation, defaults),
            Self::Messages => messages::request_out(conversation, defaults),
            Self::Native => native::request_out(conversation, defaults),
            Self::Converse => converse::request_out(conversation, defaults),
        }
    }

    /// Reads a provider's answer.
    pub fn answer_in(self, body: Value) -> Result<Answer, MalformedDocument> {
        match self {
            Self::Chat => chat::answer_in(body),
            Self::Responses => responses::answer_in(body),
            Self::Messages => messages::answer_in(body),
            Self::Native => native::answer_in(body),
            Self::Converse => converse::answer_in(body),
        }
    }

    /// Writes a client's answer.
    pub fn answer_out(self, mut answer: Answer, context: &ResponseContext) -> Value {
        if answer.source != self {
            sequence::settle_calls(&mut answer);
            sequence::settle_ends(&mut answer);
        }
        let beyond = AnswerExtra::take(&mut answer, self);
        let mut document = match self {
            Self::Chat => chat::answer_out(answer, context),
            Self::Responses => responses::answer_out(answer, context),
            Self::Messages => messages::answer_out(answer, context),
            Self::Native => native::answer_out(answer, context),
            Self::Converse => unreachable!("{NO_CLIENT}"),
        };
        beyond.add(&mut document);
        document
    }

    /// Reads a provider's stream and reorders it into whole parts (`sequence.rs`).
    pub fn stream_in(self) -> Box<dyn StreamIn> {
        let pieces = match self {
            Self::Chat => chat::stream_in(),
            Self::Responses => responses::stream_in(),
            Self::Messages => messages::stream_in(),
            Self::Native => native::stream_in(),
            Self::Converse => converse::stream_in(),
        };
        Box::new(SequencedStream::new(pieces))
    }

    /// Writes a client's stream.
    pub fn stream_out(self, context: ResponseContext) -> Box<dyn StreamOut> {
        match self {
            Self::Chat => chat::stream_out(context),
            Self::Responses => responses::stream_out(context),
            Self::Messages => messages::stream_out(context),
            Self::Native => native::stream_out(context),
            Self::Converse => unreachable!("{NO_CLIENT}"),
        }
    }

    /// The error carried inside an answer document (responses).
    pub fn failure_within(self, answer: &Value) -> Option<Failure> {
        let is_failed = self == Self::Responses && answer["status"] == "failed";
        is_failed.then(|| failure::of_value(&answer["error"]))
    }

    /// Reads a provider's error. `body`: as received; it may be anything.
    pub fn failure_in(self, status: u16, body: &[u8]) -> Failure {
        if self == Self::Converse {
            return converse::failure_in(status, body);
        }
        Failure { beyond: failure::beyond(self, body).map(Box::new), ..failure::read(status, body) }
    }
}

#[cfg(test)]
mod tests;
