//! The wire protocols. Each translates to and from the neutral form (`conversation.rs`), in both directions:
//! pure functions of each protocol's `Codec`, never one per pair. A protocol that only upstreams speak lacks those of clients.
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
//! Errors have the same two directions: `failure_in`, and the gateway's `ApiError` for the client. What is passed through instead
//! is inspected (`inspect.rs`), and its usage is read by the same code.
//!
//! The crate does no I/O. It has no stable interface: it is a part of the crate `gatewright-gateway`.

mod answer_adapter;
mod answer_format;
mod cache_marks;
mod calls;
mod capabilities;
mod chat;
mod citations;
pub mod codec;
pub mod conversation;
mod converse;
mod deviations;
mod effort;
mod embeddings;
mod failure;
mod frames;
pub mod grammar;
mod http_binding;
pub mod inspect;
pub mod json;
pub mod judge;
pub mod lazy_json;
mod lost_content;
mod media;
mod members;
mod messages;
mod model_rules;
mod native;
mod output_estimate;
mod pieces;
mod proof;
mod provider_extra;
mod request_members;
mod responses;
mod sequence;
mod stop_sequences;
mod stream_error;
mod surrogates;
mod thoughts;
mod tool_answers;
mod tool_calls;
mod tool_choice;
mod tool_schema;
pub mod tree;
mod turns;
mod usage_object;
mod user;
mod videos;
mod whole_json;

use gatewright::operations;
use serde_json::Value;
use serde_json::value::RawValue;

pub use self::answer_adapter::AnswerAdapter;
pub use self::capabilities::{CallIdForm, Capabilities, Roles, Thinking, TokenLimit};
pub use self::chat::has_functions;
pub use self::embeddings::{EmbeddingsCodec, ProviderEmbeddings};
pub use self::failure::code_of;
pub use self::http_binding::{Action, HttpBinding, ModelListQuery, PlainAction, StreamForm};
pub use self::lost_content::{LostContent, lost_content};
pub use self::output_estimate::estimated_output;
pub use self::pieces::pieces;
pub use self::proof::{Marking, mark};
use self::provider_extra::AnswerExtra;
pub use self::request_members::RequestMembers;
use self::sequence::SequencedStream;
pub use self::sequence::failure_of;
pub use self::stream_error::StreamError;
pub use self::surrogates::mended as without_half_characters;
use self::turns::ArrangedConversation;
pub use self::videos::{Finished, Report, VideoDimensions, VideoForm, VideoStage, public_seconds};
use crate::codec::{AnswerRules, ClientCodec, Codec, ExternalCodec, ProviderRules};
use crate::conversation::{
    Answer, Conversation, Delta, ExternalProtocol, Failure, JsonPointer, Protocol, Usage,
};
use crate::inspect::AnswerMembers;

/// Why a client's documents are never of such a protocol.
const NO_CLIENT: &str = "no client speaks this protocol";

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

impl ExternalProtocol {
    /// A protocol with this implementation.
    pub const fn new(codec: &'static ExternalCodec) -> Self {
        Self { codec }
    }

    fn codec(&self) -> &ExternalCodec {
        self.codec.downcast_ref().expect("new is the only way to make one")
    }
}

/// The registry of protocols: what isn't in their folders.
impl Protocol {
    /// Those of this crate that clients speak.
    pub const OF_CLIENTS: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Native];
    /// Those of this crate that upstreams speak.
    pub const OF_UPSTREAMS: [Self; 5] =
        [Self::Chat, Self::Responses, Self::Messages, Self::Native, Self::Converse];

    fn codec(self) -> &'static dyn Codec {
        match self {
            Self::Chat => &chat::ChatCodec,
            Self::Responses => &responses::ResponsesCodec,
            Self::Messages => &messages::MessagesCodec,
            Self::Native => &native::NativeCodec,
            Self::Converse => &converse::ConverseCodec,
            Self::External(external) => external.codec().codec,
        }
    }

    /// None: only upstreams speak it.
    fn client_codec(self) -> Option<&'static dyn ClientCodec> {
        match self {
            Self::Chat => Some(&chat::ChatCodec),
            Self::Responses => Some(&responses::ResponsesCodec),
            Self::Messages => Some(&messages::MessagesCodec),
            Self::Native => Some(&native::NativeCodec),
            Self::Converse => None,
            Self::External(external) => external.codec().client,
        }
    }

    /// That of an operation's requests. None: they are of no text protocol.
    pub fn of_operation(protocol: operations::Protocol) -> Option<Self> {
        match protocol {
            operations::Protocol::Chat => Some(Self::Chat),
            operations::Protocol::Responses => Some(Self::Responses),
            operations::Protocol::Messages => Some(Self::Messages),
            operations::Protocol::Native => Some(Self::Native),
            operations::Protocol::Plain
            | operations::Protocol::Batch
            | operations::Protocol::Media
            | operations::Protocol::Models => None,
        }
    }
}

impl Protocol {
    /// Its name, as in the specification's `x-protocol`.
    pub fn name(self) -> &'static str {
        self.codec().name()
    }

    /// What its providers accept.
    pub fn rules(self) -> &'static ProviderRules {
        self.codec().rules()
    }

    /// What its answers can express. None: only upstreams speak it.
    pub fn answer_rules(self) -> Option<&'static AnswerRules> {
        self.client_codec().map(ClientCodec::answer_rules)
    }

    /// The document with the number of tokens of a request.
    ///
    /// # Panics
    /// No client speaks the protocol.
    pub fn token_count(self, tokens: usize) -> Value {
        self.client_codec().expect(NO_CLIENT).token_count(tokens)
    }

    /// None: only upstreams speak it.
    fn answer_members(self) -> Option<AnswerMembers> {
        self.client_codec().map(ClientCodec::answer_members)
    }

    /// Reads a client's request that has passed schema validation. `model` and `stream` come from the path in
    /// the native protocol, from the body in the others.
    pub fn request_in(
        self,
        body: Value,
        model: &str,
        stream: bool,
    ) -> Result<Conversation, MalformedDocument> {
        let codec = self.client_codec().ok_or_else(|| MalformedDocument(NO_CLIENT.to_owned()))?;
        codec.request_in(body, model, stream)
    }

    /// Writes a provider's request.
    pub fn request_out(self, conversation: &Conversation, defaults: Defaults) -> EncodedRequest {
        if conversation.source == self {
            return self.codec().request_out(conversation, defaults);
        }
        let ArrangedConversation { conversation, lost } = turns::arrange(conversation, self, defaults);
        let mut outgoing = self.codec().request_out(&conversation, defaults);
        outgoing.dropped.extend(lost);
        outgoing
    }

    /// Reads a provider's answer.
    pub fn answer_in(self, body: Value) -> Result<Answer, MalformedDocument> {
        self.codec().answer_in(body)
    }

    /// Writes a client's answer.
    ///
    /// # Panics
    /// No client speaks the protocol.
    pub fn answer_out(self, mut answer: Answer, context: &ResponseContext) -> Value {
        if answer.source != self {
            sequence::settle_calls(&mut answer);
            sequence::settle_ends(&mut answer);
        }
        let beyond = AnswerExtra::take(&mut answer, self);
        let mut document = self.client_codec().expect(NO_CLIENT).answer_out(answer, context);
        beyond.add(&mut document);
        document
    }

    /// Reads a provider's stream and reorders it into whole parts (`sequence.rs`).
    pub fn stream_in(self) -> Box<dyn StreamIn> {
        Box::new(SequencedStream::new(self.codec().stream_in()))
    }

    /// Writes a client's stream.
    ///
    /// # Panics
    /// No client speaks the protocol.
    pub fn stream_out(self, context: ResponseContext) -> Box<dyn StreamOut> {
        self.client_codec().expect(NO_CLIENT).stream_out(context)
    }

    /// Reads a usage object. `before`: what the answer reported earlier. None: it isn't an object, or counts nothing.
    pub fn usage_in(self, usage: &RawValue, before: Usage) -> Option<Usage> {
        self.codec().usage_in(usage, before)
    }

    /// The error carried inside an answer document (responses).
    pub fn failure_within(self, answer: &Value) -> Option<Failure> {
        self.codec().failure_within(answer)
    }

    /// Reads a provider's error. `body`: as received; it may be anything.
    pub fn failure_in(self, status: u16, body: &[u8]) -> Failure {
        self.codec().failure_in(status, body)
    }
}

#[cfg(test)]
mod tests;
