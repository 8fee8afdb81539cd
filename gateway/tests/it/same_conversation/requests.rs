//! The conversation as clients send it in each protocol.

use serde_json::{Value, json};

use crate::callers::Protocol;

/// An image of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// The stop sequence.
const STOP: &str = "END";

/// The schema of the answer.
fn schema() -> Value {
    json!({"type": "object", "properties": {"sky": {"type": "string"}}, "required": ["sky"],
        "additionalProperties": false})
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]})
}

/// The conversation as a client of the protocol sends it: instructions, a question with an image, two parallel calls and
/// their results, another question; a tool, a schema, and sampling parameters. `stops`: also the stop sequence,
/// which the responses protocol doesn't have.
pub(super) fn request(client: Protocol, model: &str, stream: bool, stops: bool) -> (String, Value) {
    let (path, mut body) = match client {
        Protocol::Chat => ("/v1/chat/completions".to_owned(), chat()),
        Protocol::Responses => ("/v1/responses".to_owned(), responses()),
        Protocol::Messages => ("/v1/messages".to_owned(), messages()),
        Protocol::Native => return (native_path(model, stream), native(stops)),
    };
    body["model"] = model.into();
    body["stream"] = stream.into();
    match client {
        Protocol::Chat if stops => body["stop"] = json!([STOP]),
        Protocol::Messages if stops => body["stop_sequences"] = json!([STOP]),
        _ => {}
    }
    if client == Protocol::Chat && stream {
        // Clients of the other protocols always get the usage.
        body["stream_options"] = json!({"include_usage": true});
    }
    (path, body)
}

pub(super) fn native_path(model: &str, stream: bool) -> String {
    let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    format!("/v1beta/models/{model}:{method}")
}

fn chat() -> Value {
    let call = |id: &str, arguments: &str| {
        let function = json!({"name": "weather", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    json!({
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Weather here?"},
                {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PICTURE}")}},
            ]},
            {"role": "assistant", "content": "I look.",
                "tool_calls": [call("c1", r#"{"city":"Oslo"}"#), call("c2", r#"{"city":"Rome"}"#)]},
            {"role": "tool", "tool_call_id": "c1", "content": "snow"},
            {"role": "tool", "tool_call_id": "c2", "content": "sun"},
            {"role": "assistant", "content": "Snow and sun."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [{"type": "function", "function": {
            "name": "weather", "description": "Tells it.", "parameters": parameters()}}],
        "tool_choice": "auto",
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema()}},
        "max_tokens": 64, "temperature": 0.5,
    })
}

fn responses() -> Value {
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "call_id": id, "name": "weather", "arguments": arguments});
    json!({
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": [
                {"type": "input_text", "text": "Weather here?"},
                {"type": "input_image", "image_url": format!("data:image/png;base64,{PICTURE}")},
            ]},
            {"role": "assistant", "content": "I look."},
            call("c1", r#"{"city":"Oslo"}"#),
            call("c2", r#"{"city":"Rome"}"#),
            {"type": "function_call_output", "call_id": "c1", "output": "snow"},
            {"type": "function_call_output", "call_id": "c2", "output": "sun"},
            {"role": "assistant", "content": "Snow and sun."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [{"type": "function", "name": "weather", "description": "Tells it.", "parameters": parameters(),
            "strict": false}],
        "tool_choice": "auto",
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema()}},
        "max_output_tokens": 64, "temperature": 0.5, "store": false,
    })
}

fn messages() -> Value {
    let source = json!({"type": "base64", "media_type": "image/png", "data": PICTURE});
    let call = |id: &str, city: &str| json!({"type": "tool_use", "id": id, "name": "weather", "input": {"city": city}});
    json!({
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "Weather here?"},
                {"type": "image", "source": source},
            ]},
            {"role": "assistant",
                "content": [{"type": "text", "text": "I look."}, call("c1", "Oslo"), call("c2", "Rome")]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "snow"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "sun"},
            ]},
            {"role": "assistant", "content": "Snow and sun."},
            {"role": "user", "content": "Thanks. And now?"},
        ],
        "tools": [{"name": "weather", "description": "Tells it.", "input_schema": parameters()}],
        "tool_choice": {"type": "auto"},
        "output_config": {"format": {"type": "json_schema", "schema": schema()}},
        "max_tokens": 64, "temperature": 0.5,
    })
}

fn native(stops: bool) -> Value {
    let call =
        |id: &str, city: &str| json!({"functionCall": {"id": id, "name": "weather", "args": {"city": city}}});
    let result = |id: &str, output: &str| json!({"functionResponse": {"id": id, "name": "weather", "response": {"output": output}}});
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [
                {"text": "Weather here?"},
                {"inlineData": {"mimeType": "image/png", "data": PICTURE}},
            ]},
            {"role": "model", "parts": [{"text": "I look."}, call("c1", "Oslo"), call("c2", "Rome")]},
            {"role": "user", "parts": [result("c1", "snow"), result("c2", "sun")]},
            {"role": "model", "parts": [{"text": "Snow and sun."}]},
            {"role": "user", "parts": [{"text": "Thanks. And now?"}]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "weather", "description": "Tells it.", "parametersJsonSchema": parameters()}]}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        "generationConfig": {"maxOutputTokens": 64, "temperature": 0.5,
            "responseMimeType": "application/json", "responseJsonSchema": schema()},
    });
    if stops {
        body["generationConfig"]["stopSequences"] = json!([STOP]);
    }
    body
}
