//! Converts errors of the schema validator to violations that name the keyword that actually failed.
//!
//! Messages are built from the schema and the document, so that no rule is written twice. `anyOf` is reduced to what
//! its branches miss, and an error under `then` states the condition of its `if`.

use std::collections::HashSet;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value as Json;

use crate::finding::{Finding, excerpt, quoted};
use crate::findings::Findings;
use crate::rules::OURS;
use crate::tree::{Member, Node, Value, first_equal_pair};

/// Maximum number of values of a set in a message: a profile may name a thousand models.
const LISTED_VALUES: usize = 16;

pub(crate) struct Explainer<'a> {
    schema: &'a Json,
    /// The part of the document under validation, and its location.
    part: &'a Node<'a>,
    at: &'a str,
    document: &'a [u8],
}

impl<'a> Explainer<'a> {
    /// `part` of the `document` is at the pointer `at`; the locations of errors are relative to it.
    pub(crate) fn new(schema: &'a Json, part: &'a Node<'a>, at: &'a str, document: &'a [u8]) -> Self {
        Self { schema, part, at, document }
    }

    /// Adds the findings of one error: usually one, but one per unknown property.
    pub(crate) fn explain(&self, error: &ValidationError<'_>, findings: &mut Findings) {
        let below = error.instance_path().as_str();
        let pointer = format!("{}{below}", self.at);
        let node = self.part.at(below).unwrap_or(self.part);
        match error.kind() {
            Kind::AdditionalProperties { unexpected } => {
                let unexpected: HashSet<&str> = unexpected.iter().map(String::as_str).collect();
                for member in node.members().iter().filter(|member| unexpected.contains(&*member.name)) {
                    findings.note(member.name_start(), || Self::unknown(&pointer, member));
                }
            }
            Kind::AnyOf { context } => match missing_in_every_branch(context) {
                Some(names) => findings.note(node.start(), || self.missing(pointer, &names, error)),
                None => context.iter().flatten().for_each(|error| self.explain(error, findings)),
            },
            Kind::Required { property } => {
                let name = property.as_str().unwrap_or_default().to_owned();
                findings.note(node.start(), || self.missing(pointer, &[name], error));
            }
            kind => findings.note(node.start(), || self.unsuitable(pointer, node, kind, error)),
        }
    }

    fn unknown(pointer: &str, member: &Member<'_>) -> Finding {
        let message = format!("there is no property {} here", quoted(&member.name));
        Finding::new(pointer.to_owned(), "additionalProperties", message).property(&member.name)
    }

    fn missing(&self, pointer: String, names: &[String], error: &ValidationError<'_>) -> Finding {
        let what = match names {
            [name] => format!("{name} is missing"),
            _ => format!("there is neither {}", names.join(" nor ")),
        };
        let finding = Finding::new(pointer, "required", self.under(error, what));
        let finding = finding.expected(format!("property {}", names.join(" or ")));
        match names.first() {
            Some(name) => finding.property(name),
            None => finding,
        }
    }

    fn unsuitable(
        &self,
        pointer: String,
        node: &Node<'_>,
        kind: &Kind,
        error: &ValidationError<'_>,
    ) -> Finding {
        let found = self.found(node);
        let length = || node.as_str().map_or(0, |text| text.chars().count());
        let (expected, message) = match kind {
            Kind::Type { kind } => {
                let expected = types(kind);
                let message = match type_of(node) {
                    "null" => format!("null is not {expected}"),
                    name @ ("an array" | "an object") => format!("this is {name}, not {expected}"),
                    name => format!("{found} is {name}, not {expected}"),
                };
                (expected, message)
            }
            Kind::Constant { expected_value } => {
                let expected = excerpt(&expected_value.to_string());
                (expected.clone(), format!("{found} is not {expected}"))
            }
            Kind::Enum { options } => {
                let options = alternatives(options);
                (format!("one of {options}"), format!("{found} is none of {options}"))
            }
            Kind::Minimum { limit } => (format!("at least {limit}"), format!("{found} is less than {limit}")),
            Kind::Maximum { limit } => (format!("at most {limit}"), format!("{found} is more than {limit}")),
            Kind::MinLength { limit: 1 } => {
                ("at least 1 character".to_owned(), "the string is empty".to_owned())
            }
            Kind::MinLength { limit } => (
                format!("at least {limit} characters"),
                format!("the string has {} characters, fewer than {limit}", length()),
            ),
            Kind::MaxLength { limit } => (
                format!("at most {limit} characters"),
                format!("the string has {} characters, more than {limit}", length()),
            ),
            Kind::MinItems { limit } => {
                let count = node.items().len();
                (
                    format!("at least {limit} item(s)"),
                    format!("the array has {count} items, not {limit} or more"),
                )
            }
            Kind::UniqueItems => {
                let message = match first_equal_pair(node.items()) {
                    Some((first, second)) => format!("items {first} and {second} are equal"),
                    None => "items are equal".to_owned(),
                };
                ("items that differ".to_owned(), message)
            }
            Kind::Pattern { pattern } => {
                (format!("a string that matches {pattern}"), format!("{found} does not match {pattern}"))
            }
            Kind::Format { format } => {
                let name = format_name(format);
                (name.to_owned(), format!("{found} is not {name}"))
            }
            _ => (String::new(), error.masked().to_string()),
        };
        let message = self.under(error, message);
        let finding = Finding::new(pointer, keyword(error), message).found(found);
        let finding = if expected.is_empty() { finding } else { finding.expected(expected) };
        if self.is_ours(error) { finding.section(OURS) } else { finding }
    }

    /// Whether a deployment has set the broken rule.
    fn is_ours(&self, error: &ValidationError<'_>) -> bool {
        let rule = error.schema_path().as_str().rsplit_once('/').map_or("", |(schema, _)| schema);
        self.schema.pointer(rule).is_some_and(|schema| schema["x-source"] == OURS)
    }

    /// Prefixes a problem with the condition under which its rule applies.
    fn under(&self, error: &ValidationError<'_>, what: String) -> String {
        let conditions = self.conditions(error.schema_path().as_str());
        if conditions.is_empty() { what } else { format!("{} but {what}", conditions.join(" and ")) }
    }

    /// The conditions of the innermost `if` whose `then` contains this location of the schema, in words.
    fn conditions(&self, schema_path: &str) -> Vec<String> {
        let Some((conditional, _)) = schema_path.rsplit_once("/then/") else { return Vec::new() };
        let properties =
            self.schema.pointer(&format!("{conditional}/if/properties")).and_then(Json::as_object);
        let constants = properties.into_iter().flatten();
        constants
            .filter_map(|(name, schema)| schema.get("const").map(|value| format!("{name} is {value}")))
            .collect()
    }

    /// The text of the document as written; for arrays and objects, their size.
    fn found(&self, node: &Node<'_>) -> String {
        match &node.value {
            Value::Array(items) => format!("[{} items]", items.len()),
            Value::Object(members) => format!("{{{} members}}", members.len()),
            _ => {
                let written = self.document.get(node.start()..node.end()).unwrap_or_default();
                excerpt(&String::from_utf8_lossy(written))
            }
        }
    }
}

/// The properties missing at one location, if every branch fails for no other reason.
fn missing_in_every_branch(branches: &[Vec<ValidationError<'_>>]) -> Option<Vec<String>> {
    let errors = branches.iter().flatten();
    errors
        .map(|error| match error.kind() {
            Kind::Required { property } => property.as_str().map(str::to_owned),
            _ => None,
        })
        .collect()
}

/// The failed keyword, as a static string.
fn keyword(error: &ValidationError<'_>) -> &'static str {
    const KEYWORDS: [&str; 13] = [
        "const",
        "enum",
        "format",
        "maximum",
        "maxItems",
        "maxLength",
        "minimum",
        "minItems",
        "minLength",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    ];
    let name = error.kind().keyword();
    KEYWORDS.into_iter().find(|keyword| *keyword == name).unwrap_or("schema")
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(single) => article(&single.to_string()),
        TypeKind::Multiple(several) => {
            // The set is sorted by name, with null in the middle; null reads best at the end.
            let mut names: Vec<String> = several.iter().map(|one| article(&one.to_string())).collect();
            names.sort_by_key(|name| name == "null");
            names.join(" or ")
        }
    }
}

fn type_of(node: &Node<'_>) -> &'static str {
    match node.value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn alternatives(options: &Json) -> String {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let listed = options.iter().take(LISTED_VALUES).map(|value| excerpt(&value.to_string()));
    let listed = listed.collect::<Vec<_>>().join(", ");
    match options.len().saturating_sub(LISTED_VALUES) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

fn format_name(format: &str) -> &str {
    match format {
        "date-time" => "an RFC 3339 date and time",
        "uri" => "an absolute RFC 3986 URI",
        other => other,
    }
}
