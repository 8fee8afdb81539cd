//! The JSON Schema of a type as providers take it in strict mode: every object is closed, every property is required.

use schemars_1::generate::SchemaSettings;
use schemars_1::transform::RecursiveTransform;
use schemars_1::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::wire::error::{Error, ErrorKind};

/// Maximum length of a schema's name, in characters; the rule of the protocols.
const MAX_NAME_CHARS: usize = 64;
/// The name of a schema whose type has none.
const UNNAMED: &str = "answer";

/// The type's name, in the characters that a schema's name may have.
pub(super) fn name_of<T: JsonSchema>() -> String {
    format_name(&T::schema_name())
}

fn format_name(name: &str) -> String {
    let name: String = name.chars().take(MAX_NAME_CHARS).map(allowed).collect();
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

fn allowed(character: char) -> char {
    if character.is_ascii_alphanumeric() || matches!(character, '_' | '-') { character } else { '_' }
}

/// The type's schema, with keywords that every provider accepts.
pub(crate) fn schema_of<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.transforms.push(Box::new(RecursiveTransform(keep_to_known_words)));
    });
    match settings.into_generator().into_root_schema_for::<T>().to_value() {
        Value::Object(members) => members,
        // `true`: the type takes anything.
        _ => Map::new(),
    }
}

/// The type's schema, made strict. Errors: InvalidRequest if that has no end.
pub(super) fn strict_schema_of<T: JsonSchema>() -> Result<Map<String, Value>, Error> {
    let mut schema = Value::Object(schema_of::<T>());
    make_strict(&mut schema).map_err(|reason| {
        let message = format!("{} has no strict schema: {reason}", name_of::<T>());
        Error::new(ErrorKind::InvalidRequest, message)
    })?;
    match schema {
        Value::Object(members) => Ok(members),
        _ => unreachable!("a strict schema is an object, as it was before"),
    }
}

/// Replaces keywords of schemars that strict mode rejects: the sizes of Rust's numbers as formats, and `oneOf`.
fn keep_to_known_words(schema: &mut Schema) {
    let is_number = ["integer", "number"].iter().any(|kind| match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        one => one.is_some_and(|one| one == kind),
    });
    if is_number {
        schema.remove("format");
    }
    if !schema.as_object().is_some_and(|members| members.contains_key("anyOf"))
        && let Some(forms) = schema.remove("oneOf")
    {
        schema.insert("anyOf".to_owned(), forms);
    }
}

/// Makes a schema strict, as the official SDKs do: objects are closed and require all of their properties, a
/// reference with members beside it is replaced by its target, and null defaults are dropped. Errors: a reference
/// that cannot be replaced.
fn make_strict(schema: &mut Value) -> Result<(), String> {
    let root = schema.clone();
    Strictness { root: &root, inlined: Vec::new() }.apply(schema)
}

struct Strictness<'r> {
    root: &'r Value,
    /// The references within whose replacements this is.
    inlined: Vec<String>,
}

impl Strictness<'_> {
    fn apply(&mut self, schema: &mut Value) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        for name in ["$defs", "definitions", "properties"] {
            if let Some(Value::Object(inner)) = members.get_mut(name) {
                inner.values_mut().try_for_each(|one| self.apply(one))?;
            }
        }
        if members.get("type").is_some_and(|kind| kind == "object") {
            members.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        if let Some(Value::Object(properties)) = members.get("properties") {
            let names = properties.keys().cloned().map(Value::String).collect();
            members.insert("required".to_owned(), Value::Array(names));
        }
        if let Some(items) = members.get_mut("items") {
            self.apply(items)?;
        }
        for name in ["anyOf", "allOf"] {
            if let Some(Value::Array(forms)) = members.get_mut(name) {
                forms.iter_mut().try_for_each(|form| self.apply(form))?;
            }
        }
        if let Some(Value::Array(parts)) = members.get_mut("allOf")
            && let [Value::Object(only)] = parts.as_mut_slice()
        {
            let only = std::mem::take(only);
            members.shift_remove("allOf");
            members.extend(only);
        }
        if members.get("default").is_some_and(Value::is_null) {
            members.shift_remove("default");
        }
        self.inline(schema)
    }

    /// Replaces a reference that has members beside it; these take precedence over those of its target.
    fn inline(&mut self, schema: &mut Value) -> Result<(), String> {
        let Value::Object(members) = schema else { return Ok(()) };
        let Some(Value::String(reference)) = members.get("$ref") else { return Ok(()) };
        if members.len() == 1 {
            return Ok(());
        }
        let reference = reference.clone();
        if self.inlined.contains(&reference) {
            let beside = "beside other keywords, such as a description: leave these out";
            return Err(format!("{reference} refers to itself {beside}"));
        }
        let named = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(Value::Object(named)) = named else {
            return Err(format!("it refers to {reference}, which is not in it"));
        };
        members.shift_remove("$ref");
        for (name, value) in named {
            members.entry(name).or_insert_with(|| value.clone());
        }
        self.inlined.push(reference);
        self.apply(schema)?;
        self.inlined.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use schemars_1 as schemars;
    use serde_json::json;

    use super::*;

    fn vectors(name: &str) -> Vec<Value> {
        let path = format!("{}/../tests/vectors/structured/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut vectors: Value = serde_json::from_str(&text).expect("a file of vectors");
        serde_json::from_value(vectors["cases"].take()).expect("cases")
    }

    #[test]
    fn schemas_become_strict_as_the_vectors_say() {
        for mut case in vectors("schemas") {
            let mut schema = case["schema"].take();
            match (make_strict(&mut schema), case.get("strict")) {
                (Ok(()), Some(expected)) => assert_eq!(&schema, expected, "{}", case["name"]),
                (outcome, expected) => assert!(outcome.is_err() && expected.is_none(), "{}", case["name"]),
            }
        }
    }

    #[test]
    fn names_are_those_of_the_vectors() {
        for case in vectors("names") {
            let name = format_name(case["type"].as_str().unwrap_or_default());
            assert_eq!(name, case["format"], "{}", case["name"]);
        }
    }

    #[expect(dead_code, reason = "its schema is read")]
    #[derive(JsonSchema)]
    enum Shape {
        /// Round.
        Circle { radius: f64 },
        /// In two halves.
        Joined { left: Box<Shape>, right: Box<Shape> },
    }

    #[expect(dead_code, reason = "its schema is read")]
    #[derive(JsonSchema)]
    struct Tree {
        size: u16,
        height: Option<i64>,
        children: Vec<Tree>,
        /// What it looks like.
        shape: Shape,
    }

    #[expect(dead_code, reason = "its schema is read")]
    #[derive(Debug, JsonSchema)]
    struct Loop {
        inner: Option<Knot>,
    }

    #[expect(dead_code, reason = "its schema is read")]
    #[derive(Debug, JsonSchema)]
    enum Knot {
        Tied {
            /// Once more.
            knot: Box<Knot>,
        },
    }

    #[test]
    fn described_recursive_type_is_rejected_by_name() {
        let error = strict_schema_of::<Loop>().expect_err("no end");
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(
            error.to_string().starts_with("Loop has no strict schema: #/$defs/Knot refers to itself"),
            "{error}"
        );
    }

    #[test]
    fn recursive_type_has_a_valid_strict_schema() {
        let schema = Value::Object(strict_schema_of::<Tree>().expect("it has an end"));
        assert_eq!(schema["properties"]["size"], json!({"type": "integer", "minimum": 0, "maximum": 65535}));
        assert_eq!(schema["properties"]["height"], json!({"type": ["integer", "null"]}));
        assert_eq!(schema["properties"]["children"]["items"], json!({"$ref": "#"}));
        assert_eq!(schema["properties"]["shape"]["description"], "What it looks like.");
        let forms = &schema["properties"]["shape"]["anyOf"];
        assert_eq!(forms[0]["required"], json!(["Circle"]));
        assert_eq!(forms[1]["properties"]["Joined"]["additionalProperties"], false);
        let text = schema.to_string();
        assert!(
            !text.contains("oneOf") && !text.contains("$schema") && !text.contains("\"format\""),
            "{text}"
        );
    }
}
