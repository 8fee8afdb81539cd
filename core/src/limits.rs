//! Whether a request keeps the rules of the specification and the limits of its model: all violations at once.
//! The rules are the generated request schemas, the limits those of the catalog.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, OnceLock};

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde::Serialize;
use serde_json::{Value, json};

use crate::catalog::{IMAGE_MODELS, ImageModel, TEXT_MODELS, VIDEO_MODELS, VideoModel};
use crate::operation::Operation;
use crate::operations;

/// One rule that a request breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON Pointer into the request body.
    pub pointer: String,
    /// The JSON Schema keyword that the value does not satisfy; `unsupported` for a field its model does not take.
    pub rule: String,
    /// What is wrong and what would be right.
    pub message: String,
    /// Section of the specification, or `ours`.
    pub section: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(f, "{}: ", self.pointer)?;
        }
        write!(f, "{} ({})", self.message, self.section)
    }
}

/// Every rule of the specification, and every limit of the model it names, that a request body breaks; empty where
/// it breaks none. For a model the catalog does not hold only the rules count.
pub fn check(operation: &Operation, body: &Value) -> Vec<Violation> {
    let mut violations: Vec<Violation> = match request_schemas().get(operation.id) {
        Some(request) => {
            let errors = request.validator().iter_errors(body);
            errors.flat_map(|error| explain(&error)).collect()
        }
        None => Vec::new(),
    };
    // A value of the wrong type breaks its other rules, too, and that helps nobody.
    let mistyped: Vec<String> =
        violations.iter().filter(|it| it.rule == "type").map(|it| it.pointer.clone()).collect();
    violations.retain(|it| it.rule == "type" || !mistyped.contains(&it.pointer));
    let mut of_model = Vec::new();
    if operation.id == operations::CREATE_IMAGE.id
        && let Some(model) = named(body).and_then(|id| IMAGE_MODELS.iter().find(|model| model.id == id))
    {
        check_image(model, body, &mut of_model);
    }
    if operation.id == operations::CREATE_VIDEO.id
        && let Some(model) = named(body).and_then(|id| VIDEO_MODELS.iter().find(|model| model.id == id))
    {
        check_video(model, body, &mut of_model);
    }
    // Where a field breaks a rule for all models, what its own model says is no news.
    of_model.retain(|limit: &Violation| violations.iter().all(|rule| rule.pointer != limit.pointer));
    violations.extend(of_model);
    violations
}

/// Whether the catalog holds the model that a request names. A request that names none is for a model of its path
/// or for none at all, and is held to the rules.
pub(crate) fn is_catalogued(body: &Value) -> bool {
    named(body).is_none_or(|id| {
        TEXT_MODELS.iter().any(|model| model.id == id)
            || IMAGE_MODELS.iter().any(|model| model.id == id)
            || VIDEO_MODELS.iter().any(|model| model.id == id)
    })
}

fn named(body: &Value) -> Option<&str> {
    body.get("model")?.as_str()
}

/// What the catalog calls ours is said to be.
fn section_of(member: &str, ours: &[&str], stated: &'static str) -> &'static str {
    if ours.contains(&member) { "ours" } else { stated }
}

fn check_image(model: &ImageModel, body: &Value, violations: &mut Vec<Violation>) {
    let id = model.id;
    let mut break_rule = |field: &str, rule: &str, section: &str, message: String| {
        let (pointer, rule) = (format!("/{field}"), rule.to_owned());
        violations.push(Violation { pointer, rule, message, section: section.to_owned() });
    };
    if let Some(limit) = model.max_prompt_characters
        && let Some(prompt) = body.get("prompt").and_then(Value::as_str)
    {
        let length = prompt.chars().count();
        if u64::try_from(length).is_ok_and(|length| length > u64::from(limit)) {
            let message = format!("prompt has {length} characters, {id} takes at most {limit}");
            let section = section_of("max_prompt_characters", model.ours, "2.8");
            break_rule("prompt", "maxLength", section, message);
        }
    }
    if let Some(n) = body.get("n").and_then(integer)
        && n > u64::from(model.max_n)
    {
        break_rule("n", "maximum", "2.8", format!("n is {n}, {id} makes at most {} at once", model.max_n));
    }
    if let Some(size) = body.get("size").and_then(Value::as_str) {
        match model.sizes {
            Some(sizes) if !sizes.contains(&size) => {
                break_rule(
                    "size",
                    "enum",
                    "2.8",
                    format!("size is {size:?}, {id} takes {}", sizes.join(", ")),
                );
            }
            None if pixels(size)
                .is_some_and(|(width, height)| width > model.max_width || height > model.max_height) =>
            {
                let most = model.max_resolution;
                break_rule("size", "maximum", "2.10", format!("size is {size:?}, {id} makes at most {most}"));
            }
            _ => {}
        }
    }
    for (field, taken) in [("quality", model.quality), ("style", model.style)] {
        if !taken && body.get(field).is_some_and(|value| !value.is_null()) {
            break_rule(field, "unsupported", "2.8", format!("{field} is given, but {id} does not take it"));
        }
    }
}

fn check_video(model: &VideoModel, body: &Value, violations: &mut Vec<Violation>) {
    let id = model.id;
    let mut break_rule = |field: &str, rule: &str, section: &str, message: String| {
        let (pointer, rule) = (format!("/{field}"), rule.to_owned());
        violations.push(Violation { pointer, rule, message, section: section.to_owned() });
    };
    if let Some(duration) = body.get("duration").and_then(integer) {
        if let Some(most) = model.max_duration_s
            && duration > u64::from(most)
        {
            break_rule(
                "duration",
                "maximum",
                "2.9",
                format!("duration is {duration} s, {id} makes at most {most} s"),
            );
        }
        if let Some(least) = model.min_duration_s
            && duration < u64::from(least)
        {
            break_rule(
                "duration",
                "minimum",
                section_of("min_duration_s", model.ours, "2.6"),
                format!("duration is {duration} s, {id} makes at least {least} s"),
            );
        }
    }
    for (field, values, section) in
        [("resolution", model.resolutions, "2.9"), ("aspect_ratio", model.aspect_ratios, "2.6")]
    {
        if let Some(value) = body.get(field).and_then(Value::as_str)
            && !values.contains(&value)
        {
            break_rule(
                field,
                "enum",
                section,
                format!("{field} is {value:?}, {id} takes {}", values.join(", ")),
            );
        }
    }
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
    let name = request_schemas().get(operation.id).map_or("", |request| request.name);
    &SCHEMAS["$defs"][name]["properties"][field]["default"]
}

fn pixels(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    Some((width.parse().ok()?, height.parse().ok()?))
}

/// The request schemas as generated from the specification, with each operation's body by name.
static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("generated/requests.schema.json")).expect("the generator writes JSON")
});

/// The body of one operation; its validator is built when it is first asked for.
struct RequestSchema {
    name: &'static str,
    validator: OnceLock<Validator>,
}

fn request_schemas() -> &'static HashMap<&'static str, RequestSchema> {
    static REQUESTS: LazyLock<HashMap<&'static str, RequestSchema>> = LazyLock::new(|| {
        let operations = SCHEMAS["operations"].as_object().into_iter().flatten();
        let with_body =
            operations.filter_map(|(id, operation)| Some((id.as_str(), operation["body"].as_str()?)));
        with_body.map(|(id, name)| (id, RequestSchema { name, validator: OnceLock::new() })).collect()
    });
    &REQUESTS
}

impl RequestSchema {
    fn validator(&self) -> &Validator {
        self.validator.get_or_init(|| {
            let schema = json!({
                "$schema": SCHEMAS["$schema"],
                "$ref": format!("#/$defs/{}", self.name),
                "$defs": SCHEMAS["$defs"],
            });
            jsonschema::options()
                .should_validate_formats(true)
                .build(&schema)
                .expect("the generator writes valid schemas")
        })
    }
}

/// One violation, or several where a union hides them.
fn explain(error: &ValidationError<'_>) -> Vec<Violation> {
    let pointer = error.instance_path().as_str();
    let field = pointer.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("the body");
    let value = error.instance();
    let message = match error.kind() {
        Kind::OneOfNotValid { context } | Kind::AnyOf { context } => {
            return explain_union(error, field, context);
        }
        Kind::Required { property } => format!("{} is missing", property.as_str().unwrap_or_default()),
        Kind::Type { kind } => format!("{field} is {}, not {}", type_of(value), types(kind)),
        Kind::Enum { options } => {
            let options: Vec<String> = options.as_array().into_iter().flatten().map(plain).collect();
            format!("{field} is {value}, not one of {}", options.join(", "))
        }
        Kind::Minimum { limit } => format!("{field} is {value}, the least is {limit}"),
        Kind::Maximum { limit } => format!("{field} is {value}, the most is {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("{field} is {value}, it must be above {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("{field} is {value}, it must be below {limit}"),
        Kind::MinLength { limit: 1 } => format!("{field} is empty"),
        Kind::MinItems { limit } | Kind::MinLength { limit } | Kind::MinProperties { limit } => {
            format!("{field} has {}, the least is {limit}", size_of(value))
        }
        Kind::MaxItems { limit } | Kind::MaxLength { limit } | Kind::MaxProperties { limit } => {
            format!("{field} has {}, the most is {limit}", size_of(value))
        }
        Kind::Pattern { pattern } => format!("{field} is {value}, not of the form {pattern}"),
        Kind::Format { format } => format!("{field} is {value}, not a valid {format}"),
        Kind::Constant { expected_value } => format!("{field} is {value}, not {expected_value}"),
        Kind::AdditionalProperties { unexpected } => format!("{} is not known here", unexpected.join(", ")),
        _ => error.to_string(),
    };
    vec![violation(error, message)]
}

/// What a union really lacks: of the alternatives the one whose type the value has, else all of them.
fn explain_union(
    error: &ValidationError<'_>,
    field: &str,
    alternatives: &[Vec<ValidationError<'static>>],
) -> Vec<Violation> {
    let at_top = |inner: &ValidationError<'_>| inner.instance_path() == error.instance_path();
    let wrong_type = |inner: &ValidationError<'_>| at_top(inner) && matches!(inner.kind(), Kind::Type { .. });
    let mut meant = alternatives.iter().filter(|errors| !errors.iter().any(wrong_type));
    if let (Some(errors), None) = (meant.next(), meant.next()) {
        return errors.iter().flat_map(explain).collect();
    }
    let missing: Vec<&str> = alternatives
        .iter()
        .flatten()
        .filter_map(|inner| match inner.kind() {
            Kind::Required { property } if at_top(inner) => property.as_str(),
            _ => None,
        })
        .collect();
    let expected: Vec<String> = alternatives
        .iter()
        .flatten()
        .filter_map(|inner| match inner.kind() {
            Kind::Type { kind } if at_top(inner) => Some(types(kind)),
            _ => None,
        })
        .collect();
    let message = if !missing.is_empty() {
        format!("{} is missing", missing.join(" or "))
    } else if !expected.is_empty() {
        format!("{field} is {}, not {}", type_of(error.instance()), expected.join(" or "))
    } else {
        format!("{field} has none of the forms it may have")
    };
    vec![violation(error, message)]
}

fn violation(error: &ValidationError<'_>, message: String) -> Violation {
    Violation {
        pointer: error.instance_path().as_str().to_owned(),
        rule: error.kind().keyword().to_owned(),
        message,
        section: section(error.schema_path().as_str()),
    }
}

/// The innermost section on the way to a keyword of the schema.
fn section(schema_path: &str) -> String {
    let mut schema = &*SCHEMAS;
    let mut section = "ours";
    for step in schema_path.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match schema {
            Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => schema.get(&step),
        };
        let Some(next) = next else { break };
        schema = next;
        section = schema.get("x-source").and_then(Value::as_str).unwrap_or(section);
    }
    section.to_owned()
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => with_article(&kind.to_string()),
        TypeKind::Multiple(kinds) => {
            let mut kinds: Vec<String> = kinds.iter().map(|kind| with_article(&kind.to_string())).collect();
            kinds.sort_by_key(|kind| kind == "null");
            kinds.join(" or ")
        }
    }
}

fn type_of(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "a boolean".to_owned(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn with_article(name: &str) -> String {
    match name {
        "null" => name.to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn size_of(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{} characters", text.chars().count()),
        Value::Array(items) => format!("{} items", items.len()),
        Value::Object(members) => format!("{} members", members.len()),
        other => other.to_string(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    //! What is accepted and refused, row by row, is in tests/vectors/limits; here is how it is said.

    use super::*;

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
                "/n: n is 0, the least is 1 (2.1)",
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
        let [violation] = violations.as_slice() else { panic!("{violations:?}") };
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
