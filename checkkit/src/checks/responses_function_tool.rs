//! `responses_function_tool`: the response holds exactly one call of the forced function, with the requested arguments.

use serde_json::{Value, json};

use super::context::{Context, json_exchange};
use crate::cell::Cell;
use crate::failure::{Category, Failure};
use crate::response_object::{brief, examine, kind};

const FUNCTION: &str = "compat_echo";

pub(super) async fn check(context: &Context<'_>, cell: &mut Cell, model: &str) {
    let token = context.token;
    let body = json!({
        "model": model,
        "input": format!("Call the function {FUNCTION} with this value: {token}"),
        "tools": [{
            "type": "function",
            "name": FUNCTION,
            "description": "Gives back the value it is called with.",
            "parameters": {
                "type": "object",
                "properties": { "value": { "type": "string" } },
                "required": ["value"],
                "additionalProperties": false,
            },
            "strict": true,
        }],
        "tool_choice": { "type": "function", "name": FUNCTION },
    });
    let Some(value) = json_exchange(context, cell, "/responses", Some(&body)).await else { return };
    let Some(response) = examine(cell, &value, model) else { return };
    let count = response.calls.len();
    cell.assert(Category::Verification, "function calls", "exactly 1", count.to_string(), count == 1);
    let first = response.calls.first().unwrap_or(&Value::Null);
    let named = first["name"] == FUNCTION;
    cell.check.call_name_verified = Some(named);
    if count > 0 {
        cell.assert(Category::Verification, "name", format!("{FUNCTION:?}"), brief(&first["name"]), named);
        let held = first["call_id"].as_str().is_some_and(|id| !id.is_empty());
        cell.assert(
            Category::Schema,
            "call_id",
            "a string that is not empty",
            brief(&first["call_id"]),
            held,
        );
        let is_text = first["arguments"].is_string();
        cell.assert(Category::Schema, "arguments", "a string", brief(&first["arguments"]), is_text);
    }
    let expected = json!({ "value": token });
    let arguments = first["arguments"].as_str();
    let verified = arguments
        .is_some_and(|text| serde_json::from_str::<Value>(text).is_ok_and(|value| value == expected));
    cell.check.arguments_verified = Some(verified);
    if let Some(arguments) = arguments {
        let what = "arguments";
        if verified {
            cell.assert(Category::Verification, what, expected.to_string(), arguments, true);
        } else {
            let failure = Failure::new(Category::Verification, unlike(arguments));
            cell.fail(what, expected.to_string(), arguments, failure);
        }
    }
}

/// How the arguments differ from the requested ones, in words: their JSON is in the evidence.
fn unlike(arguments: &str) -> String {
    let found = match serde_json::from_str::<Value>(arguments) {
        Err(error) if error.is_eof() => {
            return format!(
                "the arguments were cut off after {} bytes, in the middle of their JSON",
                arguments.len()
            );
        }
        Err(error) => format!("not JSON ({error})"),
        Ok(Value::Object(members)) => {
            let names: Vec<String> = members.keys().map(|name| format!("{name:?}")).collect();
            match (names.as_slice(), members.get("value")) {
                ([], _) => "none".to_owned(),
                ([_], Some(value)) => format!("\"value\" with {}", brief(value)),
                _ => names.join(", "),
            }
        }
        Ok(value) => kind(&value).to_owned(),
    };
    format!("arguments: expected \"value\" alone, with the run's token, found {found}")
}
