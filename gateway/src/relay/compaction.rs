//! Compaction for upstreams that don't support it: the gateway requests a summary of the conversation and wraps it in the single
//! item that replaces the conversation from then on.

use std::collections::HashSet;

use gatewright::ErrorCode;
use gatewright_protocol::conversation::{
    Answer, Choice, Delta, Failure, FailureKind, FinishReason, Part, PartKind, Protocol, Usage,
};
use gatewright_protocol::json::text;
use gatewright_protocol::{MalformedDocument, ResponseContext, StreamIn};
use serde_json::{Value, json};

use crate::compaction::sealed;
use crate::stored_responses::new_id;
use crate::wire::{ApiError, Call};

/// Maximum size of a summary, in bytes.
const MAX_SUMMARY: usize = 1024 * 1024;

/// Instructions for the model.
const INSTRUCTION: &str = "\
The conversation above is about to be removed from your context; what you write now is all that will be left of it. \
Write a summary that lets you go on as if you still had it: what the user wants and which constraints they set; what \
was decided, and why; what was done and found out, with exact names, paths, values and ids; what failed; what is under \
way, and what remains to be done. Include earlier summaries. Write the summary only, in the language of the \
conversation. Do not go on with the task, and call no tools.";
/// Type of the item that requests a compaction.
const TRIGGER: &str = "compaction_trigger";
/// Placeholder for the result of a call that has none yet.
const NO_RESULT: &str = "(no result yet)";
/// Request members that affect the answer but aren't part of the conversation.
const OF_THE_ANSWER: [&str; 6] =
    ["text", "include", "top_logprobs", "tool_choice", "parallel_tool_calls", "max_tool_calls"];

/// How a client requests a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CompactionTrigger {
    /// Through the separate operation.
    Operation,
    /// Through the last input item.
    Trigger,
}

impl CompactionTrigger {
    pub(super) fn of(call: &Call, request: &Value) -> Option<Self> {
        if call.operation.id == "compact_response" {
            return Some(Self::Operation);
        }
        let last = request["input"].as_array()?.last()?;
        (last["type"] == TRIGGER).then_some(Self::Trigger)
    }
}

/// Errors: there is nothing to compact.
pub(super) fn check(items: &[Value]) -> Result<(), ApiError> {
    if items.iter().all(|item| item["type"] == TRIGGER) { Err(nothing()) } else { Ok(()) }
}

fn nothing() -> ApiError {
    let message = "there is nothing to compact: send input or previous_response_id";
    ApiError::new(&ErrorCode::INVALID_VALUE, message).param("input")
}

/// Turns a compaction request into a summary request. `items`: its conversation, each item with its origin. Errors: there is
/// nothing to compact.
pub(super) fn ask_for_summary<T>(
    request: &mut Value,
    items: &mut Vec<(Option<T>, Value)>,
) -> Result<(), ApiError> {
    items.retain(|(_, item)| item["type"] != TRIGGER);
    if items.is_empty() {
        return Err(nothing());
    }
    answer_calls(items);
    items.push((None, json!({ "type": "message", "role": "user", "content": INSTRUCTION })));
    let Some(members) = request.as_object_mut() else { return Ok(()) };
    members.retain(|name, _| !OF_THE_ANSWER.contains(&name.as_str()));
    // Some providers require the tools if the conversation contains calls to them.
    if members.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty()) {
        members.insert("tool_choice".to_owned(), json!("none"));
    }
    Ok(())
}

/// Adds a result to each call that has none; otherwise providers reject the conversation.
fn answer_calls<T>(items: &mut Vec<(Option<T>, Value)>) {
    let kinds = [("function_call", "function_call_output"), ("custom_tool_call", "custom_tool_call_output")];
    for (kind, output) in kinds {
        let results = items.iter().filter(|(_, item)| item["type"] == output);
        let answered: HashSet<String> = results.map(|(_, item)| text(&item["call_id"]).to_owned()).collect();
        let mut all = Vec::with_capacity(items.len());
        for (source, item) in items.drain(..) {
            let id = text(&item["call_id"]).to_owned();
            let lacks_result = item["type"] == kind && !answered.contains(&id);
            all.push((source, item));
            if lacks_result {
                all.push((None, json!({ "type": output, "call_id": id, "output": NO_RESULT })));
            }
        }
        *items = all;
    }
}

/// Replaces the summary in the answer with one compaction. Errors: the model wrote no summary.
pub(super) fn compacted(answer: Answer) -> Result<Answer, Failure> {
    let choice = answer.choices.into_iter().next().unwrap_or_default();
    let mut summary = Summary::default();
    for part in choice.parts {
        match part.kind {
            PartKind::Text(text) => summary.add(&text)?,
            PartKind::Refusal(_) => summary.is_refused = true,
            _ => {}
        }
    }
    let (item, end) = summary.into_item(&choice.end.unwrap_or(FinishReason::Stop))?;
    let part = Part { at: "".into(), kind: PartKind::Other(item), cache: None };
    let choice = Choice { parts: vec![part], end: Some(end), ..Choice::default() };
    // Anything besides the summary belongs to the provider's answer, not to this one.
    let (extra, own) = (Vec::new(), Vec::new());
    Ok(Answer { source: Protocol::Responses, choices: vec![choice], extra, own, ..answer })
}

/// The document that the operation returns.
pub(super) fn document(mut answer: Answer, context: &ResponseContext) -> Value {
    answer.usage.get_or_insert_with(Usage::default);
    let mut response = Protocol::Responses.answer_out(answer, context);
    json!({
        "id": response["id"],
        "object": "response.compaction",
        "created_at": response["created_at"],
        "output": response["output"].take(),
        "usage": response["usage"].take(),
    })
}

/// The text of a summary so far.
#[derive(Debug, Default)]
struct Summary {
    text: String,
    is_refused: bool,
}

impl Summary {
    fn add(&mut self, text: &str) -> Result<(), Failure> {
        if self.text.len().saturating_add(text.len()) > MAX_SUMMARY {
            return Err(failure(&format!("the model's summary is longer than {MAX_SUMMARY} bytes")));
        }
        self.text.push_str(text);
        Ok(())
    }

    /// The item, and how the answer ended.
    fn into_item(self, end: &FinishReason) -> Result<(Value, FinishReason), Failure> {
        let is_withheld = self.is_refused || matches!(end, FinishReason::Refusal | FinishReason::Filtered);
        if is_withheld || self.text.trim().is_empty() {
            return Err(failure("the conversation is not compacted, because the model wrote no summary"));
        }
        let end = if *end == FinishReason::Length { FinishReason::Length } else { FinishReason::Stop };
        let content = sealed(&self.text);
        Ok((json!({ "type": "compaction", "id": new_id("cmp"), "encrypted_content": content }), end))
    }
}

/// Blamed on the request: its content or parameters may be the cause.
fn failure(message: &str) -> Failure {
    Failure::new(FailureKind::InvalidRequest, message)
}

/// Reads a provider's summary stream as a compaction stream.
pub(super) struct CompactionReader {
    incoming: Box<dyn StreamIn>,
    summary: Summary,
    /// Buffer for the deltas of an event.
    deltas: Vec<Delta>,
}

impl CompactionReader {
    pub(super) fn new(incoming: Box<dyn StreamIn>) -> Self {
        Self { incoming, summary: Summary::default(), deltas: Vec::new() }
    }

    fn pass(&mut self, deltas: &mut Vec<Delta>) {
        for delta in self.deltas.drain(..) {
            match delta {
                Delta::Text { choice: 0, text, .. } => {
                    if let Err(failure) = self.summary.add(&text) {
                        return deltas.push(Delta::Failed(failure));
                    }
                }
                Delta::Refusal { .. } => self.summary.is_refused = true,
                Delta::Ended { choice: 0, end } => match std::mem::take(&mut self.summary).into_item(&end) {
                    Ok((value, end)) => {
                        deltas.push(Delta::Other { choice: 0, source: Protocol::Responses, value });
                        deltas.push(Delta::Ended { choice: 0, end });
                    }
                    Err(failure) => return deltas.push(Delta::Failed(failure)),
                },
                Delta::Started { .. } | Delta::Usage(_) | Delta::Failed(_) | Delta::Done => {
                    deltas.push(delta);
                }
                // Thoughts and calls aren't part of it.
                _ => {}
            }
        }
    }
}

impl StreamIn for CompactionReader {
    fn event(
        &mut self,
        name: Option<&str>,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), MalformedDocument> {
        self.incoming.event(name, data, &mut self.deltas)?;
        self.pass(deltas);
        Ok(())
    }

    fn end(&mut self, deltas: &mut Vec<Delta>) -> Result<(), MalformedDocument> {
        self.incoming.end(&mut self.deltas)?;
        self.pass(deltas);
        Ok(())
    }

    fn held(&self) -> usize {
        self.incoming.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary_request(mut request: Value, items: &Value) -> (Value, Vec<Value>) {
        let items = items.as_array().expect("items").iter().cloned();
        let mut items: Vec<(Option<usize>, Value)> = items.map(|item| (Some(0), item)).collect();
        ask_for_summary(&mut request, &mut items).expect("something to compact");
        (request, items.into_iter().map(|(_, item)| item).collect())
    }

    #[test]
    fn summary_request_drops_the_response_format() {
        let request = json!({ "model": "m", "instructions": "Be brief.", "text": { "format": { "type": "json_object" } },
            "tools": [{ "type": "function", "name": "look" }], "tool_choice": "required", "max_output_tokens": 9 });
        let items = json!([{ "role": "user", "content": "hi" }, { "type": "compaction_trigger" }]);
        let (request, items) = summary_request(request, &items);
        let expected = json!({ "model": "m", "instructions": "Be brief.",
            "tools": [{ "type": "function", "name": "look" }], "max_output_tokens": 9, "tool_choice": "none" });
        assert_eq!(request, expected);
        assert_eq!((items.len(), &items[1]["content"]), (2, &json!(INSTRUCTION)));
        let (request, _) =
            summary_request(json!({ "tools": [] }), &json!([{ "role": "user", "content": "hi" }]));
        assert_eq!(request, json!({ "tools": [] }));
    }

    #[test]
    fn compaction_response_drops_foreign_members() {
        let choice = json!({ "index": 0, "message": { "role": "assistant", "content": "All is well." },
            "finish_reason": "stop" });
        let chat = json!({ "object": "chat.completion", "provider": "one", "choices": [choice] });
        let context = ResponseContext {
            model: "m".to_owned(),
            request: json!({}),
            id: "resp_1".to_owned(),
            created: 1,
            ..ResponseContext::default()
        };
        let answer = compacted(Protocol::Chat.answer_in(chat).expect("an answer")).expect("a summary");
        let response = Protocol::Responses.answer_out(answer, &context);
        assert_eq!(response["object"], "response");
        assert_eq!(response["output"][0]["type"], "compaction");
        let foreign: Vec<_> =
            ["choices", "provider"].into_iter().filter(|name| response.get(name).is_some()).collect();
        assert!(foreign.is_empty(), "{response:#}");
    }

    #[test]
    fn tool_call_without_an_output_gets_one_after_it() {
        let call = |kind: &str, id: &str| json!({ "type": kind, "call_id": id, "name": "look" });
        let items = json!([
            call("function_call", "a"),
            call("function_call", "b"),
            { "type": "function_call_output", "call_id": "a", "output": "A" },
            call("custom_tool_call", "a"),
        ]);
        let (_, items) = summary_request(json!({}), &items);
        let kinds: Vec<_> = items.iter().map(|item| (text(&item["type"]), text(&item["call_id"]))).collect();
        let expected = [
            ("function_call", "a"),
            ("function_call", "b"),
            ("function_call_output", "b"),
            ("function_call_output", "a"),
            ("custom_tool_call", "a"),
            ("custom_tool_call_output", "a"),
            ("message", ""),
        ];
        assert_eq!(kinds, expected);
    }

    fn piece(text: &str) -> Delta {
        Delta::Text { choice: 0, text: text.to_owned(), logprobs: None }
    }

    fn passed(all: Vec<Delta>) -> Vec<Delta> {
        let mut compacting = CompactionReader::new(Protocol::Chat.stream_in());
        compacting.deltas = all;
        let mut deltas = Vec::new();
        compacting.pass(&mut deltas);
        deltas
    }

    #[test]
    fn summary_stream_becomes_one_compaction_item() {
        let ended = || Delta::Ended { choice: 0, end: FinishReason::ToolCalls };
        let started = Delta::Started { id: None, model: None, created: None, service_tier: None };
        let deltas = passed(vec![started.clone(), piece("Pe"), piece("ars."), ended(), Delta::Done]);
        let [first, Delta::Other { value, .. }, Delta::Ended { end: FinishReason::Stop, .. }, Delta::Done] =
            &deltas[..]
        else {
            panic!("{deltas:?}")
        };
        assert_eq!(*first, started);
        assert_eq!(crate::compaction::summary(value).as_deref(), Some("Pears."));
        for none in
            [vec![ended()], vec![piece("a"), Delta::Refusal { choice: 0, text: "no".to_owned() }, ended()]]
        {
            assert!(matches!(passed(none)[..], [Delta::Failed(_)]));
        }
        let long = vec![piece(&"x".repeat(MAX_SUMMARY)), piece("y"), ended()];
        assert!(matches!(passed(long)[..], [Delta::Failed(_)]));
    }
}
