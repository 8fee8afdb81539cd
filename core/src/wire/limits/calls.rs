//! Matches tool calls with their results in a conversation. A schema cannot express this, because it concerns several
//! messages (the rule is ours; the protocols are the source's, 2.1 and 2.4).

use std::collections::HashMap;

use serde_json::Value;

use super::words::brief;
use super::{MAX_VIOLATIONS, Violation, Violations};
use crate::api::operation::{Conversation, Operation};

/// Rule of a violation: a result without a call, or a call without a result.
const RULE: &str = "unmatched";
/// The search stops one past the reported number, to show that there are more.
const MAX_CALL_VIOLATIONS: usize = MAX_VIOLATIONS + 1;

/// The unmatched calls and results in the conversation of a request.
pub(super) fn check(operation: &Operation, body: &Value) -> Vec<Violation> {
    let found = match operation.conversation {
        Some(Conversation::Messages) => body["messages"].as_array().map(|messages| of_messages(messages)),
        Some(Conversation::Blocks) => body["messages"].as_array().map(|turns| of_turns(turns)),
        Some(Conversation::Items) => body["input"].as_array().map(|items| {
            // Only the gateway knows the earlier items.
            let goes_on = !body["previous_response_id"].is_null() || !body["conversation"].is_null();
            of_items(items, 0, goes_on)
        }),
        None => None,
    };
    found.unwrap_or_default()
}

/// The unmatched calls and results in a whole conversation of the responses protocol: results without an earlier call,
/// and calls without a result. The first `stored` items come from before the input. Pointers are into the request body.
///
/// ```
/// use gatewright::limits::unmatched_calls;
/// use serde_json::json;
///
/// let call = json!({ "type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}" });
/// let result = json!({ "type": "function_call_output", "call_id": "call_1", "output": "8 °C" });
/// assert_eq!(unmatched_calls(std::slice::from_ref(&call), 0).len(), 1);
/// assert!(unmatched_calls(&[call, result], 0).is_empty());
/// ```
pub fn unmatched_calls(items: &[Value], stored: usize) -> Violations {
    let mut violations = Violations::default();
    for violation in of_items(items, stored, false) {
        violations.push(violation);
    }
    violations
}

/// Chat: a tool message answers a call in the preceding assistant message, and every call is answered before any other
/// role speaks.
fn of_messages(messages: &[Value]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut open = Open::default();
    for (index, message) in messages.iter().enumerate() {
        if found.len() >= MAX_CALL_VIOLATIONS {
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
                    let message =
                        format!("tool_call_id is {id}, but the assistant message before it has no such call");
                    found.push(violation(format!("/messages/{index}/tool_call_id"), message));
                }
            }
            None | Some(Value::Null) => found.push(Violation {
                rule: "required".to_owned(),
                missing: Some("tool_call_id".to_owned()),
                ..violation(format!("/messages/{index}"), "tool_call_id is missing".to_owned())
            }),
            // The wrong type: the schema reports it.
            Some(_) => {}
        }
    }
    found.extend(open.unanswered());
    found
}

/// The calls of an assistant message, and whether each has been answered.
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
        let others = others(left().count() - 1);
        let message = format!("no tool message after it answers the call {}{others}", quoted(first));
        Some(violation(format!("/messages/{}/tool_calls", self.message), message))
    }
}

/// How many more calls there are than the one that is named.
fn others(count: usize) -> String {
    match count {
        0 => String::new(),
        others => format!(" and {others} more"),
    }
}

/// Messages: a result answers a call of the assistant's turn before it, and every call is answered in the user's turn
/// after it. Consecutive messages of one role are one turn.
fn of_turns(messages: &[Value]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut open = PendingCalls::default();
    let mut was_assistant = false;
    for (index, message) in messages.iter().enumerate() {
        if found.len() >= MAX_CALL_VIOLATIONS {
            return found;
        }
        let is_assistant = message["role"] == "assistant";
        if is_assistant && !was_assistant {
            found.extend(open.unanswered());
            open = PendingCalls::default();
        }
        was_assistant = is_assistant;
        let blocks = message["content"].as_array().into_iter().flatten();
        for (place, block) in blocks.enumerate() {
            match block["type"].as_str() {
                Some("tool_use") if is_assistant => {
                    if let Some(id) = block["id"].as_str() {
                        open.calls.entry(id).or_insert((index, false));
                    }
                }
                Some("tool_result") if found.len() < MAX_CALL_VIOLATIONS => {
                    let Some(id) = block["tool_use_id"].as_str() else { continue };
                    match open.calls.get_mut(id) {
                        Some((_, answered)) if !is_assistant => *answered = true,
                        _ => {
                            let id = quoted(id);
                            let message = format!(
                                "tool_use_id is {id}, but the assistant's turn before it has no such call"
                            );
                            found.push(violation(
                                format!("/messages/{index}/content/{place}/tool_use_id"),
                                message,
                            ));
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found.extend(open.unanswered());
    found
}

/// The calls of the assistant's last turn, each with the message it is in and whether it has been answered.
#[derive(Default)]
struct PendingCalls<'m> {
    calls: HashMap<&'m str, (usize, bool)>,
}

impl PendingCalls<'_> {
    /// One violation for all calls of the turn.
    fn unanswered(&self) -> Option<Violation> {
        let left = || self.calls.iter().filter(|(_, (_, answered))| !answered);
        let (message, first) = left().map(|(id, (message, _))| (*message, *id)).min()?;
        let others = others(left().count() - 1);
        let message_text = format!("no tool_result after it answers the call {}{others}", quoted(first));
        Some(violation(format!("/messages/{message}/content"), message_text))
    }
}

/// Responses: a result has an earlier call of its kind, and every call has a result. `goes_on`: there are items before
/// these.
fn of_items(items: &[Value], stored: usize, goes_on: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    // The call may be in a reference or in the items that a compaction replaced.
    let mut may_be_elsewhere = goes_on;
    let mut calls: HashMap<(&str, &str), LocatedCall> = HashMap::new();
    for (index, item) in items.iter().enumerate() {
        if found.len() >= MAX_CALL_VIOLATIONS {
            return found;
        }
        let Some(kind) = item["type"].as_str() else { continue };
        may_be_elsewhere |= matches!(kind, "item_reference" | "compaction");
        let Some(id) = item["call_id"].as_str() else { continue };
        match kind {
            "function_call" | "custom_tool_call" => {
                calls.entry((kind, id)).or_insert(LocatedCall { index, answered: false });
            }
            "function_call_output" | "custom_tool_call_output" => {
                let kind = kind.trim_end_matches("_output");
                match calls.get_mut(&(kind, id)) {
                    Some(call) => call.answered = true,
                    None if may_be_elsewhere => {}
                    None => {
                        let pointer = match index.checked_sub(stored) {
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
        left.truncate(MAX_CALL_VIOLATIONS.saturating_sub(found.len()));
        found.extend(
            left.into_iter().map(|(index, kind, id)| unanswered(index.checked_sub(stored), kind, id)),
        );
    }
    found
}

/// A call in the input.
struct LocatedCall {
    index: usize,
    answered: bool,
}

/// `index`: position of the call in the input; none if it comes from an earlier response.
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
    use crate::api::operations;

    #[test]
    fn results_for_calls_of_a_previous_response_are_not_checked_locally() {
        let output = json!({"type": "function_call_output", "call_id": "c", "output": ""});
        let body = json!({"input": [output], "previous_response_id": "resp_1"});
        assert_eq!(check(&operations::CREATE_RESPONSE, &body), []);
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""});
        assert!(unmatched_calls(&[call.clone(), output.clone()], 1).is_empty());
        let messages = |items: &[Value]| -> Vec<String> {
            unmatched_calls(items, 1).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            messages(&[json!({}), output]),
            ["/input/0/call_id: no function_call before it has the call_id \"c\""]
        );
        assert_eq!(
            messages(&[call, json!({"role": "user", "content": "hi"})]),
            ["/input: no function_call_output has the call_id \"c\", which an earlier response called"]
        );
    }

    #[test]
    fn violations_are_bounded_in_number_and_length() {
        let id = "é".repeat(100_000);
        let message = json!({"role": "tool", "tool_call_id": id, "content": ""});
        let body = json!({"messages": vec![message; 200]});
        let found = check(&operations::CREATE_CHAT_COMPLETION, &body);
        assert_eq!(found.len(), MAX_CALL_VIOLATIONS);
        assert!(found.iter().all(|violation| violation.message.len() < 200));
        let calls: Vec<Value> = (0..1_000)
            .map(|n| json!({"type": "function_call", "call_id": n.to_string(), "name": "f", "arguments": ""}))
            .collect();
        assert_eq!(check(&operations::CREATE_RESPONSE, &json!({"input": calls})).len(), MAX_CALL_VIOLATIONS);
    }

    #[test]
    fn list_is_incomplete_only_above_maximum_violations() {
        let result = json!({"role": "tool", "tool_call_id": "c", "content": ""});
        let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": ""});
        let output = json!({"type": "function_call_output", "call_id": "d", "output": ""});
        for (number, complete) in [(MAX_VIOLATIONS, true), (MAX_VIOLATIONS + 1, false)] {
            let chat = json!({"model": "model-sol", "messages": vec![result.clone(); number]});
            let mut items = vec![output.clone(); number - 1];
            items.push(call.clone());
            let lists = [
                super::super::check(&operations::CREATE_CHAT_COMPLETION, &chat),
                super::super::check(
                    &operations::CREATE_RESPONSE,
                    &json!({"model": "model-sol", "input": items}),
                ),
                unmatched_calls(&items, 0),
            ];
            for found in lists {
                assert_eq!((found.len(), found.is_complete()), (MAX_VIOLATIONS, complete));
            }
        }
    }
}
