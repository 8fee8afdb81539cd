//! Whether a request keeps the rules of the specification and the limits of its model: all violations at once, as far
//! as they are worth telling. The rules are the generated request schemas, the limits those of the catalog.

mod address;
mod calls;
mod catalog;
mod mapping;
mod query;
mod schema;
mod walk;
mod webhook_url;
mod words;

use std::fmt;
use std::ops::Deref;

use serde::Serialize;
use serde_json::Value;

use self::schema::REQUESTS;
use crate::operation::Operation;
use crate::visible::visible;

pub use self::address::is_public;
pub use self::calls::unmatched_calls;
pub(crate) use self::catalog::is_catalogued;
pub use self::catalog::wrong_endpoint;
pub use self::mapping::canonical;
pub use self::query::{check_query, parameter};
pub use self::webhook_url::check_webhook_url;
pub(crate) use self::webhook_url::may_be_public;
pub use self::words::brief;

/// Most violations of one request that are told. Finding ends there.
pub const MOST_VIOLATIONS: usize = 100;
/// Most violations that the text of all of them repeats.
const MOST_IN_TEXT: usize = 20;

/// Rule of a violation: the model does not take the field, or the endpoint does not serve the model.
pub const UNSUPPORTED: &str = "unsupported";

/// One rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer into the request body, at most 256 bytes: a longer one ends at a container of what is meant.
    pub pointer: String,
    /// The JSON Schema keyword that the value does not satisfy; `unsupported` for a field its model does not take, and
    /// for a model the endpoint does not serve.
    pub rule: String,
    /// What is wrong and what would be right. A large value is repeated in part.
    pub message: String,
    /// Section of the specification, or `ours`.
    pub section: String,
    /// The member that is missing from where `pointer` leads, where that is what is wrong.
    #[serde(skip)]
    pub missing: Option<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            // Its members may have any name.
            write!(f, "{}: ", visible(&self.pointer))?;
        }
        write!(f, "{} ({})", self.message, self.section)
    }
}

/// The violations of one request, in the order found: at most [`MOST_VIOLATIONS`]. As text, how
/// many there are, where they are many, and the first of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Violations {
    told: Vec<Violation>,
    more: bool,
}

impl Violations {
    /// Whether these are all: false where finding ended because there are enough.
    pub fn is_complete(&self) -> bool {
        !self.more
    }

    /// The violations, without whether they are all.
    pub fn into_vec(self) -> Vec<Violation> {
        self.told
    }

    fn push(&mut self, violation: Violation) {
        if self.told.len() < MOST_VIOLATIONS {
            self.told.push(violation);
        } else {
            self.more = true;
        }
    }
}

impl Deref for Violations {
    type Target = [Violation];

    fn deref(&self) -> &[Violation] {
        &self.told
    }
}

impl From<Violation> for Violations {
    fn from(only: Violation) -> Self {
        Self { told: vec![only], more: false }
    }
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.told.into_iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // First how many, since readers of errors cut long texts.
        match (self.len(), self.more) {
            (..=MOST_IN_TEXT, false) => {}
            (all, false) => write!(f, "{all} rules are broken, the first {MOST_IN_TEXT}: ")?,
            (told, true) => write!(f, "at least {} rules are broken, the first {MOST_IN_TEXT}: ", told + 1)?,
        }
        for (index, violation) in self.iter().take(MOST_IN_TEXT).enumerate() {
            write!(f, "{}{violation}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// What a gateway's operator decides, and a request is held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Rules {
    /// Whether a `webhook_url` may lead to a private address, and may be http.
    pub private_webhooks: bool,
}

impl Rules {
    /// These rules with private webhooks allowed, or not.
    #[must_use]
    pub fn private_webhooks(self, allowed: bool) -> Self {
        Self { private_webhooks: allowed, ..self }
    }
}

/// The rules of the specification, and the limits of the model it names, that a request body breaks; none where it
/// breaks none. For a model the catalog does not hold only the rules count.
///
/// What is never checked: what only the gateway knows (whether a response, a task or a cached content that is named
/// exists, quotas, whether the name in a `webhook_url` resolves to a public address), members and kinds the
/// specification does not describe, the path's parameters (the query's are [`check_query`]'s), and whether a JSON Schema
/// in the request is one.
pub fn check(operation: &Operation, body: &Value) -> Violations {
    check_with(operation, body, Rules::default())
}

/// As [`check`], by a gateway's own [`Rules`].
pub fn check_with(operation: &Operation, body: &Value, rules: Rules) -> Violations {
    let Some(schema) = REQUESTS.body(operation.id) else { return Violations::default() };
    let sent = body;
    let rewritten = canonical(operation, sent);
    let body = rewritten.as_ref().unwrap_or(sent);
    let mut violations = walk::walk(schema, body);
    let mut limits = catalog::check(operation, body);
    limits.extend(webhook_url::check(operation, body, rules));
    limits.extend(calls::check(operation, body));
    // Where a field breaks a rule for all models, what its own model says is no news; another member that is missing is.
    limits.retain(|limit| {
        let says = |rule: &Violation| limit.missing.is_none() || rule.missing == limit.missing;
        !violations.iter().any(|rule| rule.pointer == limit.pointer && says(rule))
    });
    for limit in limits {
        violations.push(limit);
    }
    if rewritten.is_some() {
        for violation in &mut violations.told {
            violation.pointer = mapping::as_sent(operation, sent, &violation.pointer);
        }
    }
    violations
}

/// A number of a request as JSON Schema counts integers: `3.0` is one. None for anything else, and below zero.
pub fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0)?;
        // Exact up to 2^53; every limit of the specification is far below.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole, and within the range"
        )]
        (0.0..=9_007_199_254_740_992.0).contains(&number).then_some(number as u64)
    })
}

/// What the server assumes where a request leaves a field out, as the specification states it; null where it states
/// nothing.
pub fn default_of(operation: &Operation, field: &str) -> &'static Value {
    const NOTHING: &Value = &Value::Null;
    let property = REQUESTS.body(operation.id).and_then(|body| body.properties.get(field));
    property.map_or(NOTHING, |property| &property.default)
}

#[cfg(test)]
mod tests {
    //! What is accepted and refused, row by row, is in tests/vectors/limits; here is how it is said.

    use serde_json::json;

    use super::*;
    use crate::operations;

    fn said(operation: &Operation, body: &Value) -> Vec<String> {
        check(operation, body).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_violations_are_told_at_once_with_field_bound_and_section() {
        let body = json!({
            "model": "model-sol", "messages": [{"role": "user"}, {"role": "robot", "content": "hi"}],
            "temperature": 2.5, "max_tokens": "many", "stop": ["a", "b", "c", "d", "e"], "n": 0
        });
        let mut said = said(&operations::CREATE_CHAT_COMPLETION, &body);
        said.sort();
        assert_eq!(
            said,
            [
                "/max_tokens: max_tokens is a string, not an integer or null (2.1)",
                "/messages/0: content or tool_calls is missing (2.1)",
                "/messages/1/role: role is \"robot\", not one of system, user, assistant, developer, tool (2.1)",
                "/n: n is 0, the least is 1 (ours)",
                "/stop: stop has 5 items, the most is 4 (2.1)",
                "/temperature: temperature is 2.5, the most is 2 (2.1)",
            ]
        );
    }

    #[test]
    fn the_limits_of_the_model_are_told_beside_the_rules() {
        let body = json!({
            "model": "image_model_2", "prompt": "a kite", "n": 10, "size": "1792x1024", "quality": "hd",
            "response_format": "webp"
        });
        assert_eq!(
            said(&operations::CREATE_IMAGE, &body),
            [
                "/response_format: response_format is \"webp\", not one of url, b64_json (2.8)",
                "/size: size is \"1792x1024\", image_model_2 takes 256x256, 512x512, 1024x1024 (2.8)",
                "/quality: quality is given, but image_model_2 does not take it (2.8)",
            ]
        );
    }

    #[test]
    fn a_field_that_breaks_a_rule_is_not_told_of_twice() {
        let body = json!({"model": "video_model_4", "prompt": "a kite", "duration": 99, "resolution": "4k"});
        let pointers: Vec<String> =
            check(&operations::CREATE_VIDEO, &body).into_iter().map(|violation| violation.pointer).collect();
        assert_eq!(pointers, ["/duration", "/resolution"]);
    }

    #[test]
    fn a_missing_field_is_told_at_the_object_that_lacks_it() {
        let violations = check(&operations::CREATE_RESPONSE, &json!({"input": "hi"}));
        let [violation] = &*violations else { panic!("{violations:?}") };
        assert_eq!((violation.pointer.as_str(), violation.rule.as_str()), ("", "required"));
        assert_eq!(violation.to_string(), "model is missing (2.4)");
    }

    #[test]
    fn a_union_tells_what_the_alternative_of_the_values_type_lacks() {
        let body = json!({"model": "model-sol", "input": [{"type": "function_call_output", "call_id": 1}]});
        assert_eq!(
            said(&operations::CREATE_RESPONSE, &body).first().map(String::as_str),
            Some("/input/0: output is missing (ours)")
        );
        let body = json!({"model": "model-sol", "input": 7});
        assert_eq!(
            said(&operations::CREATE_RESPONSE, &body),
            ["/input: input is the number 7, not a string or an array (2.4)"]
        );
    }

    #[test]
    fn models_outside_the_catalog_are_held_to_the_rules_only() {
        let body =
            json!({"model": "another", "prompt": "a kite", "n": 10, "size": "4096x4096", "style": "vivid"});
        assert_eq!(said(&operations::CREATE_IMAGE, &body), [""; 0]);
        assert!(!is_catalogued(&body));
        assert!(is_catalogued(&json!({"model": "video_model_1"})));
        assert!(is_catalogued(&json!({"contents": []})));
    }
}
