//! Describes an operation: its method, path, parameters and how it streams. The table of all operations is generated
//! (`generated/operations.rs`); this file defines a row.

use serde_json::Value;

/// One operation of the specification. Rows live in [`crate::api::operations`]; only generated code makes them, and any
/// release may add a field.
///
/// ```
/// use gatewright::operations;
///
/// let operation = &operations::GENERATE_CONTENT;
/// assert_eq!(operation.method.as_str(), "POST");
/// assert_eq!(operation.path, "/v1beta/models/{model}:generateContent");
/// assert_eq!(operation.path_parameters, ["model"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// snake_case and unique: `create_chat_completion`.
    pub id: &'static str,
    /// HTTP method.
    pub method: Method,
    /// Path as in the specification: `/v1beta/models/{model}:generateContent`.
    pub path: &'static str,
    /// Names in braces in `path`, in order.
    pub path_parameters: &'static [&'static str],
    /// The path parameters whose values may contain slashes, such as model ids.
    pub slashed_parameters: &'static [&'static str],
    /// Query parameters a caller may set.
    pub query_parameters: &'static [&'static str],
    /// Query parameters whose list of values is sent as one value, with commas between them.
    pub joined_query: &'static [&'static str],
    /// Headers that a caller may set, in addition to those of the transport.
    pub header_parameters: &'static [&'static str],
    /// Query parameters that are always sent, with their value.
    pub fixed_query: &'static [(&'static str, &'static str)],
    /// Whether a body is sent.
    pub has_body: bool,
    /// Members of a body that is sent as `multipart/form-data`; empty if it is sent as JSON.
    pub form: &'static [FormMember],
    /// The kind of a complete response's body; for an operation that only streams, the kind of an event.
    pub response: ResponseBody,
    /// The text that the response is instead, if a member of the body asks for it.
    pub text_form: Option<TextForm>,
    /// Whether and how the response can be a stream.
    pub stream: StreamMode,
    /// Data of the event that ends the stream (`[DONE]`); `None` if a terminal event or the end of the connection ends
    /// it.
    pub terminator: Option<&'static str>,
    /// Family of request and response forms.
    pub protocol: Protocol,
    /// Form of an error body.
    pub error_style: ErrorStyle,
    /// Names of the events that are always the last of a stream; empty if other signs end the stream.
    pub last_events: &'static [&'static str],
    /// Kind of the catalog's models that the operation serves.
    pub models: Option<ModelKind>,
    /// The form in which its body holds a conversation.
    pub conversation: Option<Conversation>,
    /// Member of its body that holds the URL for notifications.
    pub webhook_url: Option<&'static str>,
    /// The operation's name in traces (`gen_ai.operation.name`).
    pub inference: Option<&'static str>,
    /// Member of its response that iterating over the response yields the items of.
    pub iterable: Option<&'static str>,
    /// Path of the resource on the client: `chat.completions`.
    pub resource: &'static str,
    /// The method's name: `create`.
    pub name: &'static str,
    /// Sections of the specification that state it, or `ours` for an addition of this gateway.
    pub source: &'static str,
}

impl Operation {
    /// `chat.completions.create`, the name that callers use.
    ///
    /// ```
    /// use gatewright::operations;
    ///
    /// let name = operations::CREATE_CHAT_COMPLETION.qualified_name();
    /// assert_eq!(name, "chat.completions.create");
    /// ```
    pub fn qualified_name(&self) -> String {
        if self.resource.is_empty() {
            self.name.to_owned()
        } else {
            format!("{}.{}", self.resource, self.name)
        }
    }
}

/// A member of a body that is sent as `multipart/form-data`.
///
/// ```
/// use gatewright::operations::CREATE_TRANSCRIPTION;
///
/// let files: Vec<_> = CREATE_TRANSCRIPTION.form.iter().filter(|member| member.is_file).collect();
/// assert_eq!(files[0].name, "file");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormMember {
    /// Name of the member: `timestamp_granularities`.
    pub name: &'static str,
    /// Name of its field in the form: `timestamp_granularities[]`. A list has one such field for each item.
    pub field: &'static str,
    /// Whether it is a file, or a list of files.
    pub is_file: bool,
    /// Whether it is a list.
    pub is_list: bool,
}

/// HTTP methods of the specification.
///
/// ```
/// use gatewright::operations::{LIST_MODELS, Method};
///
/// assert_eq!(LIST_MODELS.method, Method::Get);
/// assert_eq!(http::Method::from(Method::Get), http::Method::GET);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "client", derive(serde::Deserialize), serde(rename_all = "UPPERCASE"))]
pub enum Method {
    /// GET
    Get,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    /// The name on the wire: `"GET"`.
    ///
    /// ```
    /// use gatewright::operations::LIST_MODELS;
    ///
    /// assert_eq!(format!("{} {}", LIST_MODELS.method.as_str(), LIST_MODELS.path), "GET /v1/models");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
        }
    }
}

/// The kind of a successful response's body.
///
/// ```
/// use gatewright::operations::{LIST_MODELS, ResponseBody};
///
/// assert_eq!(LIST_MODELS.response, ResponseBody::Object);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseBody {
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
    /// No content: 204.
    Nothing,
    /// UTF-8 text of this media type.
    Text(&'static str),
    /// Bytes of this media type.
    Bytes(&'static str),
}

impl ResponseBody {
    /// The media type to ask for; errors may have another.
    #[cfg(feature = "client")]
    pub(crate) const fn media_type(self) -> &'static str {
        match self {
            Self::Object | Self::Array | Self::Nothing => "application/json",
            Self::Text(media_type) | Self::Bytes(media_type) => media_type,
        }
    }
}

/// Whether an operation streams.
///
/// ```
/// use gatewright::operations::{CREATE_CHAT_COMPLETION, StreamMode};
///
/// assert_eq!(CREATE_CHAT_COMPLETION.stream, StreamMode::Parameter("stream"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMode {
    /// The response is always one JSON document.
    Never,
    /// The response is always a stream.
    Always,
    /// This boolean member of the body turns streaming on.
    Parameter(&'static str),
    /// This member of the body turns streaming on with this word.
    Word(&'static str, &'static str),
}

impl StreamMode {
    /// The member of the body that turns streaming on, and the value with which it does.
    pub(crate) fn switch(self) -> Option<(&'static str, Value)> {
        match self {
            Self::Never | Self::Always => None,
            Self::Parameter(name) => Some((name, Value::Bool(true))),
            Self::Word(name, word) => Some((name, Value::from(word))),
        }
    }
}

/// Text that a response is instead of JSON, if a member of the body asks for it.
///
/// ```
/// use gatewright::operations::CREATE_TRANSCRIPTION;
///
/// let form = CREATE_TRANSCRIPTION.text_form.unwrap();
/// assert_eq!((form.parameter, form.values), ("response_format", &["text", "srt", "vtt"][..]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    /// The member of the body.
    pub parameter: &'static str,
    /// Its values that ask for text.
    pub values: &'static [&'static str],
    /// The media type of the text.
    pub media_type: &'static str,
}

/// Family of request and response forms (`x-protocol` in the specification).
///
/// ```
/// use gatewright::operations::{ALL, Protocol};
///
/// let ids = ALL.iter().filter(|operation| operation.protocol == Protocol::Messages).map(|operation| operation.id);
/// assert!(ids.eq(["create_message", "count_message_tokens"]));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Chat completions.
    Chat,
    /// Responses and compaction.
    Responses,
    /// Messages.
    Messages,
    /// Native generate-content.
    Native,
    /// Operations with a model whose answers are no turns of a conversation: embeddings, rankings, moderations, speech, transcriptions.
    Plain,
    /// Files and batches of requests.
    Batch,
    /// Images and videos.
    Media,
    /// The model list.
    Models,
}

/// Part of the catalog whose models an operation serves (`x-models` in the specification).
///
/// ```
/// use gatewright::operations::{CREATE_VIDEO, ModelKind};
///
/// assert_eq!(CREATE_VIDEO.models, Some(ModelKind::Video));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelKind {
    /// Models that produce text.
    Text,
    /// Models that produce vectors of texts.
    Embedding,
    /// Models that rank documents.
    Rerank,
    /// Models that decide whether content is harmful.
    Moderation,
    /// Models that read texts aloud.
    Speech,
    /// Models that write down what is said.
    Transcription,
    /// Models that produce images.
    Image,
    /// Models that produce videos.
    Video,
}

/// The form in which a body holds a conversation (`x-conversation` in the specification).
///
/// ```
/// use gatewright::operations::{CREATE_RESPONSE, Conversation};
///
/// assert_eq!(CREATE_RESPONSE.conversation, Some(Conversation::Items));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conversation {
    /// `messages` of the chat protocol.
    Messages,
    /// `input` of the responses protocol, if it is a list of items.
    Items,
    /// `messages` of the messages protocol, whose content may be a list of blocks.
    Blocks,
}

/// Form of an error body (`x-error-style` in the specification).
///
/// ```
/// use gatewright::operations::{ErrorStyle, GENERATE_CONTENT};
///
/// assert_eq!(GENERATE_CONTENT.error_style, ErrorStyle::Native);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorStyle {
    /// `{"error": {message, type, param, code}}`.
    Standard,
    /// `{"error": {code, message, status, details}}`.
    Native,
    /// `{"type": "error", "error": {type, message}}`.
    Messages,
}
