//! Section 2.5 and the native protocol as publicly documented (ours).

use std::time::Duration;

use gatewright::types;
use gatewright_gateway::Config;
use serde_json::{Value, json};

use crate::support::{read, send, start, start_with};

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
async fn stream_sends_one_piece_per_event_and_the_finish_reason_last() {
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
    let (status, body) = server.refused(&path.replace("sse", "xml"), &ask("x")).await;
    assert_eq!((status, &body["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
}

#[tokio::test]
async fn stream_without_alt_sse_is_an_incremental_array() {
    // Slow enough for each element to arrive separately.
    let server = start_with(Config { event_delay: Duration::from_millis(20), ..Config::default() }).await;
    let whole = server.ask(PATH, &ask("Tell me about rivers")).await;
    for query in ["", "?alt=json"] {
        let path = format!("/v1beta/models/model-breeze:streamGenerateContent{query}");
        let mut response = send(server.post(&path, &ask("Tell me about rivers"))).await;
        assert_eq!(response.headers()["content-type"], "application/json");
        let mut pieces = Vec::new();
        while let Some(piece) = response.chunk().await.expect("a whole body") {
            pieces.push(String::from_utf8(piece.to_vec()).expect("UTF-8"));
        }
        // Each chunk is usable on arrival: closing the first one yields an array.
        let first: Vec<Value> = serde_json::from_str(&format!("{}]", pieces[0])).expect("an element");
        assert_eq!(first.len(), 1);
        assert!(pieces.len() > 10, "{} pieces", pieces.len());
        let documents: Vec<Value> = serde_json::from_str(&pieces.concat()).expect("one JSON array");
        let texts =
            documents.iter().map(|document| &document["candidates"][0]["content"]["parts"][0]["text"]);
        let text: String = texts.filter_map(Value::as_str).collect();
        assert_eq!(text, whole["candidates"][0]["content"]["parts"][0]["text"]);
        assert_eq!(documents.last().expect("one")["candidates"][0]["finishReason"], "STOP");
    }
}

#[tokio::test]
async fn snake_case_requests_equal_camel_case_ones() {
    let server = start().await;
    let camel = json!({
        "contents": [{ "role": "user", "parts": [
            { "text": "Use get_weather for Oslo" },
            { "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" } },
        ]}],
        "systemInstruction": { "parts": [{ "text": "Be brief." }] },
        "generationConfig": { "maxOutputTokens": 40, "stopSequences": ["STOP"] },
        "tools": [{ "functionDeclarations": [{ "name": "get_weather", "parametersJsonSchema": {
            "type": "object", "properties": { "theCity": { "type": "string" }, "a_day": { "type": "string" } },
            "required": ["theCity", "a_day"] } }] }],
        "toolConfig": { "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["get_weather"] } },
    });
    let snake = json!({
        "contents": [{ "role": "user", "parts": [
            { "text": "Use get_weather for Oslo", "thought": null },
            { "inline_data": { "mime_type": "image/png", "data": "iVBORw0KGgo" } },
        ]}],
        "system_instruction": { "parts": [{ "text": "Be brief." }] },
        "generation_config": { "max_output_tokens": "40", "stop_sequences": ["STOP"], "top_k": null },
        "tools": [{ "function_declarations": [{ "name": "get_weather", "parameters_json_schema": {
            "type": "object", "properties": { "theCity": { "type": "string" }, "a_day": { "type": "string" } },
            "required": ["theCity", "a_day"] } }] }],
        "tool_config": { "function_calling_config": { "mode": "ANY", "allowed_function_names": ["get_weather"] } },
    });
    let answer = server.ask(PATH, &camel).await;
    let call = &answer["candidates"][0]["content"]["parts"][0]["functionCall"];
    // Names in a JSON Schema are the client's own and are not converted.
    assert_eq!(call["args"].as_object().expect("arguments").keys().collect::<Vec<_>>(), ["theCity", "a_day"]);
    let other = server.ask(PATH, &snake).await;
    let called = &other["candidates"][0]["content"]["parts"][0]["functionCall"];
    // Each call has an id of its own.
    assert_eq!((&called["name"], &called["args"]), (&call["name"], &call["args"]));
    assert_eq!(&other["usageMetadata"], &answer["usageMetadata"]);
}

#[tokio::test]
async fn generation_config_applies_in_either_spelling() {
    let server = start().await;
    let mut body = ask("Say one two three four");
    body["generation_config"] = json!({ "max_output_tokens": 2 });
    assert_eq!(server.ask(PATH, &body).await["candidates"][0]["finishReason"], "MAX_TOKENS");
    let mut counting = ask("Count to 5");
    counting["generation_config"] = json!({ "stop_sequences": ["4"] });
    let answer = server.ask(PATH, &counting).await;
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains('3') && !text.contains('4'), "{text}");
    body["generation_config"] = json!({ "response_mime_type": "application/json", "response_schema": {
        "type": "OBJECT", "properties": { "n": { "type": "ARRAY", "items": { "type": "INTEGER" }, "min_items": "2" } } } });
    let answer = server.ask(PATH, &body).await;
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().expect("text").to_owned();
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["n"].as_array().map(Vec::len), Some(2), "{text}");
}

#[tokio::test]
async fn member_in_both_spellings_is_rejected() {
    let server = start().await;
    let mut body = ask("Say hello");
    body["generation_config"] = json!({ "top_p": 0.5, "topP": 0.5 });
    let (status, answer) = server.refused(PATH, &body).await;
    assert_eq!((status, &answer["error"]["status"]), (400, &json!("INVALID_ARGUMENT")));
    let mut details = answer["error"]["details"].as_array().expect("details").iter();
    let violation = details.find_map(|detail| detail["fieldViolations"].get(0)).expect("a violation");
    assert_eq!(violation["field"], "generation_config");
    let description = violation["description"].as_str().expect("text");
    assert!(description.contains("top_p and topP are two spellings of one member"), "{description}");
}

#[tokio::test]
async fn all_parts_of_a_turn_are_read() {
    let server = start().await;
    let parts = |texts: &[&str]| {
        let parts: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
        json!({ "contents": [{ "role": "user", "parts": parts }] })
    };
    let one = server.ask(PATH, &parts(&["Say hello\nThank you."])).await;
    let two = server.ask(PATH, &parts(&["Say hello", "Thank you."])).await;
    assert_eq!((&one["candidates"], &one["usageMetadata"]), (&two["candidates"], &two["usageMetadata"]));
    // A question before an image is read, and text beside tool results does not hide them.
    let image = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" } });
    let body = json!({ "contents": [{ "parts": [{ "text": "Say hello" }, image] }] });
    let answer = server.ask(PATH, &body).await;
    assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], "hello");
}

#[tokio::test]
async fn enum_response_is_a_bare_word() {
    let server = start().await;
    let mut body = ask("Which is green: ruby or emerald? I think emerald.");
    let schema = json!({ "type": "STRING", "enum": ["ruby", "emerald", "opal"] });
    body["generationConfig"] = json!({ "responseMimeType": "text/x.enum", "responseSchema": schema });
    let text = |answer: &Value| answer["candidates"][0]["content"]["parts"][0]["text"].clone();
    let word = text(&server.ask(PATH, &body).await);
    assert!(schema["enum"].as_array().expect("words").contains(&word), "{word}");
    let mut as_json = body.clone();
    as_json["generationConfig"]["responseMimeType"] = json!("application/json");
    assert_eq!(text(&server.ask(PATH, &as_json).await), word.to_string());
    for config in [
        json!({ "responseMimeType": "text/x.enum" }),
        json!({ "responseMimeType": "text/x.enum", "responseSchema": { "type": "STRING" } }),
        json!({ "responseMimeType": "application/xml" }),
    ] {
        body["generationConfig"] = config;
        let (status, answer) = server.refused(PATH, &body).await;
        assert_eq!((status, &answer["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{body}");
    }
}

#[tokio::test]
async fn invalid_native_members_are_rejected() {
    let server = start().await;
    for body in [
        json!({ "contents": [{ "parts": [] }] }),
        json!({ "contents": [{ "role": "assistant", "parts": [{ "text": "x" }] }] }),
        json!({ "contents": [{ "role": "system", "parts": [{ "text": "x" }] }] }),
        json!({ "contents": [{ "parts": [{ "inlineData": { "mimeType": "image/png", "data": "not base64!" } }] }] }),
        json!({ "contents": [{ "parts": [{ "text": "x" }] }],
            "generationConfig": { "stopSequences": ["a", "b", "c", "d", "e", "f"] } }),
        json!({ "contents": [{ "parts": [{ "text": "x" }] }],
            "toolConfig": { "functionCallingConfig": { "mode": "any" } } }),
    ] {
        let (status, answer) = server.refused(PATH, &body).await;
        assert_eq!((status, &answer["error"]["status"]), (400, &json!("INVALID_ARGUMENT")), "{body}");
    }
    let counted = json!({ "generateContentRequest": { "contents": [{ "parts": [] }] } });
    let (status, _) = server.refused("/v1beta/models/model-breeze:countTokens", &counted).await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn model_may_be_called_by_its_native_name() {
    let server = start().await;
    let answer = server.ask(PATH, &ask("Say hello")).await;
    for name in ["models/model-breeze", "models%2Fmodel-breeze", "model%2Dbreeze"] {
        let path = format!("/v1beta/models/{name}:generateContent");
        assert_eq!(server.ask(&path, &ask("Say hello")).await["candidates"], answer["candidates"], "{name}");
    }
    for name in
        ["another/model", "another%2Fmodel", "models/models/model-breeze", "../model-breeze%2F", "a//b"]
    {
        let path = format!("/v1beta/models/{name}:generateContent");
        let (status, body) = server.refused(&path, &ask("Say hello")).await;
        assert_eq!((status, &body["error"]["status"]), (404, &json!("NOT_FOUND")), "{name}");
    }
}

#[tokio::test]
async fn token_count_equals_the_reported_usage() {
    let server = start().await;
    let answer = server.ask(PATH, &ask("How many tokens is this?")).await;
    let path = "/v1beta/models/model-breeze:countTokens";
    let counted = server.ask(path, &ask("How many tokens is this?")).await;
    assert_eq!(counted["totalTokens"], answer["usageMetadata"]["promptTokenCount"]);
    let nested = json!({ "generateContentRequest": ask("How many tokens is this?") });
    assert_eq!(server.ask(path, &nested).await, counted);
}

#[tokio::test]
async fn forced_function_is_called_and_its_result_answered() {
    let server = start().await;
    let tools = json!([{ "functionDeclarations": [{ "name": "get_weather", "parameters": {
        "type": "OBJECT", "properties": { "city": { "type": "STRING" }, "days": { "type": "INTEGER" } },
        "required": ["city", "days"] } }] }]);
    let mut body = ask("What is the weather in Paris for 2 days?");
    body["tools"] = tools.clone();
    body["toolConfig"] =
        json!({ "functionCallingConfig": { "mode": "ANY", "allowedFunctionNames": ["get_weather"] } });
    let answer = server.ask(PATH, &body).await;
    let call = answer["candidates"][0]["content"]["parts"][0]["functionCall"].clone();
    assert_eq!(
        (&call["name"], &call["args"]),
        (&json!("get_weather"), &json!({ "city": "Paris", "days": 2 }))
    );
    assert!(call["id"].is_string(), "{call}");

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
async fn generation_config_is_applied() {
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
async fn unknown_model_is_404_in_the_native_form() {
    let server = start().await;
    let (status, body) = read(server.post("/v1beta/models/nope:generateContent", &ask("x"))).await;
    assert_eq!(
        (status, &body["error"]["status"], &body["error"]["code"]),
        (404, &json!("NOT_FOUND"), &json!(404))
    );
}
