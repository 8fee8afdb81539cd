//! The schema of reports, compiled from its JSON into rules that walk the tree of a document.
//!
//! A compiler for JSON Schema 2020-12, for the keywords used in this schema; it rejects any other and reports
//! its place. References are resolved, patterns compiled and names copied once. Formats are asserted.

mod date_time;
#[cfg(test)]
mod suite;
mod walk;

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value as Json;

use crate::rules::OURS;

pub(crate) use self::walk::{FailedKeyword, Failure};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Limits of numbers are compared exactly; larger ones are not needed.
const MAX_LIMIT: f64 = 9_007_199_254_740_992.0;

/// Rules by their index; the first are those of a document.
#[derive(Debug)]
pub(crate) struct Schema(Vec<Rules>);

type Id = usize;

/// One schema: a member per keyword. An absent keyword imposes no rule.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword")]
pub(crate) struct Rules {
    /// Its position in the schema, as a JSON Pointer.
    pub(crate) place: String,
    /// Whether a deployment has set it.
    pub(crate) is_ours: bool,
    /// The schema `false`.
    is_false: bool,
    /// Sorted by name, with null at the end.
    pub(crate) types: Option<Vec<Type>>,
    pub(crate) constant: Option<Json>,
    pub(crate) options: Option<Vec<Json>>,
    pub(crate) minimum: Option<serde_json::Number>,
    pub(crate) maximum: Option<serde_json::Number>,
    pub(crate) min_length: Option<usize>,
    pub(crate) max_length: Option<usize>,
    pub(crate) min_items: Option<usize>,
    unique_items: bool,
    required: Vec<Box<str>>,
    pub(crate) pattern: Option<Regex>,
    pub(crate) format: Option<Format>,
    properties: Vec<(Box<str>, Id)>,
    /// Whether unlisted properties are rejected.
    closed: bool,
    items: Option<Id>,
    all_of: Vec<Id>,
    any_of: Vec<Id>,
    condition: Option<Id>,
    consequence: Option<Id>,
    reference: Option<Id>,
}

/// In the order used in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    Array,
    Boolean,
    Integer,
    Number,
    Object,
    String,
    Null,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    DateTime,
    Uri,
}

impl Schema {
    /// Errors: the position of an unknown keyword or keyword value.
    pub(crate) fn compile(schema: &Json) -> Result<Self, String> {
        let mut compiler = Compiler { root: schema, known: HashMap::new(), rules: Vec::new() };
        compiler.schema("")?;
        Ok(Self(compiler.rules))
    }
}

struct Compiler<'s> {
    root: &'s Json,
    /// The rules at each place.
    known: HashMap<String, Id>,
    rules: Vec<Rules>,
}

impl<'s> Compiler<'s> {
    fn schema(&mut self, place: &str) -> Result<Id, String> {
        if let Some(id) = self.known.get(place) {
            return Ok(*id);
        }
        let schema = self.root.pointer(place).ok_or_else(|| format!("{place}: there is no schema"))?;
        let id = self.rules.len();
        self.known.insert(place.to_owned(), id);
        self.rules.push(Rules::default());
        let mut rules = Rules { place: place.to_owned(), ..Rules::default() };
        match schema {
            Json::Bool(is_true) => rules.is_false = !is_true,
            Json::Object(members) => {
                for (keyword, value) in members {
                    if !self.keyword(&mut rules, keyword, value)? {
                        return Err(format!("{place}/{keyword}: {value} is not known here"));
                    }
                }
            }
            _ => return Err(format!("{place}: this is no schema")),
        }
        self.rules[id] = rules;
        Ok(id)
    }

    /// Adds a keyword. Returns whether it and its value are supported.
    fn keyword(&mut self, rules: &mut Rules, name: &str, value: &'s Json) -> Result<bool, String> {
        let place = format!("{}/{name}", rules.place);
        match name {
            "properties" => rules.properties = self.properties(&place, value)?,
            "items" => rules.items = Some(self.schema(&place)?),
            "if" => rules.condition = Some(self.schema(&place)?),
            "then" => rules.consequence = Some(self.schema(&place)?),
            "allOf" => rules.all_of = self.branches(&place, value)?,
            "anyOf" => rules.any_of = self.branches(&place, value)?,
            "$ref" => match reference(value) {
                Some(target) => rules.reference = Some(self.schema(target)?),
                None => return Ok(false),
            },
            _ => return Ok(assertion(rules, name, value).is_some()),
        }
        Ok(true)
    }

    fn properties(&mut self, place: &str, value: &'s Json) -> Result<Vec<(Box<str>, Id)>, String> {
        let properties = value.as_object().ok_or_else(|| format!("{place}: no object"))?;
        let property = |name: &'s String| {
            let step = name.replace('~', "~0").replace('/', "~1");
            Ok((name.as_str().into(), self.schema(&format!("{place}/{step}"))?))
        };
        properties.keys().map(property).collect()
    }

    fn branches(&mut self, place: &str, value: &'s Json) -> Result<Vec<Id>, String> {
        let branches = value.as_array().filter(|branches| !branches.is_empty());
        let branches = branches.ok_or_else(|| format!("{place}: no schemas"))?;
        (0..branches.len()).map(|index| self.schema(&format!("{place}/{index}"))).collect()
    }
}

/// The place in the schema that a reference points to. Anchors, other documents and escapes are not supported.
fn reference(value: &Json) -> Option<&str> {
    let target = value.as_str()?.strip_prefix('#')?;
    ((target.is_empty() || target.starts_with('/')) && !target.contains('%')).then_some(target)
}

/// Adds a keyword without subschemas. `None` if it or its value is not supported.
fn assertion(rules: &mut Rules, name: &str, value: &Json) -> Option<()> {
    match name {
        "type" => rules.types = Some(types(value)?),
        "const" => rules.constant = Some(value.clone()),
        "enum" => rules.options = Some(value.as_array()?.clone()),
        "minimum" => rules.minimum = Some(limit(value)?),
        "maximum" => rules.maximum = Some(limit(value)?),
        "minLength" => rules.min_length = Some(count(value)?),
        "maxLength" => rules.max_length = Some(count(value)?),
        "minItems" => rules.min_items = Some(count(value)?),
        "uniqueItems" => rules.unique_items = value.as_bool()?,
        "required" => rules.required = names(value)?,
        "pattern" => rules.pattern = Some(pattern(value)?),
        "format" => rules.format = Some(format(value)?),
        "additionalProperties" => rules.closed = !value.as_bool()?,
        "$schema" => return (rules.place.is_empty() && *value == DIALECT).then_some(()),
        // Below the root, it would change the base of references.
        "$id" => return rules.place.is_empty().then_some(()),
        "x-source" => rules.is_ours = value == OURS,
        "$defs" | "$comment" | "title" | "description" | "examples" | "default" | "deprecated" => {}
        _ => return name.starts_with("x-").then_some(()),
    }
    Some(())
}

fn types(value: &Json) -> Option<Vec<Type>> {
    let one = |value: &Json| {
        Some(match value.as_str()? {
            "array" => Type::Array,
            "boolean" => Type::Boolean,
            "integer" => Type::Integer,
            "null" => Type::Null,
            "number" => Type::Number,
            "object" => Type::Object,
            "string" => Type::String,
            _ => return None,
        })
    };
    let mut types: Vec<Type> = match value {
        Json::Array(several) => several.iter().map(one).collect::<Option<_>>()?,
        _ => vec![one(value)?],
    };
    types.sort_unstable();
    Some(types)
}

/// ECMA-262 patterns that have the same meaning here: without named classes and without special groups.
fn pattern(value: &Json) -> Option<Regex> {
    let pattern = value.as_str().filter(|pattern| !pattern.contains('\\') && !pattern.contains("(?"))?;
    Regex::new(pattern).ok()
}

fn format(value: &Json) -> Option<Format> {
    match value.as_str()? {
        "date-time" => Some(Format::DateTime),
        "uri" => Some(Format::Uri),
        _ => None,
    }
}

fn limit(value: &Json) -> Option<serde_json::Number> {
    let limit = value.as_number()?;
    (limit.as_f64()?.abs() <= MAX_LIMIT).then(|| limit.clone())
}

fn count(value: &Json) -> Option<usize> {
    // 2.0 is an integer.
    let is_whole = |count: &f64| count.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(count);
    let count = value.as_f64().filter(is_whole)?;
    count.to_string().parse().ok()
}

fn names(value: &Json) -> Option<Vec<Box<str>>> {
    value.as_array()?.iter().map(|name| Some(name.as_str()?.into())).collect()
}
