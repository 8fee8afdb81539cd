use serde_json::{Value, json};

use super::super::plan::{Bit, Call, Exchange, Plan, Tool};
use super::{Writer, is_complete, object, tenths, with_properties};

pub(super) fn write(plan: &Plan, writer: &mut Writer) -> Value {
    let mut messages = Vec::new();
    for (index, text) in plan.system.iter().enumerate() {
        let role = if plan.other_form(index.try_into().unwrap_or(0)) { "developer" } else { "system" };
        writer.content.system.push(text.clone());
        messages.push(json!({ "role": role, "content": text }));
    }
    for (index, exchange) in plan.exchanges.iter().enumerate() {
        if index > 0 || !plan.opens_with_call() {
            messages.push(user(&exchange.question, plan.other_form(8), writer));
        }
        messages.extend(answer(exchange, plan, writer));
        if let Some(comment) = exchange.comment.as_ref().filter(|_| !messages.is_empty()) {
            messages.push(user(comment, plan.other_form(9), writer));
        }
        if let Some(text) = plan.late_system.as_ref().filter(|_| index == 0) {
            writer.content.system.push(text.clone());
            messages.push(json!({ "role": "system", "content": text }));
        }
    }
    messages.extend(plan.last.as_ref().map(|bits| user(bits, plan.other_form(10), writer)));
    settings(plan, &messages, writer)
}

fn part(bit: &Bit) -> Value {
    match bit {
        Bit::Text(text) | Bit::Blank(text) => json!({ "type": "text", "text": text }),
        Bit::Picture(kind, data) => picture(&format!("data:{kind};base64,{data}")),
        Bit::PictureAt(url) => picture(url),
        Bit::Pdf(data) => {
            let file =
                json!({ "file_data": format!("data:application/pdf;base64,{data}"), "filename": "a.pdf" });
            json!({ "type": "file", "file": file })
        }
    }
}

fn picture(url: &str) -> Value {
    json!({ "type": "image_url", "image_url": { "url": url } })
}

fn user(bits: &[Bit], is_plain: bool, writer: &mut Writer) -> Value {
    writer.note_content(bits);
    match bits {
        [Bit::Text(text) | Bit::Blank(text)] if is_plain => json!({ "role": "user", "content": text }),
        bits => json!({ "role": "user", "content": bits.iter().map(part).collect::<Vec<_>>() }),
    }
}

/// The model's message, and the results of its calls in any order.
fn answer(exchange: &Exchange, plan: &Plan, writer: &mut Writer) -> Vec<Value> {
    let calls = if writer.names.is_empty() { &[][..] } else { &exchange.calls };
    if calls.is_empty() && exchange.text.is_none() {
        return Vec::new();
    }
    let mut message = json!({ "role": "assistant", "content": null });
    if let Some(text) = &exchange.text {
        let text = writer.text(text);
        match plan.forms >> 40 & 3 {
            0 => message["content"] = json!([{ "type": "text", "text": text }]),
            // The model's refusal stays in the history.
            1 if calls.is_empty() => message["refusal"] = text,
            _ => message["content"] = text,
        }
    }
    thoughts(exchange, plan, &mut message);
    let (mut written, mut results) = (Vec::new(), Vec::new());
    for call in calls {
        let mut id = writer.id(&call.id);
        if written.iter().any(|written: &Value| written["id"] == id.as_str()) {
            id = format!("{}_{}", written.len(), id).chars().take(40).collect();
        }
        written.push(write_call(call, &id, plan, writer));
        results.push(json!({ "role": "tool", "tool_call_id": id, "content": result(call, plan) }));
    }
    if !written.is_empty() {
        message["tool_calls"] = written.into();
        let middle = exchange.rotation % results.len();
        results.rotate_left(middle);
    }
    std::iter::once(message).chain(results).collect()
}

fn thoughts(exchange: &Exchange, plan: &Plan, message: &mut Value) {
    if exchange.thoughts.is_empty() {
        return;
    }
    let texts: String = exchange.thoughts.iter().map(|thought| thought.text.as_str()).collect();
    message["reasoning_content"] = texts.into();
    if plan.other_form(11) {
        let detail = |thought: &super::super::plan::Thought| json!({ "type": "reasoning.text", "text": thought.text, "signature": thought.proof });
        message["reasoning_details"] = exchange.thoughts.iter().map(detail).collect();
    }
}

fn write_call(call: &Call, id: &str, plan: &Plan, writer: &mut Writer) -> Value {
    let tool = call.tool % writer.names.len();
    let name = writer.names[tool].clone();
    // Results contain only text.
    let texts: Vec<Bit> = call.result.iter().filter(|bit| matches!(bit, Bit::Text(_))).cloned().collect();
    let input = Value::Object(call.arguments.clone());
    if plan.tools[tool].custom {
        let text = input.to_string();
        writer.call(tool, text.as_str().into(), &texts);
        return json!({ "id": id, "type": "custom", "custom": { "name": name, "input": text } });
    }
    let text = input.to_string();
    writer.call(tool, input, &texts);
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": text } })
}

fn result(call: &Call, plan: &Plan) -> Value {
    let texts = call.result.iter().filter_map(|bit| match bit {
        Bit::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    if plan.other_form(12) && !texts.is_empty() {
        return texts.into_iter().map(|text| json!({ "type": "text", "text": text })).collect();
    }
    texts.concat().into()
}

fn tool(tool: &Tool, name: &str) -> Value {
    if tool.custom {
        return json!({ "type": "custom", "custom": { "name": name } });
    }
    let mut function = json!({ "name": name, "parameters": with_properties(&tool.schema) });
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    if tool.strict && is_complete(&tool.schema) {
        function["strict"] = true.into();
    }
    json!({ "type": "function", "function": function })
}

fn choice(plan: &Plan, writer: &Writer) -> Option<Value> {
    let kind = if plan.tools[0].custom { "custom" } else { "function" };
    let first = json!({ "type": kind, kind: { "name": writer.names[0] } });
    Some(match plan.settings.choice % 6 {
        0 => json!("auto"),
        1 => json!("none"),
        2 => json!("required"),
        3 => first,
        4 => json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": [first] } }),
        _ => return None,
    })
}

fn settings(plan: &Plan, messages: &[Value], writer: &Writer) -> Value {
    let settings = &plan.settings;
    let has_tools = !plan.tools.is_empty();
    let tools = plan.tools.iter().zip(&writer.names).map(|(plan, name)| tool(plan, name));
    let schema = |schema: &Value| {
        let strict = settings.is_strict && is_complete(schema);
        json!({ "type": "json_schema", "json_schema": { "name": "form", "schema": schema, "strict": strict } })
    };
    let stops: Vec<&String> = settings.stops.iter().take(4).collect();
    let limit = if plan.other_form(20) { "max_tokens" } else { "max_completion_tokens" };
    let body = object([
        ("model", Some("m".into())),
        ("messages", Some(messages.into())),
        ("tools", has_tools.then(|| tools.collect())),
        ("tool_choice", has_tools.then(|| choice(plan, writer)).flatten()),
        ("parallel_tool_calls", settings.parallel.filter(|_| has_tools).map(Value::from)),
        ("temperature", settings.temperature.map(tenths)),
        ("top_p", settings.top_p.map(tenths)),
        ("frequency_penalty", settings.penalty.map(|number| (f64::from(number) / 10.0).into())),
        ("seed", settings.seed.map(Value::from)),
        (limit, settings.most.map(Value::from)),
        ("stop", (!stops.is_empty()).then(|| json!(stops))),
        ("user", settings.user.as_ref().map(|user| user.chars().take(64).collect::<String>().into())),
        ("reasoning_effort", settings.effort.map(Value::from)),
        ("response_format", settings.format.as_ref().map(schema)),
        ("logprobs", settings.logprobs.map(|_| true.into())),
        ("top_logprobs", settings.logprobs.map(Value::from)),
        ("n", settings.choices.map(Value::from)),
        ("service_tier", settings.tier.then(|| "flex".into())),
        ("verbosity", settings.verbosity.map(Value::from)),
        ("stream", settings.stream.then(|| true.into())),
        ("stream_options", settings.stream.then(|| json!({ "include_usage": true }))),
        ("metadata", settings.metadata.then(|| json!({ "a": "b" }))),
    ]);
    body.into()
}
