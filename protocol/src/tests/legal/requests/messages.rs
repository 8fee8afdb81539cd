use serde_json::{Value, json};

use super::super::plan::{Bit, Call, Exchange, Plan, Tool};
use super::{Writer, is_closed, object, tenths};

pub(super) fn write(plan: &Plan, writer: &mut Writer) -> Value {
    let mut messages: Vec<Value> = Vec::new();
    for exchange in &plan.exchanges {
        let blocks = user(&exchange.question, writer);
        add(&mut messages, "user", blocks);
        answer(exchange, plan, writer, &mut messages);
    }
    if let Some(bits) = &plan.last {
        let blocks = user(bits, writer);
        add(&mut messages, "user", blocks);
    }
    // A prefilled answer must not end with whitespace.
    let ends_in_space = |text: &String| text.ends_with(char::is_whitespace);
    if messages.last().is_some_and(|last| last["role"] == "assistant")
        && writer.content.texts.last().is_some_and(ends_in_space)
    {
        add(&mut messages, "user", vec![block("...")]);
    }
    if plan.other_form(44) {
        cache(&mut messages);
    }
    let system: Vec<Value> = plan.system.iter().chain(&plan.late_system).map(|text| block(text)).collect();
    writer.content.system.extend(plan.system.iter().chain(&plan.late_system).cloned());
    settings(plan, &messages, &system, writer)
}

fn block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Appends blocks to the last turn if it has the same role: turns alternate.
fn add(messages: &mut Vec<Value>, role: &str, blocks: Vec<Value>) {
    match messages.last_mut() {
        Some(last) if last["role"] == role => {
            if let Value::Array(known) = &mut last["content"] {
                known.extend(blocks);
            }
        }
        _ => messages.push(json!({ "role": role, "content": blocks })),
    }
}

fn part(bit: &Bit) -> Option<Value> {
    let inline = |kind: &str, data: &str| json!({ "type": "base64", "media_type": kind, "data": data });
    Some(match bit {
        Bit::Text(text) => block(text),
        // Whitespace alone is rejected.
        Bit::Blank(_) => return None,
        Bit::Picture(kind, data) => json!({ "type": "image", "source": inline(kind, data) }),
        Bit::PictureAt(url) => json!({ "type": "image", "source": { "type": "url", "url": url } }),
        Bit::Pdf(data) => json!({ "type": "document", "source": inline("application/pdf", data) }),
    })
}

fn user(bits: &[Bit], writer: &mut Writer) -> Vec<Value> {
    writer.note_content(bits);
    let blocks: Vec<Value> = bits.iter().filter_map(part).collect();
    if blocks.is_empty() { vec![block("...")] } else { blocks }
}

/// The model's turn, and the next one: results first, in any order, then what the user says.
fn answer(exchange: &Exchange, plan: &Plan, writer: &mut Writer, messages: &mut Vec<Value>) {
    let calls = if writer.names.is_empty() { &[][..] } else { &exchange.calls };
    if calls.is_empty() && exchange.text.is_none() {
        return;
    }
    let thoughts = exchange.thoughts.iter().filter_map(|thought| {
        let proof = thought.proof.as_ref()?;
        if thought.text.is_empty() {
            return Some(json!({ "type": "redacted_thinking", "data": proof }));
        }
        Some(json!({ "type": "thinking", "thinking": thought.text, "signature": proof }))
    });
    let mut blocks: Vec<Value> = thoughts.collect();
    if let Some(text) = &exchange.text {
        blocks.push(json!({ "type": "text", "text": writer.text(text) }));
    }
    let mut results = Vec::new();
    for call in calls {
        let (call, result) = write_call(call, plan, writer);
        blocks.push(call);
        results.push(result);
    }
    add(messages, "assistant", blocks);
    if !results.is_empty() {
        let middle = exchange.rotation % results.len();
        results.rotate_left(middle);
    }
    if let Some(comment) = &exchange.comment {
        results.extend(user(comment, writer));
    }
    if !results.is_empty() {
        add(messages, "user", results);
    }
}

fn write_call(call: &Call, plan: &Plan, writer: &mut Writer) -> (Value, Value) {
    let id = writer.id(&call.id);
    let tool = call.tool % writer.names.len();
    let input = Value::Object(call.arguments.clone());
    writer.call(tool, input.clone(), &call.result);
    let block = json!({ "type": "tool_use", "id": id, "name": writer.names[tool], "input": input });
    let mut result = json!({ "type": "tool_result", "tool_use_id": id });
    match call.result.as_slice() {
        [] => {}
        [Bit::Text(text)] if plan.other_form(12) => result["content"] = text.as_str().into(),
        bits => result["content"] = bits.iter().filter_map(part).collect(),
    }
    if call.failed && !call.result.is_empty() {
        result["is_error"] = true.into();
    }
    (block, result)
}

fn tool(tool: &Tool, name: &str) -> Value {
    let mut written = json!({ "name": name, "input_schema": tool.schema });
    if let Some(description) = &tool.description {
        written["description"] = description.as_str().into();
    }
    if tool.strict && is_closed(&tool.schema) {
        written["strict"] = true.into();
    }
    written
}

/// A turn with a single text may be a plain string.
fn shorten(message: &mut Value) {
    let only = message["content"].as_array().filter(|blocks| blocks.len() == 1).map(|blocks| &blocks[0]);
    if let Some(text) = only.filter(|block| block["type"] == "text" && block["cache_control"].is_null()) {
        message["content"] = text["text"].clone();
    }
}

/// Sets cache markers on the last block of the first turns: at most four, and not on thoughts.
fn cache(messages: &mut [Value]) {
    for message in messages.iter_mut().take(4) {
        if let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut()) {
            block["cache_control"] = json!({ "type": "ephemeral" });
        }
    }
}

/// Whether the model may think in this request, given its last turn.
fn may_think(messages: &[Value]) -> bool {
    let has_results = |message: &Value| {
        message["content"].as_array().is_some_and(|it| it.iter().any(|it| it["type"] == "tool_result"))
    };
    match messages {
        [.., before, last] if has_results(last) => {
            before["content"][0]["type"].as_str().is_some_and(|kind| kind.ends_with("thinking"))
        }
        [.., last] => last["role"] == "user",
        [] => false,
    }
}

/// How the model thinks, and a limit that leaves room for it.
fn thinking(plan: &Plan, messages: &[Value]) -> (Option<Value>, u64) {
    let most = plan.settings.most.unwrap_or(64);
    match plan.settings.budget {
        Some(0) => (Some(json!({ "type": "disabled" })), most),
        Some(budget) if may_think(messages) && plan.other_form(22) => {
            let budget = budget.max(1024);
            (Some(json!({ "type": "enabled", "budget_tokens": budget })), budget + most)
        }
        Some(_) if plan.other_form(23) => (Some(json!({ "type": "adaptive" })), most),
        _ => (None, most),
    }
}

fn choice(plan: &Plan, thinks: bool, writer: &Writer) -> Option<Value> {
    let mut choice = match plan.settings.choice % 5 {
        0 => json!({ "type": "auto" }),
        1 => return Some(json!({ "type": "none" })),
        2 if !thinks => json!({ "type": "any" }),
        3 if !thinks => json!({ "type": "tool", "name": writer.names[0] }),
        _ => return None,
    };
    if let Some(parallel) = plan.settings.parallel {
        choice["disable_parallel_tool_use"] = (!parallel).into();
    }
    Some(choice)
}

/// A format whose objects are closed and whose values have no limits.
fn format(schema: &Value) -> Option<Value> {
    is_closed(schema).then(|| json!({ "type": "json_schema", "schema": schema }))
}

fn settings(plan: &Plan, messages: &[Value], system: &[Value], writer: &Writer) -> Value {
    let settings = &plan.settings;
    let has_tools = !plan.tools.is_empty();
    let tools = plan.tools.iter().zip(&writer.names).map(|(plan, name)| tool(plan, name));
    let (thinking, most) = thinking(plan, messages);
    let thinks = thinking.as_ref().is_some_and(|thinking| thinking["type"] != "disabled");
    let temperature = settings.temperature.filter(|temperature| *temperature <= 10 && !thinks);
    let top_p = settings.top_p.filter(|_| temperature.is_none() && !thinks);
    let stops: Vec<&String> = settings.stops.iter().filter(|stop| !stop.trim().is_empty()).collect();
    let effort = settings.effort.filter(|effort| ["low", "medium", "high"].contains(effort));
    let config =
        object([("effort", effort.map(Value::from)), ("format", settings.format.as_ref().and_then(format))]);
    let mut messages = messages.to_vec();
    if plan.other_form(45) {
        messages.iter_mut().for_each(shorten);
    }
    let body = object([
        ("model", Some("m".into())),
        ("max_tokens", Some(most.into())),
        ("messages", Some(messages.into())),
        ("system", (!system.is_empty()).then(|| system.into())),
        ("tools", has_tools.then(|| tools.collect())),
        ("tool_choice", has_tools.then(|| choice(plan, thinks, writer)).flatten()),
        ("temperature", temperature.map(tenths)),
        ("top_p", top_p.map(tenths)),
        ("top_k", settings.top_k.filter(|_| !thinks).map(Value::from)),
        ("stop_sequences", (!stops.is_empty()).then(|| json!(stops))),
        ("metadata", settings.user.as_ref().map(|user| json!({ "user_id": user }))),
        ("thinking", thinking),
        ("output_config", (!config.is_empty()).then(|| config.into())),
        ("service_tier", settings.tier.then(|| "standard_only".into())),
        ("stream", settings.stream.then(|| true.into())),
    ]);
    body.into()
}
