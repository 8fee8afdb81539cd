//! Section 2.5 and the native protocol as publicly documented (ours).

use gatewright::types;
use serde_json::{Value, json};

use crate::support::{read, start};

const PATH: &str = "/v1beta/models/model-breeze:generateContent";

fn ask(text: &str) -> Value {
    json!({ "contents": [{ "parts": [{ "text": text }] }] })
}

#[tokio::test]
async fn generated_content_has_candidates_and_usage() {
    let server = start().await;
    let answer = server.ask(PATH, &ask("Say hello")).await;
    serde_json::from_value::<types::GenerateContentResponse>(answer.clone()).expect("the generated type");
    let candidate = &answer["candidates"][0];
    assert_eq!(candidate["content"], json!({ "role": "model", "parts": [{ "text": "hello" }] }));
    assert_eq!(candidate["finishReason"], "STOP");
    let usage = &answer["usageMetadata"];
    let count = |name: &str| usage[name].as_u64().expect("a count");
    assert_eq!(count("promptTokenCount") + count("candidatesTokenCount"), count("totalTokenCount"));
    assert_eq!(answer["modelVersion"], "model-breeze");
    // Clients of the protocol also call it under /v1.
    let other = server.ask("/v1/models/model-breeze:generateContent", &ask("Say hello")).await;
    assert_eq!(other["candidates"], answer["candidates"]);
}

#[tokio::test]
async fn a_stream_has_a_piece_an_event_and_the_finish_reason_last() {
    let server = start().await;
    let whole = server.ask(PATH, &ask("Tell me about rivers")).await;
    let path = "/v1beta/models/model-breeze:streamGenerateContent?alt=sse";
    let events = server.stream(path, &ask("Tell me about rivers")).await;
    let candidates: Vec<Value> = events.iter().map(|event| event.json()["candidates"][0].clone()).collect();
    let text: String =
        candidates.iter().filter_map(|candidate| candidate["content"]["parts"][0]["text"].as_str()).collect();
    assert_eq!(text, whole["candidates"][0]["content"]["parts"][0]["text"]);
    assert!(candidates.len() > 20);
    let (last, others) = candidates.split_last().expect("candidates");
    assert_eq!(last["finishReason"], "STOP");
    assert!(others.iter().all(|candidate| candidate.get("finishReason").is_none()));
    let (status, body) = server.refused("/v1beta/models/model-breeze:streamGenerateContent", &ask("x")).await;
    assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
}

#[tokio::test]
async fn tokens_are_counted_as_usage_counts_them() {
    let server = start().await;
    let answer = server.ask(PATH, &ask("How many tokens is this?")).await;
    let path = "/v1beta/models/model-breeze:countTokens";
    let counted = server.ask(path, &ask("How many tokens is this?")).await;
    assert_eq!(counted["totalTokens"], answer["usageMetadata"]["promptTokenCount"]);
    let nested = json!({ "generateContentRequest": ask("How many tokens is this?") });
    assert_eq!(server.ask(path, &nested).await, counted);
}

#[tokio::test]
async fn functions_are_called_when_forced_and_answered_afterwards() {
    let server = start().await;
    let tools = json!([{ "functionDeclarations": [{ "name": "get_weather", "parameters": {
        "type": "OBJECT", "properties": { "city": { "type": "STRING" }, "days": { "type": "INTEGER" } },
        "required": ["city", "days"] } }] }]);
    let json_schema =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    for name in ["parametersJsonSchema", "parameters_json_schema"] {
        let mut body = ask("Use get_weather for Oslo");
        body["tools"] = json!([{ "functionDeclarations": [{ "name": "get_weather", name: json_schema }] }]);
        let parts = server.ask(PATH, &body).await["candidates"][0]["content"]["parts"].clone();
        assert_eq!(
            parts,
            json!([{ "functionCall": { "name": "get_weather", "args": { "city": "Oslo" } } }]),
            "{name}"
        );
    }
    let mut body = ask("What is the weather in Paris for 2 days?");
    body["tools"] = tools.clone();
    body["toolConfig"] =
        json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["get_weather"] } });
    let answer = server.ask(PATH, &body).await;
    let call = answer["candidates"][0]["content"]["parts"][0]["functionCall"].clone();
    assert_eq!(call, json!({ "name": "get_weather", "args": { "city": "Paris", "days": 2 } }));

    let next = json!({ "tools": tools, "contents": [
        { "role": "user", "parts": [{ "text": "What is the weather in Paris?" }] },
        { "role": "model", "parts": [{ "functionCall": call }] },
        { "role": "user", "parts": [{ "functionResponse": { "name": "get_weather", "response": { "sky": "clear" } } }] },
    ]});
    let answer = server.ask(PATH, &next).await;
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("get_weather") && text.contains("clear"), "{text}");
}

#[tokio::test]
async fn generation_config_is_kept() {
    let server = start().await;
    let mut body = ask("Count to 30");
    body["generationConfig"] = json!({ "maxOutputTokens": 3, "candidateCount": 2 });
    let answer = server.ask(PATH, &body).await;
    assert_eq!(answer["candidates"].as_array().map(Vec::len), Some(2));
    assert_eq!(answer["candidates"][1]["finishReason"], "MAX_TOKENS");
    body["generationConfig"] = json!({ "responseMimeType": "application/json", "responseSchema": {
        "type": "OBJECT", "properties": { "n": { "type": "INTEGER" } }, "required": ["n"] } });
    let answer = server.ask(PATH, &body).await;
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().expect("text").to_owned();
    assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), json!({ "n": 30 }));
}

#[tokio::test]
async fn an_unknown_model_is_not_found_in_the_native_form() {
    let server = start().await;
    let (status, body) = read(server.post("/v1beta/models/nope:generateContent", &ask("x"))).await;
    assert_eq!(
        (status, &body["error"]["status"], &body["error"]["code"]),
        (404, &json!("NOT_FOUND"), &json!(404))
    );
}
