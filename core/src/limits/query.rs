//! The parameters of a request's query against their schemas.

use std::borrow::Cow;

use serde_json::Value;

use super::Violations;
use super::schema::{REQUESTS, Schema, Type};
use super::walk::walk_member;
use crate::operation::Operation;

/// Every rule that a parameter of the query breaks. Of a parameter that is sent several times the first counts; what
/// the specification does not name is not checked. The pointers are `/` and the parameter's name.
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

/// The value of a query parameter by its type; without one, what the server assumes as the specification states it,
/// or null where it states nothing. Text that is none of its type stays text.
pub fn parameter(operation: &Operation, name: &str, text: Option<&str>) -> Value {
    match (REQUESTS.parameter(operation.id, name), text) {
        (Some(schema), Some(text)) => typed(schema, text),
        (Some(schema), None) => schema.default.clone(),
        (None, _) => Value::Null,
    }
}

/// A query is text: what it stands for is said by the type.
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
    use crate::operations::{LIST_RESPONSE_INPUT_ITEMS, RETRIEVE_RESPONSE};

    fn said(query: &[(&'static str, &'static str)]) -> Vec<String> {
        let violations = check_query(&LIST_RESPONSE_INPUT_ITEMS, query.iter().copied());
        violations.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn parameters_within_their_bounds_are_accepted() {
        for query in [&[][..], &[("limit", "1")], &[("limit", "100"), ("order", "asc"), ("other", "x")]] {
            assert_eq!(said(query), [""; 0]);
        }
    }

    #[test]
    fn parameters_out_of_bounds_are_told_by_their_name() {
        assert_eq!(said(&[("limit", "0")]), ["/limit: limit is 0, the least is 1 (ours)"]);
        assert_eq!(said(&[("limit", "101")]), ["/limit: limit is 101, the most is 100 (ours)"]);
        assert_eq!(said(&[("limit", "many")]), ["/limit: limit is a string, not an integer (ours)"]);
        assert_eq!(said(&[("order", "up")]), ["/order: order is \"up\", not one of asc, desc (ours)"]);
        // The first counts.
        assert_eq!(said(&[("limit", "2"), ("limit", "0")]), [""; 0]);
        assert!(check_query(&RETRIEVE_RESPONSE, [("limit", "0")]).is_empty());
    }
}
