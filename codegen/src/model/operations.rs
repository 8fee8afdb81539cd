//! What a client can ask for: operations, their parameters and their streams.

use serde::Deserialize;
use serde_json::Value;

use super::spec_enum::{SpecEnum, spec_enum};
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
    /// The body of the response, if it is something other than JSON.
    pub non_json: Option<NonJsonBody>,
    /// The text that the response may be instead of JSON.
    pub text_form: Option<TextForm>,
    pub stream: Option<Stream>,
    pub protocol: Protocol,
    pub error_style: ErrorStyle,
    /// Kind of the models that it serves.
    pub models: Option<ModelKind>,
    /// How its body holds the conversation.
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
    /// `x-example-from` of a parameter or of a member of the body: the earlier call whose answer the example takes it from.
    pub prerequisite: Option<PrerequisiteCall>,
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
    /// Members of the body that it takes in another type.
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

    /// What switches streaming on, if a member of the body does.
    pub(crate) fn stream_switch(&self) -> Option<&StreamSwitch> {
        match self.stream.as_ref().map(|stream| &stream.mode) {
            Some(StreamMode::Switched(switch)) => Some(switch),
            _ => None,
        }
    }

    /// The body member that switches streaming on, if there is one.
    pub(crate) fn stream_parameter(&self) -> Option<&str> {
        self.stream_switch().map(|switch| switch.parameter.as_str())
    }

    /// Whether the response is always a stream.
    pub(crate) fn always_streams(&self) -> bool {
        matches!(self.stream.as_ref().map(|stream| &stream.mode), Some(StreamMode::Always))
    }
}

/// The body of a response that is something other than JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NonJsonBody {
    /// No body: 204.
    Nothing,
    /// Text of this media type.
    Text(String),
    /// Bytes of this media type, or of several with commas between them, as a header of a request lists them.
    Bytes(String),
}

/// Text that a response is instead of JSON, if a member of the request body asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TextForm {
    /// The member: `response_format`.
    pub parameter: String,
    /// Its values that ask for text.
    pub values: Vec<String>,
    pub media_type: String,
}

spec_enum! {
    /// HTTP methods the specification may use.
    HttpMethod {
        Get = "get",
        Post = "post",
        Put = "put",
        Patch = "patch",
        Delete = "delete",
    }
}

impl HttpMethod {
    /// `GET`.
    pub(crate) fn upper(self) -> String {
        self.name().to_uppercase()
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
    pub final_document: Option<FinalDocument>,
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
    /// A member of the request body switches it on.
    Switched(StreamSwitch),
}

/// A member of a request body that switches streaming on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamSwitch {
    pub parameter: String,
    /// The word that does; without one, the member is a boolean.
    pub word: Option<String>,
}

impl StreamSwitch {
    /// The value that switches streaming on.
    pub(crate) fn on(&self) -> Value {
        self.word.as_deref().map_or(Value::Bool(true), Value::from)
    }
}

spec_enum! {
    /// `x-protocol`: the family of requests and responses.
    Protocol {
        Chat = "chat",
        Responses = "responses",
        Messages = "messages",
        Native = "native",
        Plain = "plain",
        Batch = "batch",
        Media = "media",
        Models = "models",
    }
}

impl Protocol {
    /// Whether its requests go to text models.
    pub(crate) fn is_of_text(self) -> bool {
        matches!(self, Self::Chat | Self::Responses | Self::Messages | Self::Native)
    }

    /// Whether nothing but an event of a certain name ends its streams.
    pub(crate) fn ends_by_name(self) -> bool {
        matches!(self, Self::Responses | Self::Messages)
    }
}

spec_enum! {
    /// `x-error-style`: the shape of an error body.
    ErrorStyle {
        Standard = "standard",
        Native = "native",
        Messages = "messages",
    }
}

spec_enum! {
    /// `x-models`: the part of the catalog whose models an operation serves.
    ModelKind {
        Text = "text",
        Embedding = "embedding",
        Rerank = "rerank",
        Moderation = "moderation",
        Speech = "speech",
        Transcription = "transcription",
        Image = "image",
        Video = "video",
    }
}

spec_enum! {
    /// `x-conversation`: how a body holds its conversation.
    Conversation {
        Messages = "messages",
        Items = "items",
        Blocks = "blocks",
    }
}
