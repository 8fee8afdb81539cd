//! The messages protocol as publicly documented (ours), at the simulator.

use serde_json::{Value, json};

use crate::support::{Server, send, start};

const PATH: &str = "/v1/messages";

fn ask(content: &str) -> Value {
    json!({ "model": "model-breeze", "max_tokens": 500, "messages": [{ "role": "user", "content": content }] })
}

async fn streamed(server: &Server, body: &Value) -> Vec<(String, Value)> {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let events = server.stream(PATH, &body).await;
    events.iter().map(|event| (event.name.clone().unwrap_or_default(), event.json())).collect()
}

#[tokio::test]
async fn reached_stop_sequence_is_named() {
    let server = start().await;
    let mut body = ask("Count to 5");
    body["stop_sequences"] = json!(["9", "4"]);
    let answer = server.ask(PATH, &body).await;
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "1, 2, 3, " }]));
    assert_eq!((&answer["stop_reason"], &answer["stop_sequence"]), (&json!("stop_sequence"), &json!("4")));
    let events = streamed(&server, &body).await;
    let ended = events.iter().find(|(name, _)| name == "message_delta").expect("the end");
    assert_eq!(ended.1["delta"], json!({ "stop_reason": "stop_sequence", "stop_sequence": "4" }));
}

#[tokio::test]
async fn stream_begins_with_the_counted_input_and_the_service_tier() {
    let server = start().await;
    let mut body = ask("Tell me about rivers");
    body["service_tier"] = json!("auto");
    let whole = server.ask(PATH, &body).await;
    let events = streamed(&server, &body).await;
    let (name, started) = &events[0];
    assert_eq!(name, "message_start");
    let usage = &started["message"]["usage"];
    assert_eq!(usage["input_tokens"], whole["usage"]["input_tokens"]);
    assert_eq!(
        (&usage["service_tier"], &whole["usage"]["service_tier"]),
        (&json!("standard"), &json!("standard"))
    );
    let text: String = events.iter().filter_map(|(_, event)| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, whole["content"][0]["text"]);
    let ended = events.iter().find(|(name, _)| name == "message_delta").expect("the end");
    assert_eq!(ended.1["usage"]["output_tokens"], whole["usage"]["output_tokens"]);
}

#[tokio::test]
async fn token_count_equals_the_reported_usage() {
    let server = start().await;
    let tool = json!({ "name": "look", "input_schema": { "type": "object" } });
    let mut body = ask("How many tokens is this?");
    body["tools"] = json!([tool]);
    let answer = server.ask(PATH, &body).await;
    let counting = json!({ "model": body["model"], "messages": body["messages"], "tools": body["tools"] });
    let counted = send(server.post("/v1/messages/count_tokens", &counting)).await;
    assert!(!counted.headers().contains_key("x-gatewright-estimated"));
    let counted: Value = counted.json().await.expect("JSON");
    assert_eq!(counted["input_tokens"], answer["usage"]["input_tokens"]);
}

#[tokio::test]
async fn forced_tool_is_called_and_its_result_answered() {
    let server = start().await;
    let mut body = ask("What is the weather in Paris?");
    body["tools"] = json!([{ "name": "get_weather", "input_schema": {
        "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] } }]);
    body["tool_choice"] = json!({ "type": "tool", "name": "get_weather" });
    let answer = server.ask(PATH, &body).await;
    let call = answer["content"][0].clone();
    assert_eq!((&call["type"], &call["input"]), (&json!("tool_use"), &json!({ "city": "Paris" })));
    assert_eq!(answer["stop_reason"], "tool_use");

    body["tool_choice"] = json!({ "type": "auto" });
    let messages = body["messages"].as_array_mut().expect("messages");
    messages.push(json!({ "role": "assistant", "content": answer["content"] }));
    let result = json!({ "type": "tool_result", "tool_use_id": call["id"], "content": "clear" });
    messages.push(json!({ "role": "user", "content": [result] }));
    let text = server.ask(PATH, &body).await["content"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("get_weather") && text.contains("clear"), "{text}");

    body["tool_choice"] = json!({ "type": "tool", "name": "other" });
    let (status, refused) = server.refused(PATH, &body).await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(status == 400 && message.contains("\"other\""), "{refused}");
}

#[tokio::test]
async fn schema_beyond_the_limits_is_refused_at_its_place() {
    let server = start().await;
    let mut body = ask("Call look");
    let long = json!({ "type": "object", "properties": { "x": { "type": "string", "pattern": "a".repeat(2_000) } } });
    body["tools"] = json!([{ "name": "look", "input_schema": long }]);
    let (status, refused) = server.refused(PATH, &body).await;
    let message = refused["error"]["message"].as_str().expect("a message");
    assert!(status == 400 && message.contains("/tools/0/input_schema/properties/x/pattern"), "{refused}");
}
