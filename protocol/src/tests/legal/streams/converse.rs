use serde_json::{Value, json};

use super::{Answer, Call, Event, Form, Step, Style, mixed, pieces};

type Named = (&'static str, Value);

/// Converse events: texts and thoughts may begin without a start, the blocks of parallel calls may be interleaved, and the
/// token counts may be missing.
pub(super) fn write(answer: &Answer) -> Vec<Event> {
    let style = &answer.style;
    let mut events = vec![("messageStart", json!({ "role": "assistant" }))];
    let mut index = 0;
    for step in &answer.steps {
        match step {
            Step::Text(text) => {
                let delta = |text: String| json!({ "text": text });
                let deltas = pieces(text, style.size).into_iter().map(delta).collect();
                events.extend(block(style.nulls.then(|| json!({})), deltas, &mut index));
            }
            Step::Thought(text) => {
                let delta = |text: String| json!({ "reasoningContent": { "text": text } });
                let mut deltas: Vec<Value> = pieces(text, style.size).into_iter().map(delta).collect();
                deltas.push(json!({ "reasoningContent": { "signature": "AA==" } }));
                events.extend(block(None, deltas, &mut index));
            }
            Step::Calls(calls, _) => {
                let lists = calls.iter().map(|call| tool_use(call, style, &mut index)).collect();
                let turns = if style.late_text { &style.turns[..] } else { &[] };
                events.extend(mixed(lists, turns));
            }
        }
    }
    let end = if answer.is_cut() {
        "max_tokens"
    } else if answer.has_calls() != style.late_text {
        "tool_use"
    } else {
        "end_turn"
    };
    events.push(("messageStop", json!({ "stopReason": end })));
    if style.usage {
        let usage = json!({ "inputTokens": 1, "outputTokens": 2, "totalTokens": 3 });
        events.push(("metadata", json!({ "usage": usage, "metrics": { "latencyMs": 5 } })));
    }
    if style.done {
        // Random letters hide the length of an event.
        for (_, event) in &mut events {
            event["p"] = "abcdef".into();
        }
    }
    events.into_iter().map(|(name, event)| (Some(name), event.to_string())).collect()
}

fn block(start: Option<Value>, deltas: Vec<Value>, index: &mut u64) -> Vec<Named> {
    let at = *index;
    *index += 1;
    let start = start.map(|start| ("contentBlockStart", json!({ "start": start, "contentBlockIndex": at })));
    let deltas = deltas
        .into_iter()
        .map(|delta| ("contentBlockDelta", json!({ "delta": delta, "contentBlockIndex": at })));
    let stop = ("contentBlockStop", json!({ "contentBlockIndex": at }));
    start.into_iter().chain(deltas).chain([stop]).collect()
}

fn tool_use(call: &Call, style: &Style, index: &mut u64) -> Vec<Named> {
    let text = Value::Object(call.arguments.clone()).to_string();
    let delta = |text: Value| json!({ "toolUse": { "input": text } });
    let deltas = match style.arguments {
        Form::Object => vec![delta(call.arguments.clone().into())],
        Form::Whole if call.arguments.is_empty() => Vec::new(),
        Form::Whole => vec![delta(text.into())],
        Form::Pieces => pieces(&text, style.size).into_iter().map(|piece| delta(piece.into())).collect(),
    };
    block(Some(json!({ "toolUse": { "toolUseId": call.id, "name": call.name } })), deltas, index)
}
