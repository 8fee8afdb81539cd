//! The request schemas written by the generator, parsed once: one member per keyword. An unknown keyword is an error,
//! so none is silently ignored.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use foldhash::fast::RandomState;
use gatewright_safe::uri::is_uri;
use indexmap::IndexMap;
use regex::Regex;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Members by name. The names come from the generator: input can't make them collide, so a fast hash is
/// enough.
type Named<T> = HashMap<String, T, RandomState>;
/// The same, in the order of the schema.
type Ordered<T> = IndexMap<String, T, RandomState>;

/// `requests.schema.json`.
#[derive(Debug, Deserialize)]
pub(super) struct Requests {
    operations: Named<Request>,
    #[serde(rename = "$defs")]
    definitions: Named<Schema>,
}

#[derive(Debug, Deserialize)]
struct Request {
    body: Option<String>,
    parameters: Named<Schema>,
    #[serde(default)]
    required_headers: Vec<String>,
}

/// The schemas of all requests.
pub(super) static REQUESTS: LazyLock<Requests> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../api/generated/requests.schema.json"))
        .expect("the generator writes schemas that can be read")
});

impl Requests {
    /// The schema of an operation's body.
    pub(super) fn body(&self, operation: &str) -> Option<&Schema> {
        self.definitions.get(self.operations.get(operation)?.body.as_deref()?)
    }

    /// The schema of a parameter of an operation: of its path, its query or its headers.
    pub(super) fn parameter(&self, operation: &str, name: &str) -> Option<&Schema> {
        self.operations.get(operation)?.parameters.get(name)
    }

    /// The headers without which an operation is not called.
    pub(super) fn required_headers(&self, operation: &str) -> &[String] {
        self.operations.get(operation).map_or(&[], |request| &request.required_headers)
    }

    /// The schema that a schema refers to, if any.
    pub(super) fn referred(&self, schema: &Schema) -> Option<&Schema> {
        self.definitions.get(schema.reference.as_deref()?.strip_prefix("#/$defs/")?)
    }

    /// The schema itself, or the one it refers to.
    pub(super) fn follow<'s>(&'s self, schema: &'s Schema) -> &'s Schema {
        self.referred(schema).unwrap_or(schema)
    }
}

/// One schema. An absent keyword imposes no rule.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    #[serde(rename = "$ref")]
    pub(super) reference: Option<String>,
    /// For a consequence: the message for a value that violates it.
    pub(super) description: Option<String>,
    /// Section of the source, or `ours`; its members inherit it.
    #[serde(rename = "x-source")]
    pub(super) source: Option<String>,
    /// Keywords that are ours although the section is the source's.
    #[serde(rename = "x-ours", default)]
    pub(super) ours: Vec<String>,
    /// Alternative ways of writing the object in requests: see [`mapping`](super::mapping).
    #[serde(rename = "x-json-mapping")]
    pub(super) mapping: Option<String>,
    /// The other spellings of its members, each with the member that it stands for.
    #[serde(rename = "x-spellings", default)]
    pub(super) spellings: Ordered<String>,
    #[serde(rename = "type", default, deserialize_with = "one_or_more")]
    pub(super) types: Vec<Type>,
    #[serde(rename = "enum")]
    pub(super) options: Option<Vec<Value>>,
    #[serde(rename = "const")]
    pub(super) constant: Option<Value>,
    pub(super) minimum: Option<f64>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_minimum: Option<f64>,
    pub(super) exclusive_maximum: Option<f64>,
    pub(super) min_length: Option<usize>,
    pub(super) max_length: Option<usize>,
    pub(super) pattern: Option<Pattern>,
    /// What the pattern accepts, in words.
    #[serde(rename = "x-pattern-words", default)]
    pub(super) pattern_words: String,
    pub(super) format: Option<Format>,
    pub(super) items: Option<Box<Schema>>,
    pub(super) min_items: Option<usize>,
    pub(super) max_items: Option<usize>,
    #[serde(default)]
    pub(super) properties: Ordered<Schema>,
    #[serde(default)]
    pub(super) required: Vec<String>,
    pub(super) additional_properties: Option<Additional>,
    pub(super) min_properties: Option<usize>,
    pub(super) max_properties: Option<usize>,
    #[serde(default)]
    pub(super) all_of: Vec<Schema>,
    #[serde(default)]
    pub(super) any_of: Vec<Schema>,
    #[serde(default)]
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
    #[serde(rename = "if")]
    pub(super) condition: Option<Box<Schema>>,
    #[serde(rename = "then")]
    pub(super) consequence: Option<Box<Schema>>,
    #[serde(rename = "else")]
    pub(super) alternative: Option<Box<Schema>>,
    /// The value that the server assumes if the member is omitted.
    #[serde(default)]
    pub(super) default: Value,
    #[serde(flatten, deserialize_with = "annotations")]
    _annotations: (),
}

/// How members that are not listed as properties are handled.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Additional {
    Any(bool),
    Each(Box<Schema>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl Type {
    pub(super) fn admits(self, value: &Value) -> bool {
        match (self, value) {
            // 3.0 is an integer.
            (Self::Integer, Value::Number(number)) => {
                !number.is_f64() || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            (Self::Null, Value::Null)
            | (Self::Boolean, Value::Bool(_))
            | (Self::Number, Value::Number(_))
            | (Self::String, Value::String(_))
            | (Self::Array, Value::Array(_))
            | (Self::Object, Value::Object(_)) => true,
            _ => false,
        }
    }
}

/// A `pattern`, compiled on first use.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(super) struct Pattern {
    text: String,
    compiled: OnceLock<Regex>,
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text, compiled: OnceLock::new() }
    }
}

impl Pattern {
    pub(super) fn admits(&self, value: &Value) -> bool {
        let compile = || Regex::new(&self.text).expect("the generator writes patterns that compile");
        value.as_str().is_none_or(|text| self.compiled.get_or_init(compile).is_match(text))
    }
}

/// A `format`. Another one is an error, so that none is silently ignored.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Uri,
}

impl Format {
    pub(super) fn admits(self, value: &Value) -> bool {
        match self {
            Self::Uri => value.as_str().is_none_or(is_uri),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Uri => "uri",
        }
    }
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Type>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Types {
        One(Type),
        More(Vec<Type>),
    }
    Ok(match Types::deserialize(deserializer)? {
        Types::One(one) => vec![one],
        Types::More(more) => more,
    })
}

/// Accepts keywords that no value can violate; rejects every other keyword.
fn annotations<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    let rest = HashMap::<String, Value>::deserialize(deserializer)?;
    let known = |name: &str| name.starts_with("x-") || matches!(name, "title" | "examples" | "deprecated");
    match rest.keys().find(|name| !known(name)) {
        None => Ok(()),
        Some(unknown) => Err(D::Error::custom(format!("limits do not know the keyword {unknown}"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_schema_keyword_is_rejected() {
        let error = serde_json::from_value::<Schema>(json!({"type": "array", "uniqueItems": true}));
        assert!(error.expect_err("rejected").to_string().contains("uniqueItems"));
        assert!(serde_json::from_value::<Schema>(json!({"type": "array", "x-any": 1})).is_ok());
    }
}
