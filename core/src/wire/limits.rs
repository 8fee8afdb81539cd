//! Validates a request against the specification and the limits of its model, and reports all violations at once, up to
//! a bound. The rules are the generated request schemas, the limits those of the catalog.

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
use crate::api::operation::Operation;
use gatewright_safe::visible::visible;

pub use self::address::is_public;
pub use self::calls::unmatched_calls;
pub(crate) use self::catalog::is_catalogued;
pub use self::catalog::wrong_endpoint;
pub use self::mapping::canonical;
pub use self::query::{check_headers, check_query, field, parameter};
pub use self::webhook_url::check_webhook_url;
pub(crate) use self::webhook_url::may_be_public;
pub use self::words::brief;

/// Maximum length of an `Idempotency-Key`, in visible ASCII characters.
///
/// ```
/// use gatewright::limits::MAX_IDEMPOTENCY_KEY_CHARS;
///
/// let key = "order-7".repeat(100);
/// assert!(key.len() > MAX_IDEMPOTENCY_KEY_CHARS, "the gateway rejects it");
/// ```
pub const MAX_IDEMPOTENCY_KEY_CHARS: usize = 255;

/// Maximum number of violations reported for one request. Validation stops there.
///
/// ```
/// use gatewright::{limits, operations};
///
/// let body = serde_json::json!({ "model": "model-sol", "messages": vec!["no message"; 1000] });
/// let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
/// assert_eq!((violations.len(), violations.is_complete()), (limits::MAX_VIOLATIONS, false));
/// ```
pub const MAX_VIOLATIONS: usize = 100;
/// Maximum number of violations in the text of [`Violations`].
const MAX_IN_TEXT: usize = 20;

/// Rule of a violation: the model does not take the field, or the endpoint does not serve the model.
///
/// ```
/// use gatewright::{limits, operations};
///
/// let body = serde_json::json!({ "model": "image_model_2", "prompt": "A harbour", "style": "vivid" });
/// let violations = limits::check(&operations::CREATE_IMAGE, &body);
/// assert_eq!((violations[0].pointer.as_str(), violations[0].rule.as_str()), ("/style", limits::UNSUPPORTED));
/// ```
pub const UNSUPPORTED: &str = "unsupported";

/// One rule that a request breaks.
///
/// ```
/// use gatewright::{limits, operations};
///
/// let body = serde_json::json!({ "model": "model-sol", "messages": [] });
/// let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
/// assert_eq!(violations[0].pointer, "/messages");
/// assert_eq!(violations[0].rule, "minItems");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer into the request body, at most 256 bytes. A longer one is cut at an enclosing container.
    pub pointer: String,
    /// The JSON Schema keyword that the value does not satisfy; `unsupported` for a field its model does not take, and
    /// for a model the endpoint does not serve.
    pub rule: String,
    /// What is wrong and what is allowed. A large value is quoted in part.
    pub message: String,
    /// Section of the specification, or `ours`.
    pub section: String,
    /// The missing member of the object at `pointer`, if that is the violation.
    #[serde(skip)]
    pub missing: Option<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Most messages begin with the value's name, which would repeat a short pointer.
        if !self.pointer.is_empty() && !begins_with_path(&self.message, &self.pointer) {
            // A pointer holds member names of the request, which may be anything.
            write!(f, "{}: ", visible(&self.pointer))?;
        }
        f.write_str(&self.message)
    }
}

/// Whether a message begins with the whole path of a pointer: `messages[0] is …` for `/messages/0`.
fn begins_with_path(message: &str, pointer: &str) -> bool {
    let mut rest = message;
    for (index, step) in pointer.split('/').skip(1).enumerate() {
        let after = match index {
            0 => rest.strip_prefix(step),
            _ => rest.strip_prefix('[').and_then(|rest| rest.strip_prefix(step)?.strip_prefix(']')),
        };
        let Some(after) = after else { return false };
        rest = after;
    }
    rest.starts_with(' ')
}

/// The violations of one request in the order found, at most [`MAX_VIOLATIONS`]. The text shows the first of them and,
/// if there are many, their number.
///
/// ```
/// use gatewright::{limits, operations};
///
/// let body = serde_json::json!({ "model": "model-sol", "messages": [], "temperature": 3 });
/// let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
/// assert!(violations.is_complete());
/// for violation in &violations.into_vec() {
///     println!("{violation}");
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Violations {
    found: Vec<Violation>,
    more: bool,
}

impl Violations {
    /// Whether the list is complete: false if validation stopped at the maximum.
    ///
    /// ```
    /// use gatewright::{limits, operations};
    ///
    /// let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &serde_json::json!({}));
    /// assert!(violations.is_complete());
    /// ```
    pub fn is_complete(&self) -> bool {
        !self.more
    }

    /// The violations, without whether the list is complete.
    ///
    /// ```
    /// use gatewright::{limits, operations};
    ///
    /// let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &serde_json::json!({})).into_vec();
    /// assert!(violations.iter().any(|violation| violation.missing.as_deref() == Some("model")));
    /// ```
    pub fn into_vec(self) -> Vec<Violation> {
        self.found
    }

    fn push(&mut self, violation: Violation) {
        if self.found.len() < MAX_VIOLATIONS {
            self.found.push(violation);
        } else {
            self.more = true;
        }
    }
}

impl Deref for Violations {
    type Target = [Violation];

    fn deref(&self) -> &[Violation] {
        &self.found
    }
}

impl From<Violation> for Violations {
    fn from(only: Violation) -> Self {
        Self { found: vec![only], more: false }
    }
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.found.into_iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The count comes first, since readers of errors truncate long texts.
        match (self.len(), self.more) {
            (..=MAX_IN_TEXT, false) => {}
            (all, false) => write!(f, "{all} rules are broken, the first {MAX_IN_TEXT}: ")?,
            (found, true) => write!(f, "at least {} rules are broken, the first {MAX_IN_TEXT}: ", found + 1)?,
        }
        for (index, violation) in self.iter().take(MAX_IN_TEXT).enumerate() {
            write!(f, "{}{violation}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

/// Rules that the operator of a gateway sets for requests.
///
/// ```
/// use gatewright::limits::{Rules, check_webhook_url};
///
/// let url = "http://127.0.0.1:9000/hook";
/// assert!(check_webhook_url(url, Rules::default()).is_err());
/// assert!(check_webhook_url(url, Rules::default().private_webhooks(true)).is_ok());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Rules {
    /// Whether a `webhook_url` may point to a private address and use http.
    pub private_webhooks: bool,
    /// Whether the models are the gateway's own, so that the catalog doesn't describe them.
    pub own_models: bool,
}

impl Rules {
    /// These rules with private webhooks allowed, or not.
    ///
    /// ```
    /// use gatewright::limits::{Rules, check_webhook_url};
    ///
    /// let rules = Rules::default().private_webhooks(true);
    /// assert!(check_webhook_url("http://10.0.0.7/hook", rules).is_ok());
    /// ```
    #[must_use]
    pub fn private_webhooks(self, allowed: bool) -> Self {
        Self { private_webhooks: allowed, ..self }
    }

    /// The same rules, for the gateway's own models if `own` is true: the limits of the catalog then don't apply, even to
    /// a model whose name is in the catalog.
    ///
    /// ```
    /// use gatewright::limits::{Rules, check_with};
    /// use gatewright::operations::COUNT_MESSAGE_TOKENS;
    ///
    /// let body = serde_json::json!({ "model": "video_model_1", "messages": [{ "role": "user", "content": "Hello!" }] });
    /// assert!(check_with(&COUNT_MESSAGE_TOKENS, &body, Rules::default().own_models(true)).is_empty());
    /// ```
    #[must_use]
    pub fn own_models(self, own: bool) -> Self {
        Self { own_models: own, ..self }
    }
}

/// Validates a request body against the rules of the specification and the limits of the model it names. For a model
/// outside the catalog, only the rules apply.
///
/// Never checked: what only the gateway knows (whether a named response, task or cached content exists, quotas, whether
/// the name in a `webhook_url` resolves to a public address), members and kinds that the specification does not
/// describe, path parameters (for the others see [`check_query`] and [`check_headers`]), and whether a JSON Schema in the request is valid.
///
/// ```
/// use gatewright::{limits, operations};
///
/// let body = serde_json::json!({
///     "model": "model-sol",
///     "messages": [{ "role": "user", "content": "Say hello." }],
///     "temperature": 3
/// });
/// let violations = limits::check(&operations::CREATE_CHAT_COMPLETION, &body);
/// assert_eq!(violations.len(), 1);
/// assert_eq!(violations[0].pointer, "/temperature");
/// ```
pub fn check(operation: &Operation, body: &Value) -> Violations {
    check_with(operation, body, Rules::default())
}

/// As [`check`], by a gateway's own [`Rules`].
///
/// ```
/// use gatewright::limits::{Rules, check_with};
/// use gatewright::operations::COUNT_MESSAGE_TOKENS;
///
/// let body = serde_json::json!({ "model": "video_model_1", "messages": [{ "role": "user", "content": "Hello!" }] });
/// assert!(!check_with(&COUNT_MESSAGE_TOKENS, &body, Rules::default()).is_empty());
/// // The catalog says nothing about a gateway's own model.
/// assert!(check_with(&COUNT_MESSAGE_TOKENS, &body, Rules::default().own_models(true)).is_empty());
/// ```
pub fn check_with(operation: &Operation, body: &Value, rules: Rules) -> Violations {
    let Some(schema) = REQUESTS.body(operation.id) else { return Violations::default() };
    let sent = body;
    let rewritten = canonical(operation, sent);
    let body = rewritten.as_ref().unwrap_or(sent);
    let mut violations = walk::walk(schema, body);
    let mut limits = if rules.own_models { Vec::new() } else { catalog::check(operation, body) };
    limits.extend(webhook_url::check(operation, body, rules));
    limits.extend(calls::check(operation, body));
    // A field that breaks a rule for all models is not reported again for its own model, unless another member is
    // missing.
    limits.retain(|limit| {
        let is_same_member = |rule: &Violation| limit.missing.is_none() || rule.missing == limit.missing;
        !violations.iter().any(|rule| rule.pointer == limit.pointer && is_same_member(rule))
    });
    for limit in limits {
        violations.push(limit);
    }
    if rewritten.is_some() {
        for violation in &mut violations.found {
            violation.pointer = mapping::as_sent(operation, sent, &violation.pointer);
        }
    }
    violations
}

/// A number as JSON Schema counts integers: `3.0` is one. None for anything else, and for negative numbers.
///
/// ```
/// use gatewright::limits::integer;
/// use serde_json::json;
///
/// assert_eq!(integer(&json!(3.0)), Some(3));
/// assert_eq!(integer(&json!(3.5)), None);
/// ```
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

/// The default of a field that a request leaves out, as the specification states it; null if it states none.
///
/// ```
/// use gatewright::limits::default_of;
/// use gatewright::operations::CREATE_CHAT_COMPLETION;
///
/// assert_eq!(default_of(&CREATE_CHAT_COMPLETION, "temperature"), 1);
/// assert!(default_of(&CREATE_CHAT_COMPLETION, "seed").is_null());
/// ```
pub fn default_of(operation: &Operation, field: &str) -> &'static Value {
    const NOTHING: &Value = &Value::Null;
    let property = REQUESTS.body(operation.id).and_then(|body| body.properties.get(field));
    property.map_or(NOTHING, |property| &property.default)
}

#[cfg(test)]
mod tests {
    //! tests/vectors/limits covers what is accepted and rejected; these tests cover the wording.

    use serde_json::json;

    use super::*;
    use crate::api::operations;

    fn messages(operation: &Operation, body: &Value) -> Vec<String> {
        check(operation, body).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn all_violations_are_reported_with_field_and_bound() {
        let body = json!({
            "model": "model-sol", "messages": [{"role": "user"}, {"role": "robot", "content": "hi"}],
            "temperature": 2.5, "max_tokens": "many", "stop": ["a", "b", "c", "d", "e"], "n": 0
        });
        let mut messages = messages(&operations::CREATE_CHAT_COMPLETION, &body);
        messages.sort();
        assert_eq!(
            messages,
            [
                "/messages/0: content or tool_calls or function_call or refusal is missing",
                "/messages/1/role: role is \"robot\", not one of system, user, assistant, developer, tool, function",
                "max_tokens is a string, not an integer or null",
                "n is 0, the minimum is 1",
                "stop has 5 items, the maximum is 4",
                "temperature is 2.5, the maximum is 2",
            ]
        );
    }

    #[test]
    fn model_limits_are_reported_along_with_schema_rules() {
        let body = json!({
            "model": "image_model_2", "prompt": "a kite", "n": 10, "size": "1792x1024", "quality": "hd",
            "response_format": "webp"
        });
        assert_eq!(
            messages(&operations::CREATE_IMAGE, &body),
            [
                "response_format is \"webp\", not one of url, b64_json",
                "size is \"1792x1024\", image_model_2 takes 256x256, 512x512, 1024x1024",
                "quality is given, but image_model_2 does not take it",
            ]
        );
    }

    #[test]
    fn field_that_breaks_two_rules_is_reported_once() {
        let body = json!({"model": "video_model_4", "prompt": "a kite", "duration": 99, "resolution": "4k"});
        let pointers: Vec<String> =
            check(&operations::CREATE_VIDEO, &body).into_iter().map(|violation| violation.pointer).collect();
        assert_eq!(pointers, ["/duration", "/resolution"]);
    }

    #[test]
    fn missing_field_is_reported_at_its_object() {
        let violations = check(&operations::CREATE_RESPONSE, &json!({"input": "hi"}));
        let [violation] = &*violations else { panic!("{violations:?}") };
        assert_eq!((violation.pointer.as_str(), violation.rule.as_str()), ("", "required"));
        assert_eq!(violation.to_string(), "model is missing");
    }

    #[test]
    fn union_reports_violations_of_the_matching_variant() {
        let body = json!({"model": "model-sol", "input": [{"type": "function_call_output", "call_id": 1}]});
        assert_eq!(
            messages(&operations::CREATE_RESPONSE, &body).first().map(String::as_str),
            Some("/input/0: output is missing")
        );
        let body = json!({"model": "model-sol", "input": 7});
        assert_eq!(
            messages(&operations::CREATE_RESPONSE, &body),
            ["input is the number 7, not a string or an array"]
        );
    }

    #[test]
    fn uncataloged_models_are_checked_against_the_schema_only() {
        let body =
            json!({"model": "another", "prompt": "a kite", "n": 10, "size": "4096x4096", "style": "vivid"});
        assert_eq!(messages(&operations::CREATE_IMAGE, &body), [""; 0]);
        assert!(!is_catalogued(&body));
        assert!(is_catalogued(&json!({"model": "video_model_1"})));
        assert!(is_catalogued(&json!({"contents": []})));
    }
}
