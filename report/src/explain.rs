//! Converts failures of the schema to violations that name the keyword that actually failed.
//!
//! Messages are built from the schema and the document, so that no rule is written twice. `anyOf` is reduced to what
//! its branches miss, and an error under `then` states the condition of its `if`.

use serde_json::Value as Json;

use crate::finding::{Finding, counted, excerpt, quoted};
use crate::findings::Findings;
use crate::rules::OURS;
use crate::schema::{FailedKeyword, Failure, Format, Rules, Type};
use crate::tree::{Member, Node, Value, first_equal_pair};

/// Maximum number of values of a set in a message: a profile may name a thousand models.
const LISTED_VALUES: usize = 16;

pub(crate) struct Explainer<'a> {
    schema: &'a Json,
    document: &'a [u8],
}

impl<'a> Explainer<'a> {
    pub(crate) fn new(schema: &'a Json, document: &'a [u8]) -> Self {
        Self { schema, document }
    }

    /// Adds the finding of a failure.
    pub(crate) fn explain(&self, failure: Failure<'_>, findings: &mut Findings) {
        let Failure { rules, broken, node, path } = failure;
        match broken {
            FailedKeyword::AdditionalProperties(member) => {
                findings.note(member.name_start(), || Self::unknown(path.pointer(), member));
            }
            FailedKeyword::AnyRequired(names) => {
                findings.note(node.start(), || self.missing(path.pointer(), names, rules));
            }
            FailedKeyword::Required(name) => {
                findings.note(node.start(), || self.missing(path.pointer(), &[name], rules));
            }
            _ => findings.note(node.start(), || self.unsuitable(path.pointer(), node, broken, rules)),
        }
    }

    fn unknown(pointer: String, member: &Member<'_>) -> Finding {
        let message = format!("unknown property {}", quoted(&member.name));
        Finding::new(pointer, "additionalProperties", message).property(&member.name)
    }

    fn missing(&self, pointer: String, names: &[&str], rules: &Rules) -> Finding {
        let what = match names {
            [name] => format!("{name} is missing"),
            _ => format!("there is neither {}", names.join(" nor ")),
        };
        let finding = Finding::new(pointer, "required", self.under(rules, what));
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
        broken: FailedKeyword<'_>,
        rules: &Rules,
    ) -> Finding {
        let found = self.found(node);
        let length = || node.as_str().map_or(0, |text| text.chars().count());
        let limit =
            |limit: &Option<serde_json::Number>| limit.as_ref().map_or_else(String::new, ToString::to_string);
        let count = |count: Option<usize>| count.unwrap_or_default();
        let (keyword, expected, message) = match broken {
            FailedKeyword::Type => {
                let expected = types(rules.types.as_deref().unwrap_or_default());
                let message = match type_of(node) {
                    "null" => format!("null is not {expected}"),
                    name @ ("an array" | "an object") => format!("this is {name}, not {expected}"),
                    name => format!("{found} is {name}, not {expected}"),
                };
                ("type", expected, message)
            }
            FailedKeyword::Const => {
                let expected = rules.constant.as_ref().map_or_else(String::new, Json::to_string);
                let expected = excerpt(&expected);
                ("const", expected.clone(), format!("{found} is not {expected}"))
            }
            FailedKeyword::Enum => {
                let options = alternatives(rules.options.as_deref().unwrap_or_default());
                ("enum", format!("one of {options}"), format!("{found} is not one of {options}"))
            }
            FailedKeyword::Minimum => {
                let limit = limit(&rules.minimum);
                ("minimum", format!("at least {limit}"), format!("{found} is less than {limit}"))
            }
            FailedKeyword::Maximum => {
                let limit = limit(&rules.maximum);
                ("maximum", format!("at most {limit}"), format!("{found} is more than {limit}"))
            }
            FailedKeyword::MinLength if rules.min_length == Some(1) => {
                ("minLength", "at least 1 character".to_owned(), "the string is empty".to_owned())
            }
            FailedKeyword::MinLength => {
                let limit = count(rules.min_length);
                let message =
                    format!("the string has {}, fewer than {limit}", counted(length(), "character"));
                ("minLength", format!("at least {}", counted(limit, "character")), message)
            }
            FailedKeyword::MaxLength => {
                let limit = count(rules.max_length);
                let message = format!("the string has {}, more than {limit}", counted(length(), "character"));
                ("maxLength", format!("at most {}", counted(limit, "character")), message)
            }
            FailedKeyword::MinItems => {
                let (limit, count) = (count(rules.min_items), node.items().len());
                let message = format!("the array has {}, not {limit} or more", counted(count, "item"));
                ("minItems", format!("at least {}", counted(limit, "item")), message)
            }
            FailedKeyword::UniqueItems => {
                let message = match first_equal_pair(node.items()) {
                    Some((first, second)) => format!("items {first} and {second} are equal"),
                    None => "items are equal".to_owned(),
                };
                ("uniqueItems", "items that differ".to_owned(), message)
            }
            FailedKeyword::Pattern => {
                let pattern = rules.pattern.as_ref().map_or("", regex::Regex::as_str);
                let expected = format!("a string that matches {pattern}");
                ("pattern", expected, format!("{found} does not match {pattern}"))
            }
            FailedKeyword::Format => {
                let name = match rules.format {
                    Some(Format::Uri) => "an absolute RFC 3986 URI",
                    _ => "an RFC 3339 date and time",
                };
                ("format", name.to_owned(), format!("{found} is not {name}"))
            }
            FailedKeyword::False
            | FailedKeyword::Required(_)
            | FailedKeyword::AdditionalProperties(_)
            | FailedKeyword::AnyRequired(_) => {
                ("schema", "nothing".to_owned(), format!("{found} is not allowed here"))
            }
        };
        let finding = Finding::new(pointer, keyword, self.under(rules, message));
        let finding = finding.found(found).expected(expected);
        if rules.is_ours { finding.section(OURS) } else { finding }
    }

    /// Prefixes a problem with the condition under which its rule applies.
    fn under(&self, rules: &Rules, what: String) -> String {
        let conditions = self.conditions(&rules.place);
        if conditions.is_empty() { what } else { format!("{} but {what}", conditions.join(" and ")) }
    }

    /// The conditions of the innermost `if` whose `then` contains this place of the schema, in words.
    fn conditions(&self, place: &str) -> Vec<String> {
        let inner = place.rsplit_once("/then/").map(|(conditional, _)| conditional);
        let Some(conditional) = place.strip_suffix("/then").or(inner) else { return Vec::new() };
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
            Value::Array(items) => format!("[{}]", counted(items.len(), "item")),
            Value::Object(members) => format!("{{{}}}", counted(members.len(), "member")),
            _ => {
                let written = self.document.get(node.start()..node.end()).unwrap_or_default();
                excerpt(&String::from_utf8_lossy(written))
            }
        }
    }
}

/// The types of a rule, in words.
fn types(types: &[Type]) -> String {
    let names: Vec<&str> = types
        .iter()
        .map(|one| match one {
            Type::Array => "an array",
            Type::Boolean => "a boolean",
            Type::Integer => "an integer",
            Type::Number => "a number",
            Type::Object => "an object",
            Type::String => "a string",
            Type::Null => "null",
        })
        .collect();
    names.join(" or ")
}

fn type_of(node: &Node<'_>) -> &'static str {
    match node.value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) | Value::Sound(_) => "an object",
    }
}

fn alternatives(options: &[Json]) -> String {
    let listed = options.iter().take(LISTED_VALUES).map(|value| excerpt(&value.to_string()));
    let listed = listed.collect::<Vec<_>>().join(", ");
    match options.len().saturating_sub(LISTED_VALUES) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}
