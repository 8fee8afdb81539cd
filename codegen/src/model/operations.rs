//! What a client can ask for: operations, their parameters and their streams.

use serde::Deserialize;
use serde_json::Value;

use super::types::{Constraints, Type};

/// One operation: a method on a path.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    /// snake_case, unique: `create_chat_completion`.
    pub id: String,
    pub method: HttpMethod,
    /// As in the specification: `/v1beta/models/{model}:generateContent`.
    pub path: String,
    pub parameters: Vec<Parameter>,
    /// The request body's schema (always a named object).
    pub request: Option<String>,
    /// Whether the body is sent as a form instead of JSON.
    pub is_form: bool,
    /// The JSON response; `None` for an operation that always streams, or has another response.
    pub response: Option<Type>,
    /// The response, if it is something other than JSON.
    pub plain: Option<Plain>,
    pub stream: Option<Stream>,
    pub protocol: Protocol,
    pub error_style: ErrorStyle,
    /// Kind of the models that it serves.
    pub models: Option<ModelKind>,
    /// The form of the conversation in its body.
    pub conversation: Option<Conversation>,
    /// Member of the body with the URL for notifications.
    pub webhook_url: Option<String>,
    /// Its name in traces.
    pub inference: Option<String>,
    /// Statuses of errors that the specification lists.
    pub error_statuses: Vec<u16>,
    /// Its place on the client: `["chat", "completions"]`.
    pub resource: Vec<String>,
    /// Method name on the resource, snake_case: `create`.
    pub name: String,
    pub summary: String,
    pub description: String,
    pub deprecated: bool,
    /// Section of the source specification, or `ours`.
    pub source: String,
    /// Arguments of an example call for the documentation, by wire name; empty if the specification has none.
    pub example: serde_json::Map<String, Value>,
    /// `x-example-from` of a parameter: the earlier call whose answer the example takes it from.
    pub earlier: Option<PrerequisiteCall>,
    /// `x-helpers`: methods of the clients that are built on this one.
    pub helpers: Vec<Helper>,
}

/// A hand-written method of the clients that takes the arguments of an operation's method, `parse` of `create`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Helper {
    /// snake_case: `run_tools`.
    #[serde(skip)]
    pub name: String,
    /// Members of the body that it takes in a form of its own.
    #[serde(default)]
    pub own: Vec<String>,
    /// The kinds of events that it delivers with additional members.
    #[serde(default)]
    pub extends: Vec<String>,
}

/// The call that an example has to make first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrerequisiteCall {
    /// Wire name of the parameter; that of the document is beside it.
    #[serde(skip)]
    pub argument: String,
    /// Id of the operation that is called first.
    pub operation: String,
    /// The member of its answer.
    pub member: String,
}

impl Operation {
    /// Path parameters, in path order.
    pub(crate) fn path_parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|p| p.location == Location::Path)
    }

    /// Query and header parameters a caller may set (those with a fixed value excluded).
    pub(crate) fn free_parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|p| p.location != Location::Path && p.fixed.is_none())
    }

    /// Headers that a caller may leave out.
    pub(crate) fn optional_headers(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|p| p.location == Location::Header && !p.required)
    }

    /// Query parameters that are always sent with one value, never an argument.
    pub(crate) fn fixed_parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parameters.iter().filter_map(|p| p.fixed.as_deref().map(|value| (p.name.as_str(), value)))
    }

    /// The body member that switches streaming on, if there is one.
    pub(crate) fn stream_parameter(&self) -> Option<&str> {
        match self.stream.as_ref().map(|stream| &stream.mode) {
            Some(StreamMode::Parameter(name)) => Some(name),
            _ => None,
        }
    }

    /// Whether the response is always a stream.
    pub(crate) fn always_streams(&self) -> bool {
        matches!(self.stream.as_ref().map(|stream| &stream.mode), Some(StreamMode::Always))
    }
}

/// A response other than JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plain {
    /// No body: 204.
    Nothing,
    /// Text of this media type.
    Text(String),
    /// Bytes of this media type, or of several with commas between them, as a header of a request lists them.
    Bytes(String),
}

impl Plain {
    /// The content of a media type other than JSON and events: `text/…` is text, any other is bytes.
    pub(crate) fn of_media_type(media_type: &str) -> Self {
        if media_type.starts_with("text/") {
            Self::Text(media_type.to_owned())
        } else {
            Self::Bytes(media_type.to_owned())
        }
    }
}

/// HTTP methods the specification may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum HttpMethod {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// `"GET"`.
    pub(crate) fn upper(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// `"Get"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Get => "Get",
            Self::Post => "Post",
            Self::Put => "Put",
            Self::Patch => "Patch",
            Self::Delete => "Delete",
        }
    }
}

/// A path, query or header parameter.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    /// Wire name: `task_id`, `pageToken`.
    pub name: String,
    pub location: Location,
    pub required: bool,
    /// Always sent with this value, never an argument.
    pub fixed: Option<String>,
    pub encoding: Encoding,
    pub ty: Type,
    pub constraints: Constraints,
    pub default: Option<Value>,
    pub description: String,
    pub deprecated: bool,
    /// Section, or `ours`.
    pub source: String,
}

/// How a parameter's value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As its place has it; a list in a query is one parameter for each item.
    Usual,
    /// `x-slashes`: a value in the path may contain slashes.
    Slashes,
    /// `explode: false`: a list in a query is one value, with commas between its items.
    Joined,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Location {
    Path,
    Query,
    Header,
}

/// How an operation streams.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub mode: StreamMode,
    /// Type of one event's data.
    pub item: Type,
    /// Data of the event that ends the stream: `[DONE]`.
    pub terminator: Option<String>,
    /// Names of the events that end the stream.
    pub last_events: Vec<String>,
    /// The method that reads the stream to its end and returns the whole document.
    pub last: Option<FinalDocument>,
}

/// The whole document that a stream's events add up to.
#[derive(Debug, Clone)]
pub(crate) struct FinalDocument {
    /// The operation's JSON response, else the type of one event.
    pub ty: Type,
    /// Name of the method.
    pub python: String,
    pub node: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamMode {
    Always,
    /// This boolean member of the request body switches it on.
    Parameter(String),
}

/// `x-protocol`: the family of request and response forms called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    Chat,
    Responses,
    Messages,
    Native,
    Plain,
    Media,
    Models,
}

impl Protocol {
    /// Their names in a specification.
    pub(crate) const NAMES: &'static [&'static str] =
        &["chat", "responses", "messages", "native", "plain", "media", "models"];

    /// The one with this name in a specification.
    pub(crate) fn named(name: &str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }

    /// Whether its requests go to text models.
    pub(crate) fn is_of_text(self) -> bool {
        matches!(self, Self::Chat | Self::Responses | Self::Messages | Self::Native)
    }

    /// Whether nothing but an event of a certain name ends its streams.
    pub(crate) fn ends_by_name(self) -> bool {
        matches!(self, Self::Responses | Self::Messages)
    }

    /// `"Chat"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Chat => "Chat",
            Self::Responses => "Responses",
            Self::Messages => "Messages",
            Self::Native => "Native",
            Self::Plain => "Plain",
            Self::Media => "Media",
            Self::Models => "Models",
        }
    }
}

/// `x-error-style`: the form of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ErrorStyle {
    Standard,
    Native,
    Messages,
}

impl ErrorStyle {
    /// `"Standard"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Standard => "Standard",
            Self::Native => "Native",
            Self::Messages => "Messages",
        }
    }
}

/// `x-models`: the part of the catalog whose models an operation serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ModelKind {
    Text,
    Embedding,
    Rerank,
    Moderation,
    Speech,
    Transcription,
    Image,
    Video,
}

impl ModelKind {
    /// `"Text"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Text => "Text",
            Self::Embedding => "Embedding",
            Self::Rerank => "Rerank",
            Self::Moderation => "Moderation",
            Self::Speech => "Speech",
            Self::Transcription => "Transcription",
            Self::Image => "Image",
            Self::Video => "Video",
        }
    }
}

/// `x-conversation`: the form of the conversation in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Conversation {
    Messages,
    Items,
    Blocks,
}

impl Conversation {
    /// `"Messages"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Messages => "Messages",
            Self::Items => "Items",
            Self::Blocks => "Blocks",
        }
    }
}
