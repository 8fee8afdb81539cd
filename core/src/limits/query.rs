//! The parameters of a request's query against their schemas.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::{SCHEMAS, Violation, explain};
use crate::operation::Operation;

/// Every rule that a parameter of the query breaks. Of a parameter that is sent several times the first counts; what
/// the specification does not name is not checked. The pointers are `/` and the parameter's name.
pub fn check_query<'q>(
    operation: &Operation,
    query: impl IntoIterator<Item = (impl Into<Cow<'q, str>>, impl Into<Cow<'q, str>>)>,
) -> Vec<Violation> {
    let mut unseen = operation.query_parameters.to_vec();
    let mut violations = Vec::new();
    for (name, text) in query {
        let name = name.into();
        let Some(at) = unseen.iter().position(|known| *known == name) else { continue };
        let name = unseen.swap_remove(at);
        if let Some(parameter) = PARAMETERS.get(&(operation.id, name)) {
            violations.extend(parameter.check(name, &text.into()));
        }
    }
    violations
}

/// The value of a query parameter by its type; without one, what the server assumes as the specification states it,
/// or null where it states nothing. Text that is none of its type stays text.
pub fn parameter(operation: &Operation, name: &'static str, text: Option<&str>) -> Value {
    match (PARAMETERS.get(&(operation.id, name)), text) {
        (Some(parameter), Some(text)) => parameter.value(text),
        (Some(parameter), None) => parameter.schema["default"].clone(),
        (None, _) => Value::Null,
    }
}

struct Parameter {
    schema: &'static Value,
    validator: Validator,
}

static PARAMETERS: LazyLock<HashMap<(&'static str, &'static str), Parameter>> = LazyLock::new(|| {
    let mut all = HashMap::new();
    for (id, operation) in SCHEMAS["operations"].as_object().into_iter().flatten() {
        for (name, schema) in operation["parameters"].as_object().into_iter().flatten() {
            let validator = jsonschema::validator_for(schema).expect("the generator writes valid schemas");
            all.insert((id.as_str(), name.as_str()), Parameter { schema, validator });
        }
    }
    all
});

impl Parameter {
    /// A query is text: what it stands for is said by the type.
    fn value(&self, text: &str) -> Value {
        match self.schema["type"].as_str() {
            Some("integer" | "number" | "boolean") => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
            }
            _ => Value::String(text.to_owned()),
        }
    }

    fn check(&self, name: &str, text: &str) -> Vec<Violation> {
        let value = self.value(text);
        let errors = self.validator.iter_errors(&value);
        let found = errors.flat_map(|error| explain(&error));
        // The schema is the value's own, and so the place of what it finds is the value.
        found
            .map(|violation| Violation {
                pointer: format!("/{name}"),
                message: violation.message.replacen("the body", name, 1),
                ..violation
            })
            .collect()
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
        assert_eq!(check_query(&RETRIEVE_RESPONSE, [("limit", "0")]), []);
    }
}
