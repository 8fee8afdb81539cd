//! The neutral form of a request, its answer and its stream, where the wire protocols meet. Each
//! protocol translates to and from it; no protocol knows another.
//!
//! Nothing is dropped silently: every part of a conversation knows where the client wrote it ([`Located::at`],
//! `at`), and writing a request reports the places that the target can't express.

mod answer;

use std::any::Any;
use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::{fmt, ptr};

use serde_json::{Map, Number, Value};

pub use self::answer::{
    Answer, Choice, Citation, Delta, Failure, FailureKind, FinishReason, ProviderExtra, Usage,
};

/// A wire protocol for text models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Protocol {
    /// `POST /v1/chat/completions`.
    #[default]
    Chat,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/messages`.
    Messages,
    /// `POST /v1beta/models/{model}:generateContent`.
    Native,
    /// `POST /model/{model}/converse`, of upstreams only: no client speaks it.
    Converse,
    /// A protocol that another crate implements.
    External(&'static ExternalProtocol),
}

/// The identity of a protocol that another crate implements: a `static`, of which each protocol has one.
pub struct ExternalProtocol {
    /// The `ExternalCodec`. The conversation knows protocols only by name, since codecs are made of conversations.
    pub(crate) codec: &'static (dyn Any + Send + Sync),
}

impl PartialEq for ExternalProtocol {
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for ExternalProtocol {}

impl Hash for ExternalProtocol {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        ptr::from_ref(self).hash(hasher);
    }
}

impl fmt::Debug for ExternalProtocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ExternalProtocol").finish_non_exhaustive()
    }
}

/// Where the client wrote something: a JSON Pointer into its request.
pub type JsonPointer = Cow<'static, str>;

/// A value and where the client wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Located<T> {
    /// What the client wrote.
    pub value: T,
    /// Its place in the request; for a part of an answer, its place in the provider's document.
    pub at: JsonPointer,
}

impl<T> Located<T> {
    /// Pairs a value with its place.
    pub fn new(value: T, at: impl Into<JsonPointer>) -> Self {
        Self { value, at: at.into() }
    }
}

/// A request for the next turn of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    /// The protocol of the request. [`extra`](Self::extra) and unknown kinds belong to it.
    pub source: Protocol,
    /// The model name at the target.
    pub model: String,
    /// All turns in order, including instructions.
    pub turns: Vec<Turn>,
    /// The tools the model may call, in the client's order.
    pub tools: Vec<Tool>,
    /// Which tools the model may or must call. `None`: the request doesn't say.
    pub tool_choice: Option<Located<ToolChoice>>,
    /// Whether the model may make several calls in one turn. `None`: the request doesn't say.
    pub parallel_tool_calls: Option<Located<bool>>,
    /// Format of the answer's text. `None`: the request doesn't say.
    pub format: Option<Located<Format>>,
    /// Maximum number of tokens to generate.
    pub max_tokens: Option<Located<u64>>,
    /// Texts that end the answer when the model generates one of them.
    pub stop: Vec<Located<String>>,
    /// How the next token is chosen.
    pub sampling: Sampling,
    /// How much the model thinks, and whether it shows its thoughts.
    pub reasoning: Reasoning,
    /// Number of answers.
    pub choices: Option<Located<u64>>,
    /// Log probabilities of the text, with this many alternatives per token.
    pub logprobs: Option<Located<u64>>,
    /// Key-value pairs that the provider stores with the answer.
    pub metadata: Option<Located<Map<String, Value>>>,
    /// An id of the end user on whose behalf the request is made.
    pub user: Option<Located<String>>,
    /// Service tier as chat and responses name it, such as `auto`, `default`, `flex`. `None`: not given.
    pub service_tier: Option<Located<String>>,
    /// Length of the answer: `low`, `medium`, `high`.
    pub verbosity: Option<Located<String>>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Fields without a neutral form, which only the request's protocol understands.
    pub extra: Vec<Located<Value>>,
    /// Fields that mean nothing to another protocol, such as an item's status, null, or what the gateway
    /// handles itself. They are written back to the request's own protocol; dropping them isn't reported.
    pub own: Vec<Located<Value>>,
}

impl Conversation {
    /// The place of the first text, if the conversation consists only of empty texts.
    pub fn only_empty_text(&self) -> Option<&JsonPointer> {
        let is_empty = |part: &Part| matches!(&part.kind, PartKind::Text(text) if text.trim().is_empty());
        let mut parts = self.turns.iter().flat_map(|turn| &turn.parts);
        let first = parts.next().filter(|first| is_empty(first))?;
        parts.all(is_empty).then_some(&first.at)
    }
}

/// Sampling parameters: numbers as the client wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampling {
    /// Randomness of the choice of tokens. `None`, here and below: the request doesn't set it.
    pub temperature: Option<Located<Number>>,
    /// Only the most likely tokens up to this total probability are considered.
    pub top_p: Option<Located<Number>>,
    /// Only this many of the most likely tokens are considered.
    pub top_k: Option<Located<Number>>,
    /// Penalty for a token that grows with the number of times it has occurred.
    pub frequency_penalty: Option<Located<Number>>,
    /// Penalty for a token that has occurred at all.
    pub presence_penalty: Option<Located<Number>>,
    /// Seed that makes the sampling repeatable where a provider supports it.
    pub seed: Option<Located<Number>>,
}

/// How much a model thinks before it answers, and how much of that it shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reasoning {
    /// `none`, `minimal`, `low`, `medium`, `high`, or any other value the client sent.
    pub effort: Option<Located<String>>,
    /// Limit for the thinking, in tokens. `None`: the request gives none.
    pub budget: Option<Located<ThinkingBudget>>,
    /// Whether the answer includes the reasoning or a summary: `auto`, `concise`, `detailed`, `none`.
    pub summary: Option<Located<String>>,
    /// Whether the request's protocol shows thoughts by default.
    pub is_shown: bool,
}

/// How many tokens a model may spend on thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingBudget {
    /// No thinking.
    Off,
    /// At most this many tokens.
    Tokens(u64),
    /// The model decides.
    Adaptive,
}

/// A turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Place of the message, item or content it comes from. Several turns may come from one.
    pub at: JsonPointer,
    /// Who is speaking.
    pub role: Role,
    /// Name of the author, if several share a role.
    pub name: Option<Located<String>>,
    /// Its contents, in order.
    pub parts: Vec<Part>,
}

/// Who is speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions with the `system` role, or from the request's own field for them.
    System,
    /// Instructions with the `developer` role, which only chat and responses know.
    Developer,
    /// The client, on behalf of its user.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Where the client, or for an answer the provider, wrote it.
    pub at: JsonPointer,
    /// What it contains.
    pub kind: PartKind,
    /// How long the provider should cache the conversation up to here, as a field of the messages protocol.
    pub cache: Option<Located<Value>>,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum PartKind {
    /// Plain text.
    Text(String),
    /// The text of a refusal.
    Refusal(String),
    /// An image.
    Image(Media),
    /// An audio recording.
    Audio(Media),
    /// A document, or any medium that is neither an image nor audio.
    File(Media),
    /// A call by the model.
    Call(ToolCall),
    /// What a tool returned for a call.
    Result(ToolResult),
    /// What the model thought, or the proof of it.
    Thought(Thought),
    /// A kind that only the request's protocol knows.
    Other(Value),
}

/// An image, audio or document.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// The content itself, or where the provider finds it.
    pub source: MediaSource,
    /// Media type such as `image/png`, if known.
    pub media_type: Option<String>,
    /// File name.
    pub name: Option<Located<String>>,
    /// `low`, `high` or `auto`, for images.
    pub detail: Option<Located<String>>,
}

/// Where the media is.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaSource {
    /// In the request, as base64.
    Inline(String),
    /// At a URL that the provider fetches.
    Url(String),
    /// A file stored at the provider.
    FileId(String),
}

/// A tool call by the model.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The id by which a result refers to the call.
    pub id: String,
    /// Name of the called tool.
    pub name: String,
    /// The input of the call.
    pub input: Input,
    /// Opaque proof of the thoughts that led to the call. It must come back unchanged.
    pub signature: Option<String>,
}

/// The input of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Arguments of a function: JSON text as the model wrote it.
    Json(String),
    /// Text of a custom tool.
    Text(String),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Id of the call that it answers.
    pub call_id: String,
    /// The tool's name, if the conversation has it.
    pub name: Option<String>,
    /// Text, images and files.
    pub parts: Vec<Part>,
    /// Where the client marks the call as failed.
    pub failed: Option<JsonPointer>,
    /// Whether the tool is a custom tool.
    pub custom: bool,
}

/// What the model thought before it answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thought {
    /// The provider's id for it. `None`: the provider or its protocol gives none.
    pub id: Option<String>,
    /// As much as the provider shows: the texts of one thought, in order.
    pub text: Vec<String>,
    /// Whether the text is a summary.
    pub summary: bool,
    /// Opaque content, or the proof of it. It must come back unchanged.
    pub signature: Option<String>,
    /// Whether the content is hidden and only the opaque form exists.
    pub redacted: bool,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// Where the client declared it.
    pub at: JsonPointer,
    /// What kind of tool it is, and its definition.
    pub kind: ToolKind,
    /// Where the schema of its arguments, or the grammar of its text, would be.
    pub schema_at: JsonPointer,
    /// How long the provider should cache the request up to here, as in [`Part::cache`].
    pub cache: Option<Located<Value>>,
}

/// The kind of a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// A function whose arguments are JSON.
    Function {
        /// Name by which the model calls it.
        name: String,
        /// What it does, for the model. `None`: not given.
        description: Option<String>,
        /// JSON Schema of the arguments.
        parameters: Option<Value>,
        /// Whether the provider must make the arguments match the schema. `None`: the request doesn't say.
        strict: Option<Located<bool>>,
    },
    /// A tool that takes text, constrained by a grammar if one is given.
    Custom {
        /// Name by which the model calls it.
        name: String,
        /// What it does, for the model. `None`: not given.
        description: Option<String>,
        /// Format of its text, such as a grammar, in the form of the responses protocol. `None`: not given.
        format: Option<Value>,
    },
    /// A tool that only the request's protocol knows, such as the provider's search.
    Other(Value),
}

/// Which tools the model may or must call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice {
    /// The model decides whether to call any.
    Auto,
    /// No calls.
    None,
    /// At least one.
    Required,
    /// This function, by name.
    Function(String),
    /// This custom tool, by name.
    Custom(String),
    /// Some of the tools.
    Allowed {
        /// Names of the tools that may be called.
        names: Vec<String>,
        /// Whether at least one of them must be called.
        required: bool,
    },
    /// A choice that only the request's protocol knows.
    Other(Value),
}

/// The format of the text.
#[derive(Debug, Clone, PartialEq)]
pub enum Format {
    /// Plain text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that matches a schema.
    JsonSchema {
        /// Name of the schema. `None`: the request's protocol has none.
        name: Option<String>,
        /// What the format is for, for the model. `None`: not given.
        description: Option<Located<String>>,
        /// The JSON Schema.
        schema: Value,
        /// Where the client wrote it.
        schema_at: JsonPointer,
        /// Whether the provider must enforce the schema. `None`: the request doesn't say.
        strict: Option<Located<bool>>,
    },
    /// One of these texts.
    OneOf(Vec<String>),
    /// A format that only the request's protocol knows.
    Other(Value),
}
