use serde_json::{Value, json};

use super::super::plan::{Bit, Call, Exchange, Plan, Tool};
use super::{Writer, is_complete, object, tenths, with_properties};

pub(super) fn write(plan: &Plan, writer: &mut Writer) -> Value {
    let mut input = Vec::new();
    let mut system = plan.system.iter();
    let instructions = system.next().filter(|_| !plan.system.is_empty());
    writer.content.system.extend(instructions.cloned());
    for text in system {
        writer.content.system.push(text.clone());
        input.push(json!({ "role": "developer", "content": [{ "type": "input_text", "text": text }] }));
    }
    for (index, exchange) in plan.exchanges.iter().enumerate() {
        if index > 0 || !plan.opens_with_call() {
            input.push(user(&exchange.question, plan.other_form(8), writer));
        }
        answer(exchange, plan, writer, &mut input);
        if let Some(text) = plan.late_system.as_ref().filter(|_| index == 0) {
            writer.content.system.push(text.clone());
            input.push(json!({ "role": "developer", "content": text }));
        }
    }
    input.extend(plan.last.as_ref().map(|bits| user(bits, plan.other_form(10), writer)));
    settings(plan, &input, instructions, writer)
}

fn part(bit: &Bit) -> Value {
    match bit {
        Bit::Text(text) | Bit::Blank(text) => json!({ "type": "input_text", "text": text }),
        Bit::Picture(kind, data) => {
            json!({ "type": "input_image", "image_url": format!("data:{kind};base64,{data}"), "detail": "auto" })
        }
        Bit::PictureAt(url) => json!({ "type": "input_image", "image_url": url }),
        Bit::Pdf(data) => {
            let data = format!("data:application/pdf;base64,{data}");
            json!({ "type": "input_file", "file_data": data, "filename": "a.pdf" })
        }
    }
}

fn user(bits: &[Bit], is_plain: bool, writer: &mut Writer) -> Value {
    writer.note_content(bits);
    match bits {
        [Bit::Text(text) | Bit::Blank(text)] if is_plain => json!({ "role": "user", "content": text }),
        bits => {
            json!({ "type": "message", "role": "user", "content": bits.iter().map(part).collect::<Vec<_>>() })
        }
    }
}

/// Thoughts, text, calls and their results, between which the user may speak.
fn answer(exchange: &Exchange, plan: &Plan, writer: &mut Writer, input: &mut Vec<Value>) {
    let calls = if writer.names.is_empty() { &[][..] } else { &exchange.calls };
    if calls.is_empty() && exchange.text.is_none() {
        return;
    }
    for thought in exchange.thoughts.iter().filter(|thought| thought.proof.is_some()) {
        let summary = json!([{ "type": "summary_text", "text": thought.text }]);
        let id = format!("rs_{}", input.len());
        let mut item = json!({ "type": "reasoning", "summary": summary, "encrypted_content": thought.proof });
        if plan.other_form(43) {
            item["id"] = id.into();
        }
        input.push(item);
    }
    if let Some(text) = &exchange.text {
        let text = writer.text(text);
        input.push(match plan.forms >> 40 & 3 {
            0 => json!({ "role": "assistant", "content": text }),
            1 => {
                let part = json!({ "type": "refusal", "refusal": text });
                json!({ "type": "message", "role": "assistant", "content": [part] })
            }
            _ => {
                let part = json!({ "type": "output_text", "text": text, "annotations": [] });
                let id = format!("msg_{}", input.len());
                json!({ "type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part] })
            }
        });
    }
    let mut results = Vec::new();
    for call in calls {
        let (item, result) = write_call(call, plan, writer);
        input.push(item);
        results.push(result);
    }
    let middle = exchange.rotation % results.len().max(1);
    results.rotate_left(middle);
    // The user's text may come before, between and after results.
    let place = exchange.rotation % (results.len() + 1);
    if let Some(comment) = &exchange.comment {
        results.insert(place, user(comment, plan.other_form(9), writer));
    }
    input.extend(results);
}

fn write_call(call: &Call, plan: &Plan, writer: &mut Writer) -> (Value, Value) {
    let id = writer.id(&call.id);
    let tool = call.tool % writer.names.len();
    let name = writer.names[tool].clone();
    let arguments = Value::Object(call.arguments.clone());
    let text = arguments.to_string();
    let output = result(call, plan);
    if plan.tools[tool].custom {
        writer.call(tool, text.as_str().into(), &call.result);
        let item = json!({ "type": "custom_tool_call", "call_id": id, "name": name, "input": text });
        return (item, json!({ "type": "custom_tool_call_output", "call_id": id, "output": output }));
    }
    writer.call(tool, arguments, &call.result);
    let mut item = json!({ "type": "function_call", "call_id": id, "name": name, "arguments": text });
    if plan.other_form(42) {
        (item["id"], item["status"]) =
            (format!("fc_{}", writer.content.calls.len()).into(), "completed".into());
    }
    (item, json!({ "type": "function_call_output", "call_id": id, "output": output }))
}

fn result(call: &Call, plan: &Plan) -> Value {
    match call.result.as_slice() {
        [] => "".into(),
        [Bit::Text(text)] if plan.other_form(12) => text.as_str().into(),
        bits => bits.iter().map(part).collect(),
    }
}

fn tool(tool: &Tool, name: &str) -> Value {
    if tool.custom {
        return json!({ "type": "custom", "name": name });
    }
    let strict = tool.strict && is_complete(&tool.schema);
    let parameters = with_properties(&tool.schema);
    let mut function =
        json!({ "type": "function", "name": name, "parameters": parameters, "strict": strict });
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    function
}

fn choice(plan: &Plan, writer: &Writer) -> Option<Value> {
    let kind = if plan.tools[0].custom { "custom" } else { "function" };
    let first = json!({ "type": kind, "name": writer.names[0] });
    Some(match plan.settings.choice % 6 {
        0 => json!("auto"),
        1 => json!("none"),
        2 => json!("required"),
        3 => first,
        4 => json!({ "type": "allowed_tools", "mode": "auto", "tools": [first] }),
        _ => return None,
    })
}

fn settings(plan: &Plan, input: &[Value], instructions: Option<&String>, writer: &Writer) -> Value {
    let settings = &plan.settings;
    let has_tools = !plan.tools.is_empty();
    let tools = plan.tools.iter().zip(&writer.names).map(|(plan, name)| tool(plan, name));
    let format = settings.format.as_ref().map(|schema| {
        let strict = settings.is_strict && is_complete(schema);
        json!({ "type": "json_schema", "name": "form", "schema": schema, "strict": strict })
    });
    let text = object([("format", format), ("verbosity", settings.verbosity.map(Value::from))]);
    let effort = settings.effort.map(|effort| json!({ "effort": effort, "summary": "auto" }));
    let include = settings.effort.map(|_| json!(["reasoning.encrypted_content"]));
    let body = object([
        ("model", Some("m".into())),
        ("input", Some(input.into())),
        ("instructions", instructions.map(|text| text.as_str().into())),
        ("tools", has_tools.then(|| tools.collect())),
        ("tool_choice", has_tools.then(|| choice(plan, writer)).flatten()),
        ("parallel_tool_calls", settings.parallel.map(Value::from)),
        ("temperature", settings.temperature.map(tenths)),
        ("top_p", settings.top_p.map(tenths)),
        ("max_output_tokens", settings.most.map(|most| most.max(16).into())),
        ("user", settings.user.as_ref().map(|user| user.chars().take(64).collect::<String>().into())),
        ("reasoning", effort),
        ("include", include),
        ("text", (!text.is_empty()).then(|| text.into())),
        ("top_logprobs", settings.logprobs.map(Value::from)),
        ("service_tier", settings.tier.then(|| "flex".into())),
        ("stream", settings.stream.then(|| true.into())),
        ("store", plan.other_form(21).then(|| false.into())),
        ("metadata", settings.metadata.then(|| json!({ "a": "b" }))),
    ]);
    body.into()
}
