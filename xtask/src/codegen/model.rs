//! The API as the emitters see it: operations, schemas, errors and the catalog, resolved and in the
//! order of the specification. Built once by `build.rs`; every emitter is a pure function of [`Api`].
//!
//! Invariants the loader guarantees, so that no emitter has to handle them:
//! - every object type has a name: an inline object is hoisted to `{Parent}{Property}` (array items to
//!   `{Parent}{Property}Item`), as typify names it in Rust;
//! - every [`Type::Ref`] names a member of [`Api::schemas`];
//! - `allOf` is merged; `null` in a type array or a `oneOf` has become [`Type::Nullable`];
//! - identifiers do not collide in any of the three languages.

pub(crate) mod checker;
mod members;
mod parts;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::members::Member;
pub(crate) use self::parts::Part;

use super::catalog::Catalog;
use super::errors::Errors;
use super::home::Home;
use super::options::Options;

/// The whole specification, in the form that emitters need.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    /// The places of the files generated from it.
    pub home: Home,
    pub title: String,
    pub version: String,
    pub description: String,
    /// In the order of the specification.
    pub operations: Vec<Operation>,
    /// Component schemas and hoisted inline objects, in the order of the specification.
    pub schemas: IndexMap<String, Schema>,
    pub webhooks: Vec<Webhook>,
    pub errors: Errors,
    pub catalog: Catalog,
    /// Types of `spec/catalog.schema.json`, the catalog first.
    pub catalog_types: IndexMap<String, Schema>,
    pub options: Options,
    /// Types of `spec/report.schema.json`, the report first.
    pub report: IndexMap<String, Schema>,
    /// Members of the report, for its reference.
    pub report_members: Vec<Member>,
}

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
    /// Section of the source specification, or `ours`.
    pub source: String,
    /// Arguments of an example call for the documentation, by wire name; empty if the specification has none.
    pub example: serde_json::Map<String, Value>,
    /// `x-example-from` of a parameter: the earlier call whose answer the example takes it from.
    pub earlier: Option<Earlier>,
}

/// The call that an example has to make first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Earlier {
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
    /// Bytes of this media type.
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
    /// `x-slashes`: its value in the path may contain slashes.
    pub slashes: bool,
    pub ty: Type,
    pub constraints: Constraints,
    pub default: Option<Value>,
    pub description: String,
    /// Section, or `ours`.
    pub source: String,
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
    pub last: Option<Final>,
}

/// The whole document that a stream's events add up to.
#[derive(Debug, Clone)]
pub(crate) struct Final {
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
    Media,
    Models,
}

impl Protocol {
    /// `"Chat"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Chat => "Chat",
            Self::Responses => "Responses",
            Self::Messages => "Messages",
            Self::Native => "Native",
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
    Image,
    Video,
}

impl ModelKind {
    /// `"Text"`, the variant's name in generated enums.
    pub(crate) fn pascal(self) -> &'static str {
        match self {
            Self::Text => "Text",
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

/// A call the gateway makes to the user's server.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    pub name: String,
    pub payload: Type,
    pub summary: String,
    pub description: String,
    pub source: String,
}

/// A named type.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    /// PascalCase, unique.
    pub name: String,
    pub description: String,
    /// Section, or `ours`.
    pub source: String,
    pub kind: Kind,
    /// Constraints of the schema itself (of an alias).
    pub constraints: Constraints,
    /// Members that are required together, if a response reaches the schema.
    pub rules: Vec<Rule>,
    /// Reached from a request body.
    pub in_request: bool,
    /// Reached from a response, a stream item or a webhook.
    pub in_response: bool,
}

/// Members of a response of which at least one is required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Member and value of the condition, if there is one.
    pub when: Option<(String, String)>,
    /// At least one of these is required.
    pub any_of: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Object(Object),
    Enum(StringEnum),
    Union(Union),
    Alias(Type),
}

#[derive(Debug, Clone)]
pub(crate) struct Object {
    /// In the order of the specification.
    pub fields: Vec<Field>,
    pub additional: Additional,
    /// `x-iterable`: the member whose items iteration over the object yields; `data` of a model list.
    pub iterable: Option<String>,
    /// `x-text`: a member that clients add to a response.
    pub text: Option<JoinedText>,
    /// `x-json-mapping`: requests use the JSON mapping of protocol buffers.
    pub protobuf: bool,
    /// `x-new`: `new` of the type in Rust is written by hand, since it does not take the required members.
    pub new_by_hand: bool,
}

/// `x-text`: a member that is not on the wire: the texts of all parts of one kind, joined. `output_text` of a
/// response is `text` of each part of `output[].content[]` whose `type` is `output_text`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinedText {
    /// Name of the member: `output_text`.
    pub name: String,
    /// Arrays on the way to the parts, outermost first: `["output", "content"]`. Elements without the next one
    /// are passed over.
    pub path: Vec<String>,
    /// `type` of the parts that count.
    #[serde(rename = "type")]
    pub kind: String,
    /// Member of a part that holds its text.
    pub member: String,
    pub description: String,
}

/// What becomes of members that are no field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Additional {
    /// Kept.
    Keep,
    /// Refused.
    Deny,
    /// Kept, each of this type.
    Map(Type),
}

/// Strings from a list; an open list may grow on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StringEnum {
    pub values: Vec<String>,
    /// `x-meanings`: a line for each value, in the same order; empty if the schema has none.
    pub meanings: Vec<String>,
    pub open: bool,
}

/// One of several types. In an open union unknown variants pass through.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Union {
    pub variants: Vec<Type>,
    pub discriminator: Option<String>,
    pub open: bool,
    /// `x-assumed-kind`: the kind that an answer is read as where it does not say.
    pub assumed: Option<String>,
}

/// One member of an object.
#[derive(Debug, Clone)]
pub(crate) struct Field {
    /// Wire name.
    pub name: String,
    /// [`Type::Nullable`] if null is allowed; whether it may be missing is `required`.
    pub ty: Type,
    pub required: bool,
    /// What the server assumes when it is missing; never sent by a client.
    pub default: Option<Value>,
    pub constraints: Constraints,
    pub description: String,
    /// Section, or `ours`; the schema's own unless the property says otherwise.
    pub source: String,
    pub deprecated: bool,
    /// `x-position`: the index of the object in its array, which a response may omit.
    pub position: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Any,
    String,
    Integer,
    Number,
    Boolean,
    /// Exactly this value (a string, number or boolean).
    Const(Value),
    Enum(StringEnum),
    Array(Box<Type>),
    /// An object used as a dictionary.
    Map(Box<Type>),
    /// A member of [`Api::schemas`].
    Ref(String),
    Union(Union),
    Nullable(Box<Type>),
}

impl Type {
    pub(crate) fn is_nullable(&self) -> bool {
        matches!(self, Self::Nullable(_))
    }
}

/// What a value must satisfy beyond its type. Numbers as written in the specification.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Constraints {
    pub minimum: Option<serde_json::Number>,
    pub maximum: Option<serde_json::Number>,
    pub exclusive_minimum: Option<serde_json::Number>,
    pub exclusive_maximum: Option<serde_json::Number>,
    pub multiple_of: Option<serde_json::Number>,
    pub min_length: Option<u64>,
    pub max_length: Option<u64>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub unique_items: bool,
    pub min_properties: Option<u64>,
    pub max_properties: Option<u64>,
    pub pattern: Option<String>,
    pub format: Option<String>,
}

impl Constraints {
    /// In words, for docstrings: `0 to 2`, `at most 4 items`; empty if there is none.
    pub(crate) fn in_words(&self) -> String {
        let mut parts = Vec::new();
        match (&self.minimum, &self.maximum) {
            (Some(low), Some(high)) => parts.push(format!("{low} to {high}")),
            (Some(low), None) => parts.push(format!("at least {low}")),
            (None, Some(high)) => parts.push(format!("at most {high}")),
            (None, None) => {}
        }
        if let Some(low) = &self.exclusive_minimum {
            parts.push(format!("more than {low}"));
        }
        if let Some(high) = &self.exclusive_maximum {
            parts.push(format!("less than {high}"));
        }
        if let Some(step) = &self.multiple_of {
            parts.push(format!("a multiple of {step}"));
        }
        let mut count = |low: Option<u64>, high: Option<u64>, unit: &str| {
            let units = |number: u64| if number == 1 { unit.to_owned() } else { format!("{unit}s") };
            match (low, high) {
                (Some(low), Some(high)) => parts.push(format!("{low} to {high} {}", units(high))),
                (Some(low), None) => parts.push(format!("at least {low} {}", units(low))),
                (None, Some(high)) => parts.push(format!("at most {high} {}", units(high))),
                (None, None) => {}
            }
        };
        count(self.min_length, self.max_length, "character");
        count(self.min_items, self.max_items, "item");
        count(self.min_properties, self.max_properties, "member");
        if self.unique_items {
            parts.push("unique items".to_owned());
        }
        if let Some(pattern) = &self.pattern {
            parts.push(format!("matches `{pattern}`"));
        }
        if let Some(format) = &self.format {
            parts.push(format!("format {format}"));
        }
        parts.join(", ")
    }
}

/// A place on the client: its methods and the places below it.
#[derive(Debug, Default)]
pub(crate) struct Resource<'api> {
    /// `["chat", "completions"]`; empty for the root.
    pub path: Vec<String>,
    pub operations: Vec<&'api Operation>,
    pub children: Vec<Resource<'api>>,
}

impl Api {
    /// The tree of resources, children and methods in the order of the specification.
    pub(crate) fn resources(&self) -> Resource<'_> {
        let mut root = Resource::default();
        for operation in &self.operations {
            let mut node = &mut root;
            for depth in 1..=operation.resource.len() {
                let path = &operation.resource[..depth];
                let index = node.children.iter().position(|child| child.path == path).unwrap_or_else(|| {
                    node.children.push(Resource { path: path.to_vec(), ..Resource::default() });
                    node.children.len() - 1
                });
                node = &mut node.children[index];
            }
            node.operations.push(operation);
        }
        root
    }

    /// The object that a type names.
    pub(crate) fn object(&self, ty: &Type) -> Option<&Object> {
        let Type::Ref(name) = ty else { return None };
        match &self.schemas.get(name)?.kind {
            Kind::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The member of an operation's response whose items iteration over the response yields.
    pub(crate) fn iterable(&self, operation: &Operation) -> Option<&str> {
        self.object(operation.response.as_ref()?)?.iterable.as_deref()
    }

    /// The operation with an id; the loader has found the ids that the specification names.
    pub(crate) fn operation(&self, id: &str) -> &Operation {
        self.operations.iter().find(|operation| operation.id == id).expect("the loader has found it")
    }

    /// The fields of an operation's request body; empty if it has none.
    pub(crate) fn request_fields(&self, operation: &Operation) -> &[Field] {
        match operation.request.as_ref().map(|name| &self.schemas[name].kind) {
            Some(Kind::Object(object)) => &object.fields,
            _ => &[],
        }
    }
}

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// From the repository's root, with `/`: `core/src/api/generated/operations.rs`.
    pub path: String,
    pub contents: String,
}
