//! The JSON Schema of configuration files, and readable messages for violations of it.

use std::sync::LazyLock;

use gatewright::did_you_mean::suggestion;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::LocationSegment;
use jsonschema::{JsonType, ValidationError, Validator};
use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Value, json};

use super::file::File;
use super::presets::preset;
use super::source_map::{Path, PathStep};

static SCHEMA: LazyLock<Value> = LazyLock::new(make);
static VALIDATOR: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::validator_for(&SCHEMA).expect("the types of the file give a JSON Schema"));

/// The JSON Schema of configuration files.
pub fn schema() -> &'static Value {
    &SCHEMA
}

/// Inlined, without references: the path of an error then leads to its schema, and each key has its own description.
fn make() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|settings| {
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<File>();
    RecursiveTransform(without_null).transform(&mut schema);
    schema.insert("title".to_owned(), json!("Configuration of a Gatewright gateway"));
    schema.into()
}

/// TOML has no null: optional values are absent. Formats such as `uint32` are Rust's.
fn without_null(schema: &mut Schema) {
    schema.remove("format");
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(words) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        words.retain(|word| !word.is_null());
    }
    let Some(Value::Array(mut choices)) = schema.remove("anyOf") else { return };
    choices.retain(|choice| choice["type"] != "null");
    let Some(Value::Object(choice)) = choices.pop() else { return };
    for (keyword, value) in choice {
        // The key's description takes precedence over its type's.
        if schema.get(&keyword).is_none() {
            schema.insert(keyword, value);
        }
    }
}

/// A violation of the schema: a place and what is wrong there. For an unknown key, the place is the key itself.
pub(super) struct Violation {
    pub(super) path: Path,
    pub(super) is_key: bool,
    pub(super) message: String,
}

/// All violations, unsorted, at most `most`.
pub(super) fn violations(document: &Value, most: usize) -> Vec<Violation> {
    VALIDATOR.iter_errors(document).flat_map(|error| explain(&error)).take(most).collect()
}

fn explain(error: &ValidationError<'_>) -> Vec<Violation> {
    let path: Path = error
        .instance_path()
        .into_iter()
        .map(|step| match step {
            LocationSegment::Property(name) => PathStep::Key(name.into_owned()),
            LocationSegment::Index(index) => PathStep::Index(index),
        })
        .collect();
    let owner = owner(error);
    let one = |message: String| vec![Violation { path: path.clone(), is_key: false, message }];
    match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let known: Vec<&str> = owner["properties"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, _)| name.as_str())
                .collect();
            unexpected
                .iter()
                .map(|name| Violation {
                    path: path.to(name.as_str()),
                    is_key: true,
                    message: match suggestion(name, &known) {
                        offer if offer.is_empty() => format!("unknown key{}", quoting(name, error)),
                        offer => format!("unknown key{offer}"),
                    },
                })
                .collect()
        }
        Kind::Required { property } => {
            one(format!("the key {} is missing", property.as_str().unwrap_or_default()))
        }
        // Before a value's own message, which doesn't cover lists.
        Kind::MinItems { limit } => one(format!("must have {limit} or more items")),
        Kind::MaxItems { limit } => one(format!("must have {limit} or fewer items")),
        _ if owner["errorMessage"].is_string() => one(text(&owner["errorMessage"])),
        Kind::Type { kind } => one(format!("must be {}", types(kind))),
        Kind::OneOfNotValid { .. } | Kind::Enum { .. } => {
            let words: Vec<&str> = owner["oneOf"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|choice| &choice["const"])
                .chain(owner["enum"].as_array().into_iter().flatten())
                .filter_map(Value::as_str)
                .collect();
            let given = error.instance().as_str().unwrap_or_default();
            let hint = provider_hint(given, error).unwrap_or_else(|| suggestion(given, &words));
            one(format!("must be one of {}{hint}", words.join(", ")))
        }
        Kind::Minimum { limit } => one(format!("must be {limit} or more")),
        Kind::Maximum { limit } => one(format!("must be {limit} or less")),
        Kind::MinLength { .. } => one("must not be empty".to_owned()),
        Kind::MaxLength { limit } => one(format!("must be {limit} characters long or less")),
        Kind::MaxProperties { limit } => one(format!("must have {limit} keys or fewer")),
        kind => one(format!("violates the rule {} of the schema", kind.keyword())),
    }
}

/// A dot in a bare TOML key starts a nested table: `[models.gpt-4.1]` is the key `1` of `gpt-4`.
fn quoting(name: &str, error: &ValidationError<'_>) -> String {
    let path: Vec<_> = error.instance_path().into_iter().collect();
    match path.as_slice() {
        [LocationSegment::Property(table), LocationSegment::Property(outer)]
            if matches!(table.as_ref(), "models" | "upstreams" | "families") =>
        {
            format!("; if the name is {outer}.{name}, quote it: [{table}.\"{outer}.{name}\"]")
        }
        _ => String::new(),
    }
}

/// The way out if the name of a provider was given as the protocol of an upstream.
fn provider_hint(given: &str, error: &ValidationError<'_>) -> Option<String> {
    let path: Vec<_> = error.instance_path().into_iter().collect();
    let is_kind = matches!(path.as_slice(), [LocationSegment::Property(table), _, LocationSegment::Property(key)]
        if table.as_ref() == "upstreams" && key.as_ref() == "kind");
    let is_provider = is_kind && preset(given).is_ok();
    is_provider.then(|| format!("; for this provider, set provider = {given:?} instead of kind"))
}

/// The schema that an error refers to: the one with the violated keyword.
fn owner(error: &ValidationError<'_>) -> &'static Value {
    let keyword = error.schema_path().as_str();
    let pointer = keyword.rsplit_once('/').map_or("", |(schema, _)| schema);
    SCHEMA.pointer(pointer).unwrap_or(&Value::Null)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn types(kind: &TypeKind) -> String {
    let name = |kind: JsonType| match kind {
        JsonType::Array => "a list",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Null => "absent",
        JsonType::Number => "a number",
        JsonType::Object => "a table",
        JsonType::String => "a text",
    };
    match kind {
        TypeKind::Single(kind) => name(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_key_has_a_description() {
        fn undescribed(schema: &Value, at: &str, found: &mut Vec<String>) {
            for (name, key) in schema["properties"].as_object().into_iter().flatten() {
                let at = format!("{at}.{name}");
                if !key["description"].is_string() {
                    found.push(at.clone());
                }
                undescribed(key, &at, found);
                undescribed(&key["items"], &at, found);
                undescribed(&key["additionalProperties"], &at, found);
            }
        }
        let mut found = Vec::new();
        undescribed(schema(), "", &mut found);
        assert_eq!(found, [""; 0]);
        assert!(!schema().to_string().contains("null"), "TOML has none");
    }
}
