//! The neutral form of a request, its answer and its stream, where the wire protocols meet. Each
//! protocol translates to and from it (`protocols/`); no protocol knows another.
//!
//! Nothing is dropped silently: every part of a conversation knows where the client wrote it ([`Located::at`],
//! `at`), and writing a request reports the places that the target can't express.

mod answer;

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

pub(crate) use self::answer::{
    Answer, Choice, Citation, Delta, Failure, FailureKind, FinishReason, ProviderExtra, Usage,
};

/// A wire protocol for text models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Protocol {
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
}

/// Where the client wrote something: a JSON Pointer into its request.
pub(crate) type JsonPointer = Cow<'static, str>;

/// A value and where the client wrote it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) at: JsonPointer,
}

impl<T> Located<T> {
    pub(crate) fn new(value: T, at: impl Into<JsonPointer>) -> Self {
        Self { value, at: at.into() }
    }
}

/// A request for the next turn of a conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Conversation {
    /// The protocol of the request. [`extra`](Self::extra) and unknown kinds belong to it.
    pub(crate) source: Protocol,
    /// The model name at the target.
    pub(crate) model: String,
    /// All turns in order, including instructions.
    pub(crate) turns: Vec<Turn>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) tool_choice: Option<Located<ToolChoice>>,
    pub(crate) parallel_tool_calls: Option<Located<bool>>,
    pub(crate) format: Option<Located<Format>>,
    /// Maximum number of tokens to generate.
    pub(crate) max_tokens: Option<Located<u64>>,
    pub(crate) stop: Vec<Located<String>>,
    pub(crate) sampling: Sampling,
    pub(crate) reasoning: Reasoning,
    /// Number of answers.
    pub(crate) choices: Option<Located<u64>>,
    /// Log probabilities of the text, with this many alternatives per token.
    pub(crate) logprobs: Option<Located<u64>>,
    /// Key-value pairs that the provider stores with the answer.
    pub(crate) metadata: Option<Located<Map<String, Value>>>,
    /// An id of the end user on whose behalf the request is made.
    pub(crate) user: Option<Located<String>>,
    pub(crate) service_tier: Option<Located<String>>,
    /// Length of the answer: `low`, `medium`, `high`.
    pub(crate) verbosity: Option<Located<String>>,
    /// Whether the answer is streamed.
    pub(crate) stream: bool,
    /// Fields without a neutral form, which only the request's protocol understands.
    pub(crate) extra: Vec<Located<Value>>,
    /// Fields that mean nothing to another protocol, such as an item's status, null, or what the gateway
    /// handles itself. They are written back to the request's own protocol; dropping them isn't reported.
    pub(crate) own: Vec<Located<Value>>,
}

impl Conversation {
    /// The place of the first text, if the conversation consists only of empty texts.
    pub(crate) fn only_empty_text(&self) -> Option<&JsonPointer> {
        let is_empty = |part: &Part| matches!(&part.kind, PartKind::Text(text) if text.trim().is_empty());
        let mut parts = self.turns.iter().flat_map(|turn| &turn.parts);
        let first = parts.next().filter(|first| is_empty(first))?;
        parts.all(is_empty).then_some(&first.at)
    }
}

/// Sampling parameters: numbers as the client wrote them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) temperature: Option<Located<Number>>,
    pub(crate) top_p: Option<Located<Number>>,
    pub(crate) top_k: Option<Located<Number>>,
    pub(crate) frequency_penalty: Option<Located<Number>>,
    pub(crate) presence_penalty: Option<Located<Number>>,
    pub(crate) seed: Option<Located<Number>>,
}

/// How much a model thinks before it answers, and how much of that it shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reasoning {
    /// `none`, `minimal`, `low`, `medium`, `high`, or any other value the client sent.
    pub(crate) effort: Option<Located<String>>,
    pub(crate) budget: Option<Located<ThinkingBudget>>,
    /// Whether the answer includes the reasoning or a summary: `auto`, `concise`, `detailed`, `none`.
    pub(crate) summary: Option<Located<String>>,
    /// Whether the request's protocol shows thoughts by default.
    pub(crate) is_shown: bool,
}

/// How many tokens a model may spend on thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ThinkingBudget {
    /// No thinking.
    Off,
    Tokens(u64),
    /// The model decides.
    Adaptive,
}

/// A turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Turn {
    pub(crate) at: JsonPointer,
    pub(crate) role: Role,
    /// Name of the author, if several share a role.
    pub(crate) name: Option<Located<String>>,
    pub(crate) parts: Vec<Part>,
}

/// Who is speaking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    Developer,
    User,
    Assistant,
    /// Results of tool calls.
    Tool,
}

/// A part of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    pub(crate) at: JsonPointer,
    pub(crate) kind: PartKind,
    /// How long the provider should cache the conversation up to here, as a field of the messages protocol.
    pub(crate) cache: Option<Located<Value>>,
}

/// The content of a part.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PartKind {
    Text(String),
    Refusal(String),
    Image(Media),
    Audio(Media),
    File(Media),
    Call(ToolCall),
    Result(ToolResult),
    Thought(Thought),
    /// A kind that only the request's protocol knows.
    Other(Value),
}

/// An image, audio or document.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_field_names, reason = "media type is the term of the field")]
pub(crate) struct Media {
    pub(crate) source: MediaSource,
    /// Media type such as `image/png`, if known.
    pub(crate) media_type: Option<String>,
    /// File name.
    pub(crate) name: Option<Located<String>>,
    /// `low`, `high` or `auto`, for images.
    pub(crate) detail: Option<Located<String>>,
}

/// Where the media is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MediaSource {
    /// In the request, as base64.
    Inline(String),
    /// At a URL that the provider fetches.
    Url(String),
    /// A file stored at the provider.
    FileId(String),
}

/// A tool call by the model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Input,
    /// Opaque proof of the thoughts that led to the call. It must come back unchanged.
    pub(crate) signature: Option<String>,
}

/// The input of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    /// Arguments of a function: JSON text as the model wrote it.
    Json(String),
    /// Text of a custom tool.
    Text(String),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolResult {
    pub(crate) call_id: String,
    /// The tool's name, if the conversation has it.
    pub(crate) name: Option<String>,
    /// Text, images and files.
    pub(crate) parts: Vec<Part>,
    /// Where the client marks the call as failed.
    pub(crate) failed: Option<JsonPointer>,
    /// Whether the tool is a custom tool.
    pub(crate) custom: bool,
}

/// What the model thought before it answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Thought {
    pub(crate) id: Option<String>,
    /// As much as the provider shows: the texts of one thought, in order.
    pub(crate) text: Vec<String>,
    /// Whether the text is a summary.
    pub(crate) summary: bool,
    /// Opaque content, or the proof of it. It must come back unchanged.
    pub(crate) signature: Option<String>,
    /// Whether the content is hidden and only the opaque form exists.
    pub(crate) redacted: bool,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    pub(crate) at: JsonPointer,
    pub(crate) kind: ToolKind,
    pub(crate) cache: Option<Located<Value>>,
}

/// The kind of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolKind {
    Function {
        name: String,
        description: Option<String>,
        /// JSON Schema of the arguments.
        parameters: Option<Value>,
        strict: Option<Located<bool>>,
    },
    /// A tool that takes text, constrained by a grammar if one is given.
    Custom { name: String, description: Option<String>, format: Option<Value> },
    /// A tool that only the request's protocol knows, such as the provider's search.
    Other(Value),
}

/// Which tools the model may or must call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ToolChoice {
    Auto,
    None,
    /// At least one.
    Required,
    Function(String),
    Custom(String),
    /// Some of the tools.
    Allowed {
        names: Vec<String>,
        required: bool,
    },
    Other(Value),
}

/// The format of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Format {
    Text,
    /// Any JSON object.
    JsonObject,
    JsonSchema {
        name: Option<String>,
        description: Option<Located<String>>,
        schema: Value,
        strict: Option<Located<bool>>,
    },
    /// One of these texts.
    OneOf(Vec<String>),
    Other(Value),
}
