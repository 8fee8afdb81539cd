//! Validates the query parameters of a request against their schemas.

use std::borrow::Cow;

use serde_json::Value;

use super::Violations;
use super::schema::{REQUESTS, Schema, Type};
use super::walk::walk_member;
use crate::api::operation::Operation;

/// Every rule that a query parameter violates. If a parameter is repeated, the first one counts. Parameters that the
/// specification does not name are not checked. A pointer is `/` followed by the parameter's name.
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
    let mut unseen = operation.query_parameters.to_vec();
    let mut violations = Violations::default();
    for (name, text) in query {
        let name = name.into();
        let Some(at) = unseen.iter().position(|known| *known == name) else { continue };
        let name = unseen.swap_remove(at);
        if let Some(schema) = REQUESTS.parameter(operation.id, name) {
            for violation in walk_member(schema, name, &typed(schema, &text.into())) {
                violations.push(violation);
            }
        }
    }
    violations
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

/// A query is text; the type in the schema says how to parse it.
fn typed(schema: &Schema, text: &str) -> Value {
    match schema.types.as_slice() {
        [Type::Integer | Type::Number | Type::Boolean] => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
        }
        _ => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations::{self, LIST_NATIVE_MODELS, LIST_RESPONSE_INPUT_ITEMS, RETRIEVE_RESPONSE};

    fn said(query: &[(&'static str, &'static str)]) -> Vec<String> {
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
    fn every_bound_of_the_specification_holds() {
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
            assert_eq!(said(query), [""; 0]);
        }
    }

    #[test]
    fn parameters_out_of_bounds_are_told_by_their_name() {
        assert_eq!(said(&[("limit", "0")]), ["limit is 0, the minimum is 1"]);
        assert_eq!(said(&[("limit", "101")]), ["limit is 101, the maximum is 100"]);
        assert_eq!(said(&[("limit", "many")]), ["limit is a string, not an integer"]);
        assert_eq!(said(&[("order", "up")]), ["order is \"up\", not one of asc, desc"]);
        // The first one counts.
        assert_eq!(said(&[("limit", "2"), ("limit", "0")]), [""; 0]);
        assert!(check_query(&RETRIEVE_RESPONSE, [("limit", "0")]).is_empty());
    }
}
