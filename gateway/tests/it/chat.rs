//! Sections 2.1 to 2.3 and 6: the chat protocol.

use gatewright::types;
use serde_json::{Value, json};

use crate::support::{Event, Server, start};

const PATH: &str = "/v1/chat/completions";

fn ask(content: &str) -> Value {
    json!({ "model": "model-sol", "messages": [{ "role": "user", "content": content }] })
}

fn with(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    body.as_object_mut().expect("an object").extend(more);
    body
}

async fn content(server: &Server, body: &Value) -> String {
    let answer = server.ask(PATH, body).await;
    answer["choices"][0]["message"]["content"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn completion_has_the_documented_fields() {
    let server = start().await;
    let answer = server.ask(PATH, &ask("Why is the sky blue?")).await;
    serde_json::from_value::<types::ChatCompletion>(answer.clone()).expect("the generated type");
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "model-sol");
    let choice = &answer["choices"][0];
    assert_eq!((&choice["index"], &choice["finish_reason"]), (&json!(0), &json!("stop")));
    assert_eq!(choice["message"]["role"], "assistant");
    let usage = &answer["usage"];
    let count = |name: &str| usage[name].as_u64().expect("a count");
    assert_eq!(count("prompt_tokens") + count("completion_tokens"), count("total_tokens"));
    assert!(count("prompt_tokens") > 0 && count("completion_tokens") > 10);
}

#[tokio::test]
async fn models_of_all_families_answer() {
    // 4 rule 2.
    let server = start().await;
    for model in gatewright::catalog::TEXT_MODELS {
        let answer = server.ask(PATH, &with(ask("Say hello"), json!({ "model": model.id }))).await;
        assert_eq!(answer["model"], model.id);
    }
}

#[tokio::test]
async fn unknown_and_non_text_models_are_404() {
    let server = start().await;
    for (model, hint) in
        [("nope", "/v1/models"), ("image_model_1", "image model"), ("video_model_2", "video model")]
    {
        let (status, body) = server.refused(PATH, &with(ask("x"), json!({ "model": model }))).await;
        assert_eq!((status, &body["error"]["code"]), (404, &json!("model_not_found")), "{body}");
        assert_eq!(body["error"]["param"], "model");
        assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains(hint)), "{body}");
    }
}

#[tokio::test]
async fn requested_text_is_echoed() {
    let server = start().await;
    for (prompt, expected) in [
        ("Reply with exactly this token and nothing else: COMPAT-0af31c", "COMPAT-0af31c"),
        ("Say \"it works\".", "it works"),
        ("Count from 1 to 5", "1, 2, 3, 4, 5"),
    ] {
        assert_eq!(content(&server, &ask(prompt)).await, expected);
    }
    assert_eq!(content(&server, &ask("Why?")).await, content(&server, &ask("Why?")).await);
}

#[tokio::test]
async fn max_tokens_stop_and_n_are_applied() {
    // 2.1.
    let server = start().await;
    let answer = server.ask(PATH, &with(ask("Count from 1 to 100"), json!({ "max_tokens": 5 }))).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 5);

    let answer = server.ask(PATH, &with(ask("Count from 1 to 9"), json!({ "stop": ["7", "5,"] }))).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "1, 2, 3, 4, ");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");

    let answer = server.ask(PATH, &with(ask("Tell me about rivers"), json!({ "n": 3 }))).await;
    let choices = answer["choices"].as_array().expect("choices");
    let texts: std::collections::HashSet<&str> =
        choices.iter().filter_map(|choice| choice["message"]["content"].as_str()).collect();
    assert_eq!((choices.len(), texts.len()), (3, 3));
}

#[tokio::test]
async fn simulated_answers_are_bounded() {
    let server = start().await;
    let answer =
        server.ask(PATH, &with(ask(&format!("Say {}", "x ".repeat(60_000))), json!({ "n": 2 }))).await;
    assert_eq!(answer["choices"][1]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 2 * 32_768);
}

#[tokio::test]
async fn stream_has_the_documented_chunks_and_ends_with_done() {
    let server = start().await;
    let whole = content(&server, &ask("Tell me about rivers")).await;
    let events = server.stream(PATH, &with(ask("Tell me about rivers"), json!({ "stream": true }))).await;
    assert!(events.iter().all(|event| event.name.is_none()));
    let (done, chunks) = events.split_last().expect("events");
    assert_eq!(done.data, "[DONE]");
    let chunks: Vec<Value> = chunks.iter().map(Event::json).collect();
    for chunk in &chunks {
        serde_json::from_value::<types::ChatCompletionChunk>(chunk.clone()).expect("the generated type");
        assert_eq!((&chunk["id"], &chunk["object"]), (&chunks[0]["id"], &json!("chat.completion.chunk")));
        assert!(chunk.get("usage").is_none());
    }
    let choices: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]).collect();
    assert_eq!(choices[0]["delta"]["role"], "assistant");
    let (last, before) = choices.split_last().expect("choices");
    assert_eq!((&last["delta"], &last["finish_reason"]), (&json!({}), &json!("stop")));
    assert!(before.iter().all(|choice| choice["finish_reason"].is_null()));
    let pieces: Vec<&str> = before.iter().filter_map(|choice| choice["delta"]["content"].as_str()).collect();
    assert!(pieces.len() > 20, "{} deltas", pieces.len());
    assert_eq!(pieces.concat(), whole);
}

#[tokio::test]
async fn stream_contains_requested_usage_and_every_choice() {
    let server = start().await;
    let more = json!({ "stream": true, "n": 2, "stream_options": { "include_usage": true } });
    let events = server.stream(PATH, &with(ask("Tell me about rivers"), more)).await;
    let chunks: Vec<Value> = events[..events.len() - 1].iter().map(Event::json).collect();
    let (last, others) = chunks.split_last().expect("chunks");
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].as_u64().is_some_and(|total| total > 0));
    assert!(others.iter().all(|chunk| chunk["usage"].is_null()));
    for index in 0..2 {
        let finishes = others.iter().filter(|chunk| {
            chunk["choices"][0]["index"] == index && chunk["choices"][0]["finish_reason"] == "stop"
        });
        assert_eq!(finishes.count(), 1);
    }
}

fn weather_tool() -> Value {
    json!({ "type": "function", "function": { "name": "get_weather", "parameters": {
        "type": "object", "required": ["city", "unit", "days"], "additionalProperties": false,
        "properties": {
            "city": { "type": "string" }, "unit": { "type": "string", "enum": ["celsius", "fahrenheit"] },
            "days": { "type": "integer", "minimum": 1, "maximum": 7 },
            "options": { "type": "object", "properties": { "hourly": { "type": "boolean" } }, "required": ["hourly"] },
        },
    }}})
}

#[tokio::test]
async fn forced_tool_call_has_valid_arguments() {
    let server = start().await;
    let tool = weather_tool();
    let validator = jsonschema::validator_for(&tool["function"]["parameters"]).expect("a schema");
    for choice in [json!("required"), json!({ "type": "function", "function": { "name": "get_weather" } })] {
        let more = json!({ "tools": [tool], "tool_choice": choice });
        let answer = server
            .ask(PATH, &with(ask("What is the weather in Paris for 3 days in fahrenheit?"), more))
            .await;
        let choice = &answer["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls");
        assert_eq!(choice["message"]["content"], Value::Null);
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!(call["function"]["name"], "get_weather");
        let arguments: Value =
            serde_json::from_str(call["function"]["arguments"].as_str().expect("text")).expect("JSON");
        assert!(validator.is_valid(&arguments), "{arguments}");
        assert_eq!(
            (&arguments["city"], &arguments["unit"], &arguments["days"]),
            (&json!("Paris"), &json!("fahrenheit"), &json!(3))
        );
    }
}

#[tokio::test]
async fn tool_calls_are_streamed_in_pieces() {
    let server = start().await;
    let more = json!({ "tools": [weather_tool()], "tool_choice": "required", "stream": true });
    let events = server.stream(PATH, &with(ask("Weather in Rome"), more)).await;
    let choices: Vec<Value> =
        events[..events.len() - 1].iter().map(|event| event.json()["choices"][0].clone()).collect();
    let calls: Vec<&Value> = choices
        .iter()
        .map(|choice| &choice["delta"]["tool_calls"][0])
        .filter(|call| call.is_object())
        .collect();
    assert_eq!(calls[0]["function"]["name"], "get_weather");
    assert!(calls[0]["id"].is_string() && calls.len() > 3);
    assert!(calls.iter().all(|call| call["index"] == 0));
    let arguments: String = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(serde_json::from_str::<Value>(&arguments).expect("JSON")["city"], "Rome");
    assert_eq!(choices.last().expect("choices")["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn parallel_tool_calls_only_if_allowed() {
    let server = start().await;
    let tool = |name: &str| json!({ "type": "function", "function": { "name": name } });
    for (parallel, expected) in [(true, 2), (false, 1)] {
        let more = json!({ "tools": [tool("get_time"), tool("get_place")], "parallel_tool_calls": parallel });
        let answer = server.ask(PATH, &with(ask("Call get_time and get_place"), more)).await;
        let calls = answer["choices"][0]["message"]["tool_calls"].as_array().expect("calls").len();
        assert_eq!(calls, expected);
    }
    let more = json!({ "tools": [tool("get_time")], "tool_choice": "none" });
    assert!(content(&server, &with(ask("Call get_time"), more)).await.len() > 10);
    let forced = json!({ "type": "function", "function": { "name": "other" } });
    let (status, body) =
        server.refused(PATH, &with(ask("x"), json!({ "tools": [tool("a")], "tool_choice": forced }))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("tool_choice")));
}

#[tokio::test]
async fn tool_results_are_answered_with_text() {
    let server = start().await;
    let body = json!({ "model": "model-cedar", "tools": [weather_tool()], "messages": [
        { "role": "developer", "content": "Be brief." },
        { "role": "user", "content": [{ "type": "text", "text": "Use get_weather for Oslo" }, { "type": "image_url", "image_url": { "url": "data:," } }] },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "call_1", "type": "function", "function": { "name": "get_weather", "arguments": "{}" } }] },
        { "role": "tool", "tool_call_id": "call_1", "content": "12 degrees, rain" },
    ]});
    let text = content(&server, &body).await;
    assert!(text.contains("get_weather") && text.contains("12 degrees, rain"), "{text}");
}

#[tokio::test]
async fn answers_match_the_requested_format() {
    let server = start().await;
    let schema = json!({ "type": "object", "required": ["name", "age"], "additionalProperties": false,
        "properties": { "name": { "type": "string" }, "age": { "type": "integer", "minimum": 18 } } });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "person", "strict": true, "schema": schema } });
    let text =
        content(&server, &with(ask("Describe Ada, who is 36"), json!({ "response_format": format }))).await;
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert!(jsonschema::is_valid(&schema, &value), "{value}");
    let text =
        content(&server, &with(ask("Hi"), json!({ "response_format": { "type": "json_object" } }))).await;
    assert!(serde_json::from_str::<Value>(&text).expect("JSON").is_object());
}
