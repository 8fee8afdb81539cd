//! Validates the query parameters and the headers of a request against their schemas.

use std::borrow::Cow;

use serde_json::Value;

use super::schema::{REQUESTS, Requests, Schema, Type};
use super::walk::walk_member;
use super::{Violation, Violations};
use crate::api::operation::Operation;

/// Longer text is no number and no switch.
const MAX_PLAIN_CHARS: usize = 64;

/// Every rule that a query parameter violates. If a parameter is repeated, the first one counts, unless it is a list.
/// Parameters that the specification does not name are not checked. A pointer is `/` followed by the parameter's name.
///
/// ```
/// use gatewright::limits::check_query;
/// use gatewright::operations::LIST_RESPONSE_INPUT_ITEMS;
///
/// let violations = check_query(&LIST_RESPONSE_INPUT_ITEMS, [("limit", "0")]);
/// assert_eq!(violations[0].pointer, "/limit");
/// ```
pub fn check_query<'q>(
    operation: &Operation,
    query: impl IntoIterator<Item = (impl Into<Cow<'q, str>>, impl Into<Cow<'q, str>>)>,
) -> Violations {
    check_query_with(&REQUESTS, operation, query)
}

fn check_query_with<'q>(
    requests: &Requests,
    operation: &Operation,
    query: impl IntoIterator<Item = (impl Into<Cow<'q, str>>, impl Into<Cow<'q, str>>)>,
) -> Violations {
    let mut unseen = operation.query_parameters.to_vec();
    let mut lists: Vec<(&str, &Schema, Vec<Value>)> = Vec::new();
    let mut violations = Violations::default();
    for (name, text) in query {
        let (name, text) = (name.into(), text.into());
        if let Some((_, schema, items)) = lists.iter_mut().find(|(known, ..)| *known == name) {
            // One more than is allowed is enough to be too many.
            if schema.max_items.is_none_or(|most| items.len() <= most) {
                items.push(item(schema, &text));
            }
            continue;
        }
        let Some(at) = unseen.iter().position(|known| *known == name) else { continue };
        let name = unseen.swap_remove(at);
        let Some(schema) = requests.parameter(operation.id, name) else { continue };
        if schema.types.as_slice() != [Type::Array] {
            walk_member(schema, name, &typed(schema, &text))
                .into_iter()
                .for_each(|found| violations.push(found));
        } else if operation.joined_query.contains(&name) {
            let most = schema.max_items.map_or(usize::MAX, |most| most.saturating_add(1));
            lists.push((name, schema, text.split(',').take(most).map(|text| item(schema, text)).collect()));
        } else {
            lists.push((name, schema, vec![item(schema, &text)]));
        }
    }
    for (name, schema, items) in lists {
        walk_member(schema, name, &Value::Array(items)).into_iter().for_each(|found| violations.push(found));
    }
    violations
}

/// Every rule that the headers of a request violate: those that the specification names as parameters, and those of
/// them that are missing. A pointer is `/` followed by the header's name, as the specification writes it.
///
/// ```
/// use gatewright::limits::check_headers;
/// use gatewright::operations::CREATE_CHAT_COMPLETION;
///
/// assert!(check_headers(&CREATE_CHAT_COMPLETION, [("accept", "text/plain")]).is_empty());
/// ```
pub fn check_headers<'h>(
    operation: &Operation,
    headers: impl IntoIterator<Item = (&'h str, impl AsRef<[u8]>)>,
) -> Violations {
    check_headers_with(&REQUESTS, operation, headers)
}

fn check_headers_with<'h>(
    requests: &Requests,
    operation: &Operation,
    headers: impl IntoIterator<Item = (&'h str, impl AsRef<[u8]>)>,
) -> Violations {
    let mut unseen = operation.header_parameters.to_vec();
    let mut violations = Violations::default();
    if unseen.is_empty() {
        return violations;
    }
    for (name, value) in headers {
        let Some(at) = unseen.iter().position(|known| known.eq_ignore_ascii_case(name)) else { continue };
        let name = unseen.swap_remove(at);
        if let Some(schema) = requests.parameter(operation.id, name) {
            let text = String::from_utf8_lossy(value.as_ref());
            walk_member(schema, name, &typed(schema, &text))
                .into_iter()
                .for_each(|found| violations.push(found));
        }
    }
    for name in requests.required_headers(operation.id) {
        if unseen.contains(&name.as_str()) {
            violations.push(Violation {
                pointer: String::new(),
                rule: "required".to_owned(),
                message: format!("the header {name} is missing"),
                section: operation.source.to_owned(),
                missing: Some(name.clone()),
            });
        }
    }
    violations
}

/// An item of a list, by the type that its schema has.
fn item(list: &Schema, text: &str) -> Value {
    list.items.as_deref().map_or_else(|| Value::String(text.to_owned()), |schema| typed(schema, text))
}

/// The value of a query parameter, parsed by its type. If it is missing: the default stated by the specification, or
/// null. Text that cannot be parsed remains text.
///
/// ```
/// use gatewright::limits::parameter;
/// use gatewright::operations::LIST_RESPONSE_INPUT_ITEMS;
///
/// assert_eq!(parameter(&LIST_RESPONSE_INPUT_ITEMS, "limit", Some("5")), 5);
/// assert_eq!(parameter(&LIST_RESPONSE_INPUT_ITEMS, "limit", None), 20);
/// ```
pub fn parameter(operation: &Operation, name: &str, text: Option<&str>) -> Value {
    match (REQUESTS.parameter(operation.id, name), text) {
        (Some(schema), Some(text)) => typed(schema, text),
        (Some(schema), None) => schema.default.clone(),
        (None, _) => Value::Null,
    }
}

/// The value of a field of a form, parsed by the type of its member; of a list, the value of one item. Text that cannot be
/// parsed remains text.
///
/// ```
/// use gatewright::limits::field;
/// use gatewright::operations::CREATE_TRANSCRIPTION;
///
/// assert_eq!(field(&CREATE_TRANSCRIPTION, "temperature", "0.5"), 0.5);
/// assert_eq!(field(&CREATE_TRANSCRIPTION, "prompt", "0.5"), "0.5");
/// ```
pub fn field(operation: &Operation, member: &str, text: &str) -> Value {
    let schema = REQUESTS.body(operation.id).and_then(|body| body.properties.get(member));
    match schema {
        Some(list) if list.types.contains(&Type::Array) => item(list, text),
        Some(schema) => typed(schema, text),
        None => Value::String(text.to_owned()),
    }
}

/// A query is text, and so are the fields of a form; the type in the schema says how to parse it.
fn typed(schema: &Schema, text: &str) -> Value {
    let mut types = schema.types.iter().filter(|kind| **kind != Type::Null);
    let is_text =
        !matches!((types.next(), types.next()), (Some(Type::Integer | Type::Number | Type::Boolean), None));
    if is_text || text.len() > MAX_PLAIN_CHARS {
        return Value::String(text.to_owned());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations::{self, LIST_NATIVE_MODELS, LIST_RESPONSE_INPUT_ITEMS, RETRIEVE_RESPONSE};

    /// An operation with lists and headers, which ours have none of, and its rules.
    fn of_another_api() -> (Requests, Operation) {
        let requests = serde_json::json!({
            "operations": {"list_responses": {
                "body": null,
                "parameters": {
                    "kinds": {"type": "array", "maxItems": 2, "items": {"type": "string", "enum": ["book", "film"]}},
                    "ids": {"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 1}},
                    "X-Tag": {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$", "x-pattern-words": "letters"},
                    "X-Depth": {"type": "integer", "maximum": 9},
                },
                "required_headers": ["X-Tag"],
            }},
            "$defs": {},
        });
        let operation = Operation {
            id: "list_responses",
            query_parameters: &["kinds", "ids"],
            joined_query: &["ids"],
            header_parameters: &["X-Tag", "X-Depth"],
            ..RETRIEVE_RESPONSE
        };
        (serde_json::from_value(requests).expect("the rules are rules"), operation)
    }

    #[test]
    fn lists_are_checked_whole_whether_repeated_or_joined() {
        let (requests, operation) = of_another_api();
        let messages = |query: &[(&'static str, &'static str)]| {
            let found = check_query_with(&requests, &operation, query.iter().copied());
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(messages(&[("kinds", "book"), ("ids", "1,2"), ("kinds", "film")]), [""; 0]);
        assert_eq!(
            messages(&[("kinds", "book"), ("kinds", "map")]),
            ["kinds[1] is \"map\", not one of book, film"]
        );
        assert_eq!(messages(&[("ids", "1,0")]), ["ids[1] is 0, the minimum is 1"]);
        assert_eq!(messages(&[("ids", "1,x")]), ["ids[1] is a string, not an integer"]);
        assert_eq!(messages(&[("ids", "7")]).len(), 1);
        let many = [("kinds", "book"); 50];
        assert_eq!(messages(&many).len(), 1);
        assert_eq!(check_query_with(&requests, &operation, many)[0].rule, "maxItems");
    }

    #[test]
    fn headers_are_checked_by_name_in_any_case() {
        let (requests, operation) = of_another_api();
        let messages = |headers: &[(&'static str, &'static str)]| {
            let found = check_headers_with(&requests, &operation, headers.iter().copied());
            found.iter().map(|found| format!("{}: {found}", found.rule)).collect::<Vec<_>>()
        };
        assert_eq!(messages(&[("x-tag", "abc"), ("x-depth", "9"), ("accept", "x")]), [""; 0]);
        assert_eq!(messages(&[]), ["required: the header X-Tag is missing"]);
        assert_eq!(
            messages(&[("x-tag", "a"), ("X-DEPTH", "10")]),
            ["maximum: X-Depth is 10, the maximum is 9"]
        );
        assert_eq!(messages(&[("x-tag", "abcd")]).len(), 1);
        assert_eq!(messages(&[("x-tag", "A")]).len(), 1);
        assert!(check_headers(&RETRIEVE_RESPONSE, [("x-tag", "A")]).is_empty());
    }

    fn messages(query: &[(&'static str, &'static str)]) -> Vec<String> {
        let violations = check_query(&LIST_RESPONSE_INPUT_ITEMS, query.iter().copied());
        violations.iter().map(ToString::to_string).collect()
    }

    /// Query parameters with a numeric bound, as stated by the specification.
    fn bounded() -> Vec<(&'static Operation, &'static str, i64, i64)> {
        let schemas: Value = serde_json::from_str(include_str!("../../api/generated/requests.schema.json"))
            .expect("the schemas are JSON");
        let of = |operation: &'static Operation| {
            let parameters = schemas["operations"][operation.id]["parameters"].clone();
            operation.query_parameters.iter().filter_map(move |name| {
                let (low, high) = (&parameters[name]["minimum"], &parameters[name]["maximum"]);
                Some((operation, *name, low.as_i64()?, high.as_i64()?))
            })
        };
        operations::ALL.iter().copied().flat_map(of).collect()
    }

    #[test]
    fn every_specified_bound_is_enforced() {
        let bounded = bounded();
        let is_known = |operation: &Operation, name: &str| {
            bounded.iter().any(|(known, parameter, ..)| known.id == operation.id && *parameter == name)
        };
        assert!(is_known(&LIST_NATIVE_MODELS, "pageSize"), "4");
        assert!(is_known(&LIST_RESPONSE_INPUT_ITEMS, "limit"), "2.4");
        for (operation, name, low, high) in bounded {
            let rules = |value: i64| {
                let found = check_query(operation, [(name, value.to_string())]);
                found.iter().map(|violation| violation.rule.clone()).collect::<Vec<_>>()
            };
            assert_eq!((rules(low), rules(high)), (Vec::new(), Vec::new()), "{} {name}", operation.id);
            assert_eq!(rules(low - 1), ["minimum"], "{} {name}", operation.id);
            assert_eq!(rules(high + 1), ["maximum"], "{} {name}", operation.id);
        }
    }

    #[test]
    fn parameters_within_their_bounds_are_accepted() {
        for query in [&[][..], &[("limit", "1")], &[("limit", "100"), ("order", "asc"), ("other", "x")]] {
            assert_eq!(messages(query), [""; 0]);
        }
    }

    #[test]
    fn out_of_bounds_parameters_are_reported_by_name() {
        assert_eq!(messages(&[("limit", "0")]), ["limit is 0, the minimum is 1"]);
        assert_eq!(messages(&[("limit", "101")]), ["limit is 101, the maximum is 100"]);
        assert_eq!(messages(&[("limit", "many")]), ["limit is a string, not an integer"]);
        assert_eq!(messages(&[("order", "up")]), ["order is \"up\", not one of asc, desc"]);
        // The first one counts.
        assert_eq!(messages(&[("limit", "2"), ("limit", "0")]), [""; 0]);
        assert!(check_query(&RETRIEVE_RESPONSE, [("limit", "0")]).is_empty());
    }
}
