//! A JSON Schema from a client, checked against limits before anything is built from it (ours; the source states no
//! limit).

use serde_json::Value;

/// Maximum number of values of any kind in a schema.
const VALUES: usize = 20_000;
/// Maximum nesting depth of a schema.
const DEPTH: usize = 64;
/// Maximum number of references in a schema.
const REFERENCES: usize = 1_000;
/// Maximum length of a regular expression, in bytes.
const PATTERN: usize = 512;

/// A schema within the limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientSchema(Value);

/// A limit that a client's schema exceeds, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{breach}; this gateway accepts schemas of at most {VALUES} values, {DEPTH} levels, {REFERENCES} \
         references and patterns of {PATTERN} bytes"
)]
pub struct OutOfBounds {
    /// JSON Pointer into the request's body.
    pub pointer: String,
    /// Which limit it exceeds.
    pub breach: SchemaLimit,
}

/// The limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemaLimit {
    /// Too many values.
    #[error("the schema has more than {VALUES} values")]
    Values,
    /// Nested too deeply.
    #[error("the schema is more than {DEPTH} levels deep")]
    Depth,
    /// Too many references.
    #[error("the schema has more than {REFERENCES} references")]
    References,
    /// A pattern of this many bytes.
    #[error("the pattern has {0} bytes, more than {PATTERN}")]
    Pattern(usize),
}

impl SchemaLimit {
    /// Name of the rule in the error response.
    pub fn rule(self) -> &'static str {
        match self {
            Self::Values => "schema_values",
            Self::Depth => "schema_depth",
            Self::References => "schema_references",
            Self::Pattern(_) => "schema_pattern",
        }
    }
}

impl ClientSchema {
    /// Checks a schema. `pointer`: its place in the request body, as a JSON Pointer.
    pub fn read(schema: &Value, pointer: &str) -> Result<Self, OutOfBounds> {
        let mut counting = SchemaCounter { pointer: pointer.to_owned(), values: 0, references: 0 };
        match counting.value(schema, 0) {
            Ok(()) => Ok(Self(schema.clone())),
            Err(breach) => Err(OutOfBounds { pointer: counting.pointer, breach }),
        }
    }

    /// A schema that the gateway built itself. Its client parts have been checked.
    pub fn own(schema: Value) -> Self {
        Self(schema)
    }

    /// As JSON.
    pub fn value(&self) -> &Value {
        &self.0
    }
}

/// Checks a client's regular expression outside a schema. `pointer`: its place in the request body.
pub(crate) fn check_pattern(pattern: &str, pointer: &str) -> Result<(), OutOfBounds> {
    if pattern.len() > PATTERN {
        return Err(OutOfBounds { pointer: pointer.to_owned(), breach: SchemaLimit::Pattern(pattern.len()) });
    }
    Ok(())
}

/// The state of a check. The pointer stays at the place of the breach.
struct SchemaCounter {
    pointer: String,
    values: usize,
    references: usize,
}

impl SchemaCounter {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), SchemaLimit> {
        self.values += 1;
        if self.values > VALUES {
            return Err(SchemaLimit::Values);
        }
        if depth > DEPTH {
            return Err(SchemaLimit::Depth);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let start = self.step_into(name);
                    self.keyword(name, member)?;
                    self.value(member, depth + 1)?;
                    self.pointer.truncate(start);
                }
            }
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    let start = self.step_into(&index.to_string());
                    self.value(value, depth + 1)?;
                    self.pointer.truncate(start);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn keyword(&mut self, name: &str, member: &Value) -> Result<(), SchemaLimit> {
        match (name, member) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                self.references += 1;
                if self.references > REFERENCES { Err(SchemaLimit::References) } else { Ok(()) }
            }
            ("pattern", Value::String(pattern)) if pattern.len() > PATTERN => {
                Err(SchemaLimit::Pattern(pattern.len()))
            }
            ("patternProperties", Value::Object(members)) => {
                match members.keys().find(|pattern| pattern.len() > PATTERN) {
                    Some(pattern) => Err(SchemaLimit::Pattern(pattern.len())),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Appends a segment to the pointer and returns the offset of the segment.
    fn step_into(&mut self, segment: &str) -> usize {
        /// The pointer truncates names longer than this.
        const SHOWN: usize = 64;
        let start = self.pointer.len();
        self.pointer.push('/');
        let shown = &segment[..segment.floor_char_boundary(SHOWN)];
        self.pointer.push_str(&shown.replace('~', "~0").replace('/', "~1"));
        if shown.len() < segment.len() {
            self.pointer.push('…');
        }
        start
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn breach(schema: &Value) -> (String, SchemaLimit) {
        let refused = ClientSchema::read(schema, "/schema").expect_err("out of bounds");
        (refused.pointer, refused.breach)
    }

    #[test]
    fn exceeded_schema_limit_is_reported_with_its_pointer() {
        let chain: serde_json::Map<String, Value> = (0..=REFERENCES)
            .map(|number| {
                (format!("d{number}"), json!({ "not": { "$ref": format!("#/$defs/d{}", number + 1) } }))
            })
            .collect();
        let (pointer, bound) = breach(&json!({ "$defs": chain }));
        assert_eq!((pointer.as_str(), bound), ("/schema/$defs/d1000/not/$ref", SchemaLimit::References));

        let (pointer, bound) = breach(&json!({ "enum": vec![0; VALUES] }));
        assert_eq!((pointer.as_str(), bound), ("/schema/enum/19998", SchemaLimit::Values));

        let deep = (0..=DEPTH).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(breach(&deep), (format!("/schema{}", "/0".repeat(DEPTH + 1)), SchemaLimit::Depth));

        let long = "a".repeat(PATTERN + 1);
        let (pointer, bound) = breach(&json!({ "properties": { "a/b": { "pattern": long } } }));
        assert_eq!(
            (pointer.as_str(), bound),
            ("/schema/properties/a~1b/pattern", SchemaLimit::Pattern(PATTERN + 1))
        );
        assert_eq!(
            breach(&json!({ "patternProperties": { long: true } })).1,
            SchemaLimit::Pattern(PATTERN + 1)
        );
    }

    #[test]
    fn properties_may_be_named_like_keywords() {
        let schema =
            json!({ "properties": { "$ref": { "type": "string" }, "pattern": { "type": "string" } } });
        assert_eq!(ClientSchema::read(&schema, "").as_ref().map(ClientSchema::value), Ok(&schema));
    }

    #[test]
    fn pointer_with_a_long_name_is_truncated() {
        let (pointer, _) = breach(&json!({ "x".repeat(100_000): { "pattern": "a".repeat(PATTERN + 1) } }));
        assert!(pointer.len() < 100, "{} bytes", pointer.len());
    }
}
