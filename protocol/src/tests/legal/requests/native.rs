use serde_json::{Value, json};

use super::super::plan::{Bit, Call, Exchange, Plan, Tool};
use super::{Writer, object, tenths, with_bare_references};

pub(super) fn write(plan: &Plan, writer: &mut Writer) -> Value {
    let mut contents: Vec<Value> = Vec::new();
    for (index, exchange) in plan.exchanges.iter().enumerate() {
        // Calls directly follow the user: results and a question are one turn, or two.
        let parts = user(&exchange.question, writer);
        add(&mut contents, parts, plan.other_form(8));
        answer(exchange, index, plan, writer, &mut contents);
    }
    if let Some(bits) = &plan.last {
        let parts = user(bits, writer);
        add(&mut contents, parts, plan.other_form(10));
    }
    let system: Vec<&String> = plan.system.iter().chain(&plan.late_system).collect();
    writer.content.system.extend(system.iter().map(|text| (*text).clone()));
    let system: Vec<Value> = system.into_iter().map(|text| json!({ "text": text })).collect();
    settings(plan, &contents, &system, writer)
}

fn add(contents: &mut Vec<Value>, parts: Vec<Value>, joins: bool) {
    match contents.last_mut() {
        Some(last) if joins && last["role"] == "user" => {
            if let Value::Array(known) = &mut last["parts"] {
                known.extend(parts);
            }
        }
        // The first turn is the user's even without a role.
        None if joins => contents.push(json!({ "parts": parts })),
        _ => contents.push(json!({ "role": "user", "parts": parts })),
    }
}

fn part(bit: &Bit) -> Value {
    match bit {
        Bit::Text(text) | Bit::Blank(text) => json!({ "text": text }),
        Bit::Picture(kind, data) => json!({ "inlineData": { "mimeType": kind, "data": data } }),
        Bit::PictureAt(url) => json!({ "fileData": { "mimeType": "image/png", "fileUri": url } }),
        Bit::Pdf(data) => json!({ "inlineData": { "mimeType": "application/pdf", "data": data } }),
    }
}

fn user(bits: &[Bit], writer: &mut Writer) -> Vec<Value> {
    writer.note_content(bits);
    bits.iter().map(part).collect()
}

/// The model's turn, and its calls' results in any order, with what the user says along with them.
fn answer(exchange: &Exchange, index: usize, plan: &Plan, writer: &mut Writer, contents: &mut Vec<Value>) {
    let calls = if writer.names.is_empty() { &[][..] } else { &exchange.calls };
    if calls.is_empty() && exchange.text.is_none() {
        return;
    }
    let thoughts = exchange.thoughts.iter().map(|thought| match &thought.proof {
        Some(proof) => json!({ "text": thought.text, "thought": true, "thoughtSignature": proof }),
        None => json!({ "text": format!("{} ", thought.text), "thought": true }),
    });
    let mut parts: Vec<Value> = thoughts.collect();
    if let Some(text) = &exchange.text {
        parts.push(json!({ "text": writer.text(text) }));
    }
    let has_ids = plan.other_form(u32::try_from(index).unwrap_or(0) + 30);
    let mut results = Vec::new();
    let mut ids: Vec<String> = Vec::new();
    for call in calls {
        let mut id = writer.id(&call.id);
        let (mut call, mut result) = write_call(call, plan, writer);
        if has_ids {
            if ids.contains(&id) {
                id = format!("{}{id}", ids.len());
            }
            (call["functionCall"]["id"], result["functionResponse"]["id"]) =
                (id.as_str().into(), id.as_str().into());
            ids.push(id);
        }
        parts.push(call);
        results.push(result);
    }
    contents.push(json!({ "role": "model", "parts": parts }));
    let mut following = Vec::new();
    if has_ids && !results.is_empty() {
        // Without ids, the order determines which is which.
        let middle = exchange.rotation % results.len();
        results.rotate_left(middle);
    }
    let is_before = exchange.rotation.is_multiple_of(2);
    let comment = exchange.comment.as_ref().map(|bits| user(bits, writer)).unwrap_or_default();
    if is_before {
        following.extend(comment);
        following.extend(results);
    } else {
        following.extend(results);
        following.extend(comment);
    }
    if !following.is_empty() {
        contents.push(json!({ "role": "user", "parts": following }));
    }
}

fn write_call(call: &Call, plan: &Plan, writer: &mut Writer) -> (Value, Value) {
    let tool = call.tool % writer.names.len();
    let name = writer.names[tool].clone();
    let input = Value::Object(call.arguments.clone());
    let (texts, media): (Vec<Bit>, Vec<Bit>) =
        call.result.iter().cloned().partition(|bit| matches!(bit, Bit::Text(_)));
    writer.call(tool, input.clone(), &call.result);
    let text: String =
        texts.iter().map(|bit| part(bit)["text"].as_str().unwrap_or_default().to_owned()).collect();
    let member = if call.failed { "error" } else { "output" };
    let mut response = json!({ "name": name, "response": { member: text } });
    if !media.is_empty() {
        response["parts"] = media.iter().map(part).collect();
    }
    let mut written = json!({ "functionCall": { "name": name, "args": input } });
    if call.failed && plan.other_form(13) {
        written["thoughtSignature"] = "CgYB".into();
    }
    (written, json!({ "functionResponse": response }))
}

/// A function with its parameters in one of the two forms.
fn declaration(tool: &Tool, name: &str, is_older: bool) -> Value {
    let mut function = json!({ "name": name });
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    if is_older {
        let city = json!({ "type": "STRING", "nullable": true });
        function["parameters"] = json!({ "type": "OBJECT", "properties": { "city": city } });
    } else {
        function["parametersJsonSchema"] = with_bare_references(&tool.schema);
        // Other protocols' providers reject it at the top.
        if tool.custom {
            function["parametersJsonSchema"]["anyOf"] =
                json!([{ "required": ["city"] }, { "required": ["day"] }]);
        }
    }
    function
}

fn choice(plan: &Plan, writer: &Writer) -> Option<Value> {
    let config = match plan.settings.choice % 5 {
        0 => json!({ "mode": "AUTO" }),
        1 => json!({ "mode": "NONE" }),
        2 => json!({ "mode": "ANY" }),
        3 => json!({ "mode": "ANY", "allowedFunctionNames": [writer.names[0]] }),
        _ => return None,
    };
    Some(json!({ "functionCallingConfig": config }))
}

fn settings(plan: &Plan, contents: &[Value], system: &[Value], writer: &Writer) -> Value {
    let settings = &plan.settings;
    let has_tools = !plan.tools.is_empty();
    let older = plan.other_form(24);
    let tools = plan.tools.iter().zip(&writer.names).map(|(plan, name)| declaration(plan, name, older));
    let stops: Vec<&String> = settings.stops.iter().take(5).collect();
    let thinking = match (settings.budget, settings.effort) {
        (Some(budget), _) if plan.other_form(25) => {
            Some(json!({ "thinkingBudget": budget.min(32_768), "includeThoughts": true }))
        }
        (_, Some(effort)) if effort != "none" => Some(json!({ "thinkingLevel": effort })),
        _ => None,
    };
    let config = object([
        ("temperature", settings.temperature.map(tenths)),
        ("topP", settings.top_p.map(tenths)),
        ("topK", settings.top_k.map(Value::from)),
        ("presencePenalty", settings.penalty.map(|number| (f64::from(number) / 10.0).into())),
        ("seed", settings.seed.map(Value::from)),
        ("maxOutputTokens", settings.most.map(Value::from)),
        ("stopSequences", (!stops.is_empty()).then(|| json!(stops))),
        ("thinkingConfig", thinking),
        ("responseJsonSchema", settings.format.as_ref().map(with_bare_references)),
        ("responseMimeType", settings.format.as_ref().map(|_| "application/json".into())),
        ("responseLogprobs", settings.logprobs.map(|_| true.into())),
        ("logprobs", settings.logprobs.map(Value::from)),
        ("candidateCount", settings.choices.map(Value::from)),
    ]);
    let body = object([
        ("contents", Some(contents.into())),
        ("systemInstruction", (!system.is_empty()).then(|| json!({ "parts": system }))),
        ("tools", has_tools.then(|| json!([{ "functionDeclarations": tools.collect::<Vec<_>>() }]))),
        ("toolConfig", has_tools.then(|| choice(plan, writer)).flatten()),
        ("generationConfig", (!config.is_empty()).then(|| config.into())),
    ]);
    body.into()
}
