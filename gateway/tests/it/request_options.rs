//! Accepted options take effect, or the response says that they don't (ours): log probabilities, echoed members,
//! image tokens, background responses.

use gatewright::types;
use serde_json::{Value, json};

use crate::support::{Event, start};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

fn chat(more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    let mut body =
        json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Say alpha beta gamma" }] });
    body.as_object_mut().expect("an object").extend(more);
    body
}

fn response(more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    let mut body = json!({ "model": "model-sol", "input": "Say alpha beta gamma" });
    body.as_object_mut().expect("an object").extend(more);
    body
}

/// Checks the log probabilities of "alpha beta gamma" and returns their joined tokens.
fn joined(logprobs: &Value, top: usize) -> String {
    let entries: Vec<types::TokenLogprob> =
        serde_json::from_value(logprobs.clone()).expect("the generated type");
    assert!(
        entries.iter().all(|entry| entry.logprob.is_some_and(|logprob| logprob <= 0.0)
            && entry.top_logprobs.as_ref().map_or(0, Vec::len) == top),
        "{logprobs}"
    );
    entries.iter().map(|entry| entry.token.as_str()).collect()
}

#[tokio::test]
async fn logprobs_are_returned_with_a_completion_on_request() {
    // 2.1, 2.2.
    let server = start().await;
    let answer = server.ask(CHAT, &chat(json!({ "logprobs": true, "top_logprobs": 3 }))).await;
    serde_json::from_value::<types::ChatCompletion>(answer.clone()).expect("the generated type");
    assert_eq!(joined(&answer["choices"][0]["logprobs"]["content"], 3), "alpha beta gamma");
    assert_eq!(answer["choices"][0]["logprobs"]["refusal"], Value::Null);
    let answer = server.ask(CHAT, &chat(json!({ "logprobs": true }))).await;
    assert_eq!(joined(&answer["choices"][0]["logprobs"]["content"], 0), "alpha beta gamma");
    for more in [json!({}), json!({ "logprobs": false })] {
        assert_eq!(server.ask(CHAT, &chat(more)).await["choices"][0]["logprobs"], Value::Null);
    }
}

#[tokio::test]
async fn streamed_logprobs_equal_those_of_the_completion() {
    // 2.3.
    let server = start().await;
    let options = json!({ "logprobs": true, "top_logprobs": 2 });
    let whole = server.ask(CHAT, &chat(options)).await["choices"][0]["logprobs"]["content"].clone();
    let options = json!({ "logprobs": true, "top_logprobs": 2, "stream": true });
    let events = server.stream(CHAT, &chat(options)).await;
    let mut streamed = Vec::new();
    for chunk in events[..events.len() - 1].iter().map(Event::json) {
        serde_json::from_value::<types::ChatCompletionChunk>(chunk.clone()).expect("the generated type");
        let choice = &chunk["choices"][0];
        let has_text = choice["delta"]["content"].as_str().is_some_and(|text| !text.is_empty());
        assert_eq!(choice["logprobs"].is_object(), has_text, "{chunk}");
        streamed.extend(choice["logprobs"]["content"].as_array().into_iter().flatten().cloned());
    }
    assert_eq!(Value::from(streamed), whole);
}

#[tokio::test]
async fn logprobs_appear_wherever_a_response_repeats_its_text() {
    // 2.4.
    let server = start().await;
    let options = json!({ "include": ["message.output_text.logprobs"], "top_logprobs": 2 });
    let answer = server.ask(RESPONSES, &response(options)).await;
    serde_json::from_value::<types::Response>(answer.clone()).expect("the generated type");
    let whole = answer["output"][0]["content"][0]["logprobs"].clone();
    assert_eq!((joined(&whole, 2).as_str(), &answer["top_logprobs"]), ("alpha beta gamma", &json!(2)));

    let options = json!({ "include": ["message.output_text.logprobs"], "top_logprobs": 2, "stream": true });
    let events = server.stream(RESPONSES, &response(options)).await;
    let mut deltas = Vec::new();
    for event in events[..events.len() - 1].iter().map(Event::json) {
        serde_json::from_value::<types::ResponseStreamEvent>(event.clone()).expect("the generated type");
        match event["type"].as_str().expect("a type") {
            "response.output_text.delta" => {
                deltas.extend(event["logprobs"].as_array().expect("a list").clone());
            }
            "response.output_text.done" => assert_eq!(event["logprobs"], whole),
            "response.content_part.done" => assert_eq!(event["part"]["logprobs"], whole),
            "response.output_item.done" => assert_eq!(event["item"]["content"][0]["logprobs"], whole),
            "response.completed" => {
                assert_eq!(event["response"]["output"][0]["content"][0]["logprobs"], whole);
            }
            _ => {}
        }
    }
    assert_eq!(Value::from(deltas), whole);

    let answer = server.ask(RESPONSES, &response(json!({}))).await;
    assert_eq!(answer["output"][0]["content"][0]["logprobs"], json!([]));
}

#[tokio::test]
async fn logprobs_beyond_the_budget_are_rejected() {
    let server = start().await;
    let long = json!([{ "role": "user", "content": format!("Say {}", "xyz ".repeat(20_000)) }]);
    let options = json!({ "messages": long, "logprobs": true, "top_logprobs": 20 });
    let (status, body) = server.refused(CHAT, &chat(options)).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!("request_too_costly")));
    assert!(
        body["error"]["message"].as_str().is_some_and(|message| message.contains("top_logprobs")),
        "{body}"
    );
}

#[tokio::test]
async fn response_request_members_are_echoed() {
    // 2.4.
    let server = start().await;
    let sent = json!({ "prompt_cache_key": "k", "safety_identifier": "s", "max_tool_calls": 3, "service_tier": "flex",
        "user": "u", "background": false });
    let answer = server.ask(RESPONSES, &response(sent.clone())).await;
    for (member, value) in sent.as_object().expect("an object") {
        assert_eq!(answer[member], *value, "{member}");
    }
    let typed: types::Response = serde_json::from_value(answer).expect("the generated type");
    assert_eq!((typed.prompt_cache_key.as_deref(), typed.max_tool_calls), (Some("k"), Some(3)));
    let answer = server.ask(RESPONSES, &response(json!({}))).await;
    assert_eq!((&answer["service_tier"], &answer["prompt_cache_key"]), (&json!("default"), &Value::Null));
}

#[tokio::test]
async fn service_tier_is_returned_when_requested() {
    let server = start().await;
    for (requested, served) in [("auto", "default"), ("priority", "priority")] {
        let answer = server.ask(CHAT, &chat(json!({ "service_tier": requested }))).await;
        assert_eq!(answer["service_tier"], served);
        let events = server.stream(CHAT, &chat(json!({ "service_tier": requested, "stream": true }))).await;
        assert!(events[..events.len() - 1].iter().all(|event| event.json()["service_tier"] == served));
    }
    assert!(server.ask(CHAT, &chat(json!({}))).await.get("service_tier").is_none());
}

#[tokio::test]
async fn images_count_as_tokens_in_each_protocol() {
    let server = start().await;
    let pixel = "data:image/png;base64,iVBORw0KGgo=";
    let text = |kind: &str| json!({ "type": kind, "text": "Say hi" });
    let tokens = async |path: &str, body: Value, pointer: &str| {
        server.ask(path, &body).await.pointer(pointer).and_then(Value::as_u64).expect("a count")
    };

    let messages = |parts: Value| chat(json!({ "messages": [{ "role": "user", "content": parts }] }));
    let count = async |parts: Value| tokens(CHAT, messages(parts), "/usage/prompt_tokens").await;
    let image =
        |detail: &str| json!({ "type": "image_url", "image_url": { "url": pixel, "detail": detail } });
    let without = count(json!([text("text")])).await;
    assert_eq!(count(json!([text("text"), image("auto")])).await, without + 765);
    assert_eq!(count(json!([text("text"), image("low"), image("high")])).await, without + 85 + 765);

    let items = |parts: Value| response(json!({ "input": [{ "role": "user", "content": parts }] }));
    let count = async |parts: Value| tokens(RESPONSES, items(parts), "/usage/input_tokens").await;
    let image = json!({ "type": "input_image", "image_url": pixel, "detail": "low" });
    let without = count(json!([text("input_text")])).await;
    assert_eq!(count(json!([text("input_text"), image])).await, without + 85);

    let contents = |parts: Value| json!({ "contents": [{ "role": "user", "parts": parts }] });
    let count = async |parts: Value| {
        let used = "/usageMetadata/promptTokenCount";
        let used = tokens("/v1beta/models/model-sol:generateContent", contents(parts.clone()), used).await;
        let counted = tokens("/v1beta/models/model-sol:countTokens", contents(parts), "/totalTokens").await;
        assert_eq!(used, counted);
        used
    };
    let data = json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw0KGgo=" } });
    let without = count(json!([{ "text": "Say hi" }])).await;
    assert_eq!(count(json!([{ "text": "Say hi" }, data])).await, without + 765);
}

/// 2.1, 2.4, 2.5 (ours): lets clients verify that their images arrive.
#[tokio::test]
async fn simulator_reports_the_number_of_images_it_received() {
    let server = start().await;
    let (question, pixel) = ("How many pictures do you see?", "data:image/png;base64,iVBORw0KGgo=");
    let answer = async |path: &str, body: Value, pointer: &str| {
        let answer = server.ask(path, &body).await;
        answer.pointer(pointer).and_then(Value::as_str).expect("a text").to_owned()
    };
    let picture = json!({ "type": "image_url", "image_url": { "url": pixel } });
    let parts = json!([{ "type": "text", "text": question }, picture, picture]);
    let body = chat(json!({ "messages": [{ "role": "user", "content": parts }] }));
    assert_eq!(answer(CHAT, body, "/choices/0/message/content").await, "2 pictures");

    // In chat, images from a tool are in a separate turn.
    let call =
        json!({ "id": "call_1", "type": "function", "function": { "name": "Read", "arguments": "{}" } });
    let body = chat(json!({ "messages": [
        { "role": "user", "content": question },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "call_1", "content": "a picture follows" },
        { "role": "user", "content": [picture] },
    ] }));
    assert_eq!(answer(CHAT, body, "/choices/0/message/content").await, "1 picture");

    let picture = json!({ "type": "input_image", "image_url": pixel });
    let parts = json!([{ "type": "input_text", "text": question }, picture]);
    let body = response(json!({ "input": [{ "role": "user", "content": parts }] }));
    assert_eq!(answer(RESPONSES, body, "/output/0/content/0/text").await, "1 picture");

    let data = |kind: &str| json!({ "inlineData": { "mimeType": kind, "data": "iVBORw0KGgo=" } });
    let parts = json!([{ "text": question }, data("image/png"), data("application/pdf")]);
    let body = json!({ "contents": [{ "role": "user", "parts": parts }] });
    let path = "/v1beta/models/model-sol:generateContent";
    assert_eq!(answer(path, body, "/candidates/0/content/parts/0/text").await, "1 picture");
}

#[tokio::test]
async fn background_response_is_rejected_by_the_simulator() {
    let server = start().await;
    let (status, body) = server.refused(RESPONSES, &response(json!({ "background": true }))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("background")));
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.contains("stream")), "{body}");
}
