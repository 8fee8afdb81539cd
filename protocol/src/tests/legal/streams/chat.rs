use serde_json::{Value, json};

use super::{Answer, Call, Event, Form, Later, NamePlace, Numbering, Step, Style, mixed, pieces};

fn chunk(delta: &Value, end: Option<&str>) -> Value {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": end });
    json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] })
}

pub(super) fn write(answer: &Answer) -> Vec<Event> {
    let style = &answer.style;
    let mut chunks = vec![chunk(&json!({ "role": "assistant", "content": "" }), None)];
    let mut count = 0;
    for step in &answer.steps {
        match step {
            Step::Text(text) => chunks.extend(texts(text, style)),
            Step::Thought(text) => {
                let piece = |text: String| chunk(&json!({ "reasoning_content": text }), None);
                chunks.extend(pieces(text, style.size).into_iter().map(piece));
            }
            Step::Calls(calls, between) => {
                chunks.extend(write_calls(calls, between, &mut count, style));
            }
        }
        if style.nulls {
            chunks.push(chunk(&Value::Null, None));
            chunks.push(chunk(
                &json!({ "content": null, "tool_calls": [] }),
                Some("").filter(|_| style.late_text),
            ));
        }
    }
    end(&mut chunks, style);
    let events = chunks.into_iter().map(|chunk| (None, chunk.to_string()));
    events.chain(style.done.then(|| (None, "[DONE]".to_owned()))).collect()
}

fn texts(text: &str, style: &Style) -> Vec<Value> {
    let piece = |text: String| chunk(&json!({ "content": text }), None);
    pieces(text, style.size).into_iter().map(piece).collect()
}

/// The finish reason, and what may come after it.
fn end(chunks: &mut Vec<Value>, style: &Style) {
    // The late part is the last chunk written before.
    let late = if style.late_text && style.done { chunks.pop() } else { None };
    match style.end {
        Some(word) => chunks.push(chunk(&json!({}), Some(word))),
        None => chunks.push(chunk(&json!({}), None)),
    }
    chunks.extend(late);
    if style.usage {
        let mut usage = chunk(&json!({}), None);
        usage["choices"] = if style.nulls { Value::Null } else { json!([]) };
        usage["usage"] = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
        chunks.push(usage);
    }
}

fn write_calls(calls: &[Call], between: &[String], count: &mut usize, style: &Style) -> Vec<Value> {
    let mut lists: Vec<Vec<Value>> = Vec::new();
    for call in calls {
        lists.push(write_call(call, *count, style));
        *count += 1;
    }
    let texts: Vec<Value> = between.iter().flat_map(|text| self::texts(text, style)).collect();
    if matches!(style.numbering, Numbering::Right | Numbering::Gaps) {
        lists.push(texts);
        return mixed(lists, &style.turns);
    }
    // Only its position tells which call a piece belongs to.
    lists.into_iter().flatten().chain(texts).collect()
}

/// The pieces of a call.
fn write_call(call: &Call, number: usize, style: &Style) -> Vec<Value> {
    let index = match style.numbering {
        Numbering::Right => json!(number),
        Numbering::Gaps => json!(number * 3 + 1),
        Numbering::Missing => Value::Null,
        Numbering::Same => json!(0),
        Numbering::Negative => json!(-1),
        Numbering::Text => json!(number.to_string()),
    };
    let is_numbered = matches!(style.numbering, Numbering::Right | Numbering::Gaps | Numbering::Text);
    // If indices don't distinguish calls, ids do.
    let id = if is_numbered { call.id.clone() } else { format!("{}_{number}", call.id) };
    let name = if is_numbered { style.name } else { NamePlace::First };
    let text = Value::Object(call.arguments.clone()).to_string();
    let mut inputs: Vec<Value> = match style.arguments {
        Form::Pieces => pieces(&text, style.size).into_iter().map(Value::from).collect(),
        Form::Whole => vec![text.into()],
        Form::Object => vec![Value::Object(call.arguments.clone())],
    };
    let first = if style.arguments == Form::Whole { inputs.remove(0) } else { json!("") };
    let mut written = Vec::new();
    let started = |name: Value| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": first } });
    written.push(started(if name == NamePlace::First { call.name.as_str().into() } else { Value::Null }));
    if name == NamePlace::Second {
        written.push(json!({ "function": { "name": call.name, "arguments": "" } }));
    }
    for input in inputs {
        let mut piece = json!({ "function": { "arguments": input } });
        match style.later {
            Later::Missing => {}
            Later::Null => {
                (piece["id"], piece["type"], piece["function"]["name"]) =
                    (Value::Null, Value::Null, Value::Null);
            }
            Later::Empty => {
                (piece["id"], piece["type"], piece["function"]["name"]) = ("".into(), "".into(), "".into());
            }
            Later::Repeated => piece["id"] = id.as_str().into(),
        }
        written.push(piece);
    }
    if name == NamePlace::Last {
        written.push(json!({ "function": { "name": call.name } }));
    }
    let with_index = |mut piece: Value| {
        if !index.is_null() {
            piece["index"] = index.clone();
        }
        chunk(&json!({ "tool_calls": [piece] }), None)
    };
    written.into_iter().map(with_index).collect()
}
