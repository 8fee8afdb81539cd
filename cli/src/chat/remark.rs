//! Remarks about an answer: why it is incomplete or has no text.

use gatewright::visible::visible;
use gatewright_protocol::conversation::{Answer, FinishReason, PartKind};

/// Maximum number of tool calls that are named.
const MAX_NAMED_CALLS: usize = 10;
/// Maximum number of characters of a tool's name: the provider may send any text.
const MAX_NAME_CHARS: usize = 64;

/// Why an answer is incomplete or has no text; `None` if there is nothing to say. answer: `None` if it can't be read. has_text:
/// whether text was printed.
pub(super) fn remark(answer: Option<&Answer>, has_text: bool) -> Option<String> {
    let choice = answer.and_then(|answer| answer.choices.first());
    let mut reasons = Vec::new();
    match choice.and_then(|choice| choice.end.as_ref()) {
        Some(FinishReason::Length) => reasons.push("it was cut off at the model's token limit".to_owned()),
        Some(FinishReason::Filtered) => {
            reasons.push("the provider's content filter withheld content".to_owned());
        }
        Some(FinishReason::Failed { word, .. }) => reasons.push(format!("the provider failed with {word:?}")),
        // The text of a refusal says so itself.
        Some(FinishReason::Refusal) if !has_text => reasons.push("the model refused".to_owned()),
        _ => {}
    }
    let parts = choice.into_iter().flat_map(|choice| &choice.parts);
    let calls = parts.filter_map(|part| match &part.kind {
        PartKind::Call(call) => Some(call.name.as_str()),
        _ => None,
    });
    let calls: Vec<&str> = calls.collect();
    if !calls.is_empty() {
        let shown = |name: &&str| visible(&name.chars().take(MAX_NAME_CHARS).collect::<String>()).to_string();
        let named = calls.iter().take(MAX_NAMED_CALLS).map(shown).collect::<Vec<_>>().join(", ");
        let more = match calls.len().saturating_sub(MAX_NAMED_CALLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        reasons.push(format!("the model calls tools, which this command does not run: {named}{more}"));
    }
    let reasons = reasons.join("; ");
    match (has_text, reasons.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("the answer is incomplete: {reasons}")),
        (false, true) => Some("the answer has no text".to_owned()),
        (false, false) => Some(format!("the answer has no text: {reasons}")),
    }
}

#[cfg(test)]
mod tests {
    use gatewright_protocol::conversation::Protocol;
    use serde_json::{Value, json};

    use super::*;

    fn answer(message: &Value, end: &str) -> Answer {
        let choice = json!({ "index": 0, "message": message, "finish_reason": end });
        let document = json!({
            "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice],
        });
        Protocol::Chat.answer_in(document).expect("an answer")
    }

    fn call(name: &str) -> Value {
        let function = json!({ "name": name, "arguments": "{}" });
        json!({ "id": format!("call_{name}"), "type": "function", "function": function })
    }

    #[test]
    fn complete_answer_needs_no_remark() {
        let complete = answer(&json!({ "role": "assistant", "content": "Hello." }), "stop");
        assert_eq!(remark(Some(&complete), true), None);
        assert_eq!(remark(None, true), None);
    }

    #[test]
    fn incomplete_and_empty_answers_say_why() {
        let text = json!({ "role": "assistant", "content": "Hello" });
        let none = json!({ "role": "assistant", "content": null });
        let calls = json!({
            "role": "assistant", "content": null, "tool_calls": [call("weather"), call("clock")],
        });
        for (message, end, has_text, expected) in [
            (&text, "length", true, "the answer is incomplete: it was cut off at the model's token limit"),
            (
                &text,
                "content_filter",
                true,
                "the answer is incomplete: the provider's content filter withheld content",
            ),
            (
                &none,
                "content_filter",
                false,
                "the answer has no text: the provider's content filter withheld content",
            ),
            (&none, "stop", false, "the answer has no text"),
            (
                &calls,
                "tool_calls",
                false,
                "the answer has no text: the model calls tools, which this command does not run: weather, clock",
            ),
        ] {
            assert_eq!(remark(Some(&answer(message, end)), has_text).as_deref(), Some(expected), "{end}");
        }
        assert_eq!(remark(None, false).as_deref(), Some("the answer has no text"));
    }

    #[test]
    fn name_of_a_tool_cannot_forge_a_line_and_is_cut() {
        let calls = [call("a\ngatewright: done\u{1b}[31m"), call(&"n".repeat(900))];
        let hostile =
            answer(&json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls");
        let remark = remark(Some(&hostile), false).expect("a remark");
        assert!(!remark.contains(['\n', '\u{1b}']) && remark.len() < 300, "{remark}");
    }

    #[test]
    fn only_the_first_calls_are_named() {
        let calls: Vec<Value> = (0..12).map(|number| call(&format!("tool_{number}"))).collect();
        let many =
            answer(&json!({ "role": "assistant", "content": null, "tool_calls": calls }), "tool_calls");
        let remark = remark(Some(&many), false).expect("a remark");
        assert!(remark.ends_with("tool_8, tool_9 and 2 more"), "{remark}");
    }
}
