//! Calls of tools and their results in a conversation: what no schema can say, since it lies between messages (ours;
//! the protocols are the source's, 2.1 and 2.4).

use std::collections::HashMap;

use serde_json::Value;

use super::words::brief;
use super::{MOST_VIOLATIONS, Violation, Violations};
use crate::operation::Operation;
use crate::operations;

/// Rule of a violation: a result that answers no call, or a call that no result answers.
const RULE: &str = "unmatched";
/// Finding ends at one more than is told, which says that there are more.
const MOST: usize = MOST_VIOLATIONS + 1;

/// What of a request's own conversation does not match.
pub(super) fn check(operation: &Operation, body: &Value) -> Vec<Violation> {
    if operation.id == operations::CREATE_CHAT_COMPLETION.id {
        return body["messages"].as_array().map_or_else(Vec::new, |messages| of_messages(messages));
    }
    if operation.id == operations::CREATE_RESPONSE.id
        && let Some(items) = body["input"].as_array()
    {
        // What came before, the gateway alone knows.
        let goes_on = !body["previous_response_id"].is_null() || !body["conversation"].is_null();
        return of_items(items, 0, goes_on);
    }
    Vec::new()
}

/// What does not match in a whole conversation of the responses protocol, `kept` items of which are from before the
/// input: results without an earlier call, and calls without a result. Pointers are into the request body.
pub fn unmatched_calls(items: &[Value], kept: usize) -> Violations {
    let mut violations = Violations::default();
    for violation in of_items(items, kept, false) {
        violations.push(violation);
    }
    violations
}

/// Chat: a tool message answers a call of the assistant's message before it, and every call is answered before anyone
/// else speaks.
fn of_messages(messages: &[Value]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut open = Open::default();
    for (index, message) in messages.iter().enumerate() {
        if found.len() >= MOST {
            return found;
        }
        if message["role"] != "tool" {
            found.extend(open.unanswered());
            open = Open::of(index, message);
            continue;
        }
        match message.get("tool_call_id") {
            Some(Value::String(id)) => {
                if let Some(answered) = open.calls.get_mut(id.as_str()) {
                    *answered = true;
                } else {
                    let id = quoted(id);
                    let message = format!(
                        "tool_call_id is {id}, which is no call of the assistant's message before it"
                    );
                    found.push(violation(format!("/messages/{index}/tool_call_id"), message));
                }
            }
            None | Some(Value::Null) => found.push(Violation {
                rule: "required".to_owned(),
                missing: Some("tool_call_id".to_owned()),
                ..violation(format!("/messages/{index}"), "tool_call_id is missing".to_owned())
            }),
            // Of the wrong type: the schema says so.
            Some(_) => {}
        }
    }
    found.extend(open.unanswered());
    found
}

/// The calls of an assistant's message, and whether each was answered.
#[derive(Default)]
struct Open<'m> {
    message: usize,
    calls: HashMap<&'m str, bool>,
}

impl<'m> Open<'m> {
    fn of(message: usize, value: &'m Value) -> Self {
        let calls = value["tool_calls"].as_array().into_iter().flatten();
        Self { message, calls: calls.filter_map(|call| Some((call["id"].as_str()?, false))).collect() }
    }

    /// One violation for all calls of the message.
    fn unanswered(&self) -> Option<Violation> {
        let left = || self.calls.iter().filter(|(_, answered)| !**answered).map(|(id, _)| *id);
        let first = left().min()?;
        let others = match left().count() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        let message = format!("no tool message after it answers the call {}{others}", quoted(first));
        Some(violation(format!("/messages/{}/tool_calls", self.message), message))
    }
}

/// Responses: a result has a call of its kind before it, and every call has a result. `goes_on`: there are items
/// before these.
fn of_items(items: &[Value], kept: usize, goes_on: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    // A reference, or what a compaction stands for, may be the call.
    let mut may_be_elsewhere = goes_on;
    let mut calls: HashMap<(&str, &str), Call> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        if found.len() >= MOST {
            return found;
        }
        let Some(kind) = item["type"].as_str() else { continue };
        may_be_elsewhere |= matches!(kind, "item_reference" | "compaction");
        let Some(id) = item["call_id"].as_str() else { continue };
        match kind {
            "function_call" | "custom_tool_call" => {
                calls.entry((kind, id)).or_insert(Call { index, answered: false });
            }
            "function_call_output" | "custom_tool_call_output" => {
                let kind = kind.trim_end_matches("_output");
                match calls.get_mut(&(kind, id)) {
                    Some(call) => call.answered = true,
                    None if may_be_elsewhere => {}
                    None => {
                        let pointer = match index.checked_sub(kept) {
                            Some(index) => format!("/input/{index}/call_id"),
                            None => "/previous_response_id".to_owned(),
                        };
                        let message = format!("no {kind} before it has the call_id {}", quoted(id));
                        found.push(violation(pointer, message));
                    }
                }
            }
            _ => {}
        }
    }
    if items.last().is_none_or(|item| item["type"] != "compaction_trigger") {
        let left = calls.into_iter().filter(|(_, call)| !call.answered);
        let mut left: Vec<_> = left.map(|((kind, id), call)| (call.index, kind, id)).collect();
        left.sort_unstable();
        left.truncate(MOST.saturating_sub(found.len()));
        found.extend(left.into_iter().map(|(index, kind, id)| unanswered(index.checked_sub(kept), kind, id)));
    }
    found
}

struct Call {
    index: usize,
    answered: bool,
}

/// `index`: place of the call in the input; none where an earlier response made it.
fn unanswered(index: Option<usize>, kind: &str, id: &str) -> Violation {
    let id = quoted(id);
    match index {
        Some(index) => violation(
            format!("/input/{index}/call_id"),
            format!("no {kind}_output after it has the call_id {id}"),
        ),
        None => violation(
            "/input".to_owned(),
            format!("no {kind}_output has the call_id {id}, which an earlier response called"),
        ),
    }
}

fn quoted(id: &str) -> String {
    brief(format_args!("{id:?}"))
}

fn violation(pointer: String, message: String) -> Violation {
    Violation { pointer, rule: RULE.to_owned(), message, section: "ours".to_owned(), missing: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_result_of_a_call_that_only_the_gateway_knows_is_left_to_it() {
        let output = json!({"type": "function_call_output", "call_id": "c", "output": ""});
        let body = json!({"input": [output], "previous_response_id": "resp_1"});
        assert_eq!(check(&operations::CREATE_RESPONSE, &body), []);
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""});
        assert!(unmatched_calls(&[call.clone(), output.clone()], 1).is_empty());
        let told = |items: &[Value]| -> Vec<String> {
            unmatched_calls(items, 1).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            told(&[json!({}), output]),
            ["/input/0/call_id: no function_call before it has the call_id \"c\" (ours)"]
        );
        assert_eq!(
            told(&[call, json!({"role": "user", "content": "hi"})]),
            [
                "/input: no function_call_output has the call_id \"c\", which an earlier response called (ours)"
            ]
        );
    }

    #[test]
    fn what_is_told_is_bounded_in_number_and_in_length() {
        let id = "é".repeat(100_000);
        let message = json!({"role": "tool", "tool_call_id": id, "content": ""});
        let body = json!({"messages": vec![message; 200]});
        let found = check(&operations::CREATE_CHAT_COMPLETION, &body);
        assert_eq!(found.len(), MOST);
        assert!(found.iter().all(|violation| violation.message.len() < 200));
        let calls: Vec<Value> = (0..1_000)
            .map(|n| json!({"type": "function_call", "call_id": n.to_string(), "name": "f", "arguments": ""}))
            .collect();
        assert_eq!(check(&operations::CREATE_RESPONSE, &json!({"input": calls})).len(), MOST);
    }

    #[test]
    fn a_hundred_violations_are_all_and_of_one_more_it_is_said_that_there_are_more() {
        let result = json!({"role": "tool", "tool_call_id": "c", "content": ""});
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""});
        let output = json!({"type": "function_call_output", "call_id": "d", "output": ""});
        for (number, complete) in [(MOST_VIOLATIONS, true), (MOST_VIOLATIONS + 1, false)] {
            let chat = json!({"model": "model-sol", "messages": vec![result.clone(); number]});
            let mut items = vec![output.clone(); number - 1];
            items.push(call.clone());
            let told = [
                super::super::check(&operations::CREATE_CHAT_COMPLETION, &chat),
                super::super::check(
                    &operations::CREATE_RESPONSE,
                    &json!({"model": "model-sol", "input": items}),
                ),
                unmatched_calls(&items, 0),
            ];
            for told in told {
                assert_eq!((told.len(), told.is_complete()), (MOST_VIOLATIONS, complete));
            }
        }
    }
}
