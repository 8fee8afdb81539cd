//! The types of what is sent: objects, unions, enumerations, and their constraints.

use serde::Deserialize;
use serde_json::Value;

/// A named type.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    /// PascalCase, unique.
    pub name: String,
    pub description: String,
    /// Section, or `ours`.
    pub source: String,
    /// What is ours although the section is the source's, in words; empty if nothing is.
    pub additions: String,
    pub kind: Kind,
    /// Constraints of the schema itself (of an alias).
    pub constraints: Constraints,
    /// The first of `examples`.
    pub example: Option<Value>,
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
    /// `x-built`: the expression of Rust that makes the example of such a type.
    pub built: Option<String>,
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
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of its own")]
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
    /// What is ours although the section is the source's, in words; empty if nothing is.
    pub additions: String,
    pub deprecated: bool,
    /// `x-position`: the index of the object in its array, which a response may omit.
    pub position: bool,
    /// `x-accepts-type`: clients also take a type there, and send its JSON Schema.
    pub accepts_type: bool,
    /// `x-brackets`: the field of a list in a form has brackets after its name.
    pub brackets: bool,
    /// The first of `examples`.
    pub example: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    Any,
    String,
    Integer,
    Number,
    Boolean,
    /// The content of a file, in the body of a form.
    File,
    /// Exactly this value (a string, number or boolean).
    Const(Value),
    Enum(StringEnum),
    Array(Box<Type>),
    /// An object used as a dictionary.
    Map(Box<Type>),
    /// A member of `Api::schemas`.
    Ref(String),
    Union(Union),
    Nullable(Box<Type>),
}

impl Type {
    pub(crate) fn is_nullable(&self) -> bool {
        matches!(self, Self::Nullable(_))
    }

    /// Whether it is a file or a list of files, or null.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Self::File => true,
            Self::Array(inner) | Self::Nullable(inner) => inner.is_file(),
            _ => false,
        }
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
