//! The response object of the responses protocol (2.4; in the publicly documented form): the assertions of every check
//! that receives one.

use gatewright::ErrorBody;
use gatewright::report::Usage;
use serde_json::Value;

use crate::cell::Cell;
use crate::failure::{Category, Failure};

/// Maximum accepted token count: the largest integer that every JSON parser can represent.
const MAX_COUNT: u64 = (1 << 53) - 1;

/// The parts of a response object that checks need.
#[derive(Debug, Default)]
pub(crate) struct ResponseObject {
    /// Its output text, joined over all items and parts.
    pub(crate) text: String,
    /// Its items of type `function_call`.
    pub(crate) calls: Vec<Value>,
}

/// Asserts the form of a response object, that it is complete, and that its model is the requested one; sets
/// response_id, reported_model, usage and model_verified. Returns `None` if the value is not an object.
pub(crate) fn examine(cell: &mut Cell, value: &Value, model: &str) -> Option<ResponseObject> {
    let is_object = value.is_object();
    cell.assert(Category::Schema, "response", "a JSON object", kind(value), is_object);
    if !is_object {
        return None;
    }
    refuse_error(cell, value);
    let object = &value["object"];
    cell.assert(Category::Schema, "object", "\"response\"", brief(object), object == "response");
    cell.check.response_id = Some(text(&value["id"]));
    named(cell, "id", &value["id"]);
    cell.check.reported_model = Some(text(&value["model"]));
    named(cell, "model", &value["model"]);
    completed(cell, value);
    let response = output(cell, &value["output"]);
    cell.check.usage = Some(usage(cell, &value["usage"]));
    let reported = value["model"].as_str().unwrap_or_default();
    let verified = is_model(reported, model);
    cell.check.model_verified = Some(verified);
    let expected = format!("{model:?}, or with -YYYY-MM-DD after it");
    cell.assert(Category::Verification, "reported model", expected, brief(&value["model"]), verified);
    Some(response)
}

/// A failure in a response with a successful status.
fn refuse_error(cell: &mut Cell, value: &Value) {
    let error = &value["error"];
    if !error.is_null() {
        let error_body = ErrorBody::of_value(error);
        let failure = Failure::reported(Category::Response, "the response contains an error", error_body);
        cell.fail("error", "null or absent", brief(error), failure);
    }
}

fn completed(cell: &mut Cell, value: &Value) {
    let status = &value["status"];
    match status.as_str() {
        Some("completed") => {
            cell.assert(Category::Response, "status", "\"completed\"", brief(status), true);
        }
        Some(other @ ("failed" | "incomplete" | "cancelled" | "in_progress" | "queued")) => {
            let mut failure = Failure::new(Category::Response, format!("the response is {other}"));
            if let Some(reason) = value["incomplete_details"]["reason"].as_str() {
                failure.message.push_str(": ");
                failure.message.push_str(reason);
            }
            cell.fail("status", "\"completed\"", brief(status), failure);
        }
        _ => {
            cell.assert(Category::Schema, "status", "\"completed\"", brief(status), false);
        }
    }
}

/// Asserts that the output is well formed, and collects its contents.
pub(crate) fn output(cell: &mut Cell, output: &Value) -> ResponseObject {
    let mut response = ResponseObject::default();
    match gather(output, &mut response) {
        Ok(()) => {
            cell.assert(Category::Schema, "output", "well-formed items", "well-formed items", true);
        }
        Err((place, expected, found)) => {
            let what = format!("output{place}");
            cell.assert(Category::Schema, &what, expected, found, false);
        }
    }
    response
}

/// Errors: the first malformed location, with the expected and the actual value.
fn gather(output: &Value, response: &mut ResponseObject) -> Result<(), (String, &'static str, String)> {
    let wrong = |place: String, expected, found: &Value| Err((place, expected, brief(found)));
    let Some(items) = output.as_array() else { return wrong(String::new(), "an array of items", output) };
    if items.is_empty() {
        return wrong(String::new(), "at least one item", output);
    }
    for (index, item) in items.iter().enumerate() {
        match item["type"].as_str() {
            Some("message") => {
                let Some(parts) = item["content"].as_array() else {
                    return wrong(format!("/{index}/content"), "an array of parts", &item["content"]);
                };
                for (at, part) in parts.iter().enumerate() {
                    let place = || format!("/{index}/content/{at}");
                    match (part["type"].as_str(), part["text"].as_str()) {
                        (Some("output_text"), Some(text)) => response.text.push_str(text),
                        (Some("output_text"), None) => {
                            return wrong(place() + "/text", "a string", &part["text"]);
                        }
                        (Some(_), _) => {}
                        (None, _) => return wrong(place() + "/type", "a string", &part["type"]),
                    }
                }
            }
            Some("function_call") => response.calls.push(item.clone()),
            Some(_) => {}
            None => return wrong(format!("/{index}/type"), "a string", &item["type"]),
        }
    }
    Ok(())
}

/// The tokens that the service reports; a missing count is `None`, never 0.
fn usage(cell: &mut Cell, usage: &Value) -> Option<Usage> {
    if usage.is_null() {
        return None;
    }
    let is_object = usage.is_object();
    cell.assert(Category::Schema, "usage", "null or an object", kind(usage), is_object);
    if !is_object {
        return None;
    }
    let mut part = |pointer: &str| {
        let value = usage.pointer(pointer).unwrap_or(&Value::Null);
        let count = count(value);
        if count.is_none() && !value.is_null() {
            let what = format!("usage{pointer}");
            cell.assert(Category::Schema, &what, "null or an integer of 0 or more", brief(value), false);
        }
        count
    };
    Some(Usage {
        input_tokens: part("/input_tokens"),
        output_tokens: part("/output_tokens"),
        total_tokens: part("/total_tokens"),
        cached_tokens: part("/input_tokens_details/cached_tokens"),
        cache_write_tokens: part("/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: part("/output_tokens_details/reasoning_tokens"),
    })
}

/// An integer as JSON Schema defines it: 3.0 is one.
pub(crate) fn count(value: &Value) -> Option<u64> {
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        // No real token count is beyond the exact integers of a double.
        format!("{:.0}", number.abs()).parse().ok()
    })?;
    (whole <= MAX_COUNT).then_some(whole)
}

fn named(cell: &mut Cell, what: &str, value: &Value) {
    let held = value.as_str().is_some_and(|text| !text.is_empty());
    cell.assert(Category::Schema, what, "a string that is not empty", brief(value), held);
}

/// Whether the model id `reported` may stand for `model`: the id itself, or the id of a dated version.
fn is_model(reported: &str, model: &str) -> bool {
    let Some(rest) = reported.strip_prefix(model) else { return false };
    rest.is_empty()
        || rest.len() == "-YYYY-MM-DD".len()
            && rest.bytes().enumerate().all(|(index, byte)| match index {
                0 | 5 | 8 => byte == b'-',
                _ => byte.is_ascii_digit(),
            })
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// The kind of a JSON value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A value for a message: scalars as they are, other values by their kind.
pub(crate) fn brief(value: &Value) -> String {
    match value {
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        _ => kind(value).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dated_version_counts_as_the_model() {
        for reported in ["model-sol", "model-sol-2026-01-31"] {
            assert!(is_model(reported, "model-sol"), "{reported}");
        }
        for reported in [
            "",
            "model-so",
            "model-sol-mini",
            "model-sol-2026-1-31",
            "model-sol-2026-01-311",
            "Model-sol",
            "model-terra",
            "model-sol-٢٠٢٦",
        ] {
            assert!(!is_model(reported, "model-sol"), "{reported}");
        }
    }

    #[test]
    fn token_counts_follow_json_schema_integers() {
        for (value, expected) in [
            (json!(3), Some(3)),
            (json!(3.0), Some(3)),
            (json!(-0.0), Some(0)),
            (json!(9_007_199_254_740_991_u64), Some(9_007_199_254_740_991)),
            (json!(9_007_199_254_740_992_u64), None),
            (json!(1e300), None),
            (json!(-1), None),
            (json!(0.5), None),
            (json!("3"), None),
            (json!(false), None),
            (json!(null), None),
        ] {
            assert_eq!(count(&value), expected, "{value}");
        }
    }
}
