//! What is rejected, what is not, and how long a rejection is: the vectors over a socket, bounds, the model's endpoint.

use serde_json::{Value, json};

use crate::support::start;

/// Cases of requests.json and tools.json in tests/vectors/limits that cost the simulator little: those without images
/// and videos, and of the others those about null.
fn vectors() -> Vec<Value> {
    let cases = |file: &str| {
        let file = format!("{}/../tests/vectors/limits/{file}", env!("CARGO_MANIFEST_DIR"));
        let mut vectors: Value =
            serde_json::from_slice(&std::fs::read(file).expect("the vectors")).expect("JSON");
        let Value::Array(cases) = vectors["cases"].take() else { panic!("cases") };
        cases
    };
    let is_cheap = |case: &Value| {
        let media = matches!(case["operation"].as_str(), Some("create_video" | "create_image"));
        !media
            || case["violations"] != json!([])
            || case["name"].as_str().is_some_and(|name| name.contains("null"))
    };
    // Valid, but there is nothing to compact, which only the gateway knows.
    let has_work = |case: &Value| case["operation"] != "compact_response" || !case["body"]["input"].is_null();
    // Nothing was stored that it could continue.
    let is_first =
        |case: &Value| case["violations"] != json!([]) || case["body"]["previous_response_id"].is_null();
    cases("requests.json")
        .into_iter()
        .chain(cases("tools.json"))
        .filter(|case| is_cheap(case) && has_work(case) && is_first(case))
        .collect()
}

fn path_of(operation: &str) -> &'static str {
    match operation {
        "create_chat_completion" => "/v1/chat/completions",
        "create_response" => "/v1/responses",
        "compact_response" => "/v1/responses/compact",
        "generate_content" => "/v1beta/models/model-luna:generateContent",
        "stream_generate_content" => "/v1beta/models/model-luna:streamGenerateContent?alt=sse",
        "count_tokens" => "/v1beta/models/model-luna:countTokens",
        "create_video" => "/v1/videos/generations",
        "create_embedding" => "/v1/embeddings",
        "create_rerank" => "/v1/rerank",
        "create_moderation" => "/v1/moderations",
        "create_speech" => "/v1/audio/speech",
        "create_image" => "/v1/images/generations",
        other => panic!("no path for {other}"),
    }
}

#[tokio::test]
async fn gateway_accepts_and_rejects_the_vectors() {
    // 2.1, 2.4 to 2.6, 2.8; null for an optional member is absence (gaps.md).
    let server = start().await;
    let (mut accepted, mut refused) = (0, 0);
    for case in vectors() {
        let path = path_of(case["operation"].as_str().expect("an operation"));
        let (status, text) = text_of(server.post(path, &case["body"])).await;
        if case["violations"] == json!([]) {
            // A model outside the catalog satisfies the rules, too, but doesn't exist.
            let is_unknown = status == 404 && text.contains("there is no model");
            // So does a format that providers may know, and the simulator doesn't (gaps.md).
            let is_unknown =
                is_unknown || status == 400 && text.contains("the format \\\"new\\\" is unknown; use");
            assert!(status == 200 || is_unknown, "{}: {status} {text}", case["name"]);
            accepted += 1;
        } else {
            assert!(matches!(status, 400 | 404), "{}: {status} {text}", case["name"]);
            refused += 1;
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} accepted, {refused} refused");
}

#[tokio::test]
async fn at_most_a_hundred_violations_are_reported() {
    // 7 rule 4: the bound of the response is ours.
    let server = start().await;
    let user = json!({ "role": "user", "content": "hi" });
    for body in [
        json!({ "model": "model-sol", "messages": vec![0; 20_000] }),
        json!({ "model": "model-sol", "messages": [user], "tools": vec![json!({}); 30_000] }),
    ] {
        let (status, text) = text_of(server.post("/v1/chat/completions", &body)).await;
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_value")));
        assert_eq!(answer["error"]["violations"].as_array().map(Vec::len), Some(100));
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.starts_with("at least 101 rules are broken, the first 20: "), "{message}");
        assert!(text.len() < 40_000, "{} bytes", text.len());
    }
    let native = json!({ "contents": [{ "parts": vec![json!({}); 20_000] }] });
    let (status, text) = text_of(server.post(path_of("generate_content"), &native)).await;
    let answer: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["error"]["details"][0]["fieldViolations"].as_array().map(Vec::len), Some(100));
    assert!(status == 400 && text.len() < 40_000, "{status}, {} bytes", text.len());
}

#[tokio::test]
async fn error_does_not_repeat_large_request_values() {
    let server = start().await;
    let large = "x".repeat(1_000_000);
    let messages = json!([{ "role": "user", "content": "hi" }]);
    let named = json!([{ "type": "function", "function": { "name": "f" } }]);
    for (path, body) in [
        ("/v1/chat/completions", json!({ "model": large, "messages": messages })),
        (
            "/v1/chat/completions",
            json!({ "model": "model-sol", "messages": [{ "role": large, "content": "hi" }] }),
        ),
        (
            "/v1/chat/completions",
            json!({
                "model": "model-sol", "messages": messages, "tools": named,
                "tool_choice": { "type": "function", "function": { "name": large } },
            }),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "model-sol", "messages": messages, "metadata": { large.clone(): 7 } }),
        ),
        ("/v1/responses", json!({ "model": "model-sol", "input": "hi", "previous_response_id": large })),
        ("/v1/videos/generations", json!({ "model": large, "prompt": "x" })),
        ("/v1/videos/generations", json!({ "model": "video_model_1", "prompt": "x", "resolution": large })),
        ("/v1/videos/generations", json!({ "model": "video_model_1", "prompt": "x", "webhook_url": large })),
        ("/v1/images/generations", json!({ "model": "image_model_1", "prompt": "x", "size": large })),
        ("/v1/images/generations", json!({ "model": large, "prompt": "x" })),
    ] {
        let (status, text) = text_of(server.post(path, &body)).await;
        assert!(matches!(status, 400 | 404) && text.len() < 40_000, "{path}: {status}, {} bytes", text.len());
    }
}

#[tokio::test]
async fn model_of_another_endpoint_is_rejected_with_the_right_endpoint() {
    // 4 rules 1 and 2.
    let server = start().await;
    for (path, body, endpoint) in [
        (
            "/v1/chat/completions",
            json!({ "model": "image_model_1", "messages": [{ "role": "user", "content": "hi" }] }),
            "/v1/images/generations",
        ),
        ("/v1/responses", json!({ "model": "video_model_1", "input": "hi" }), "/v1/videos/generations"),
        (
            "/v1/videos/generations",
            json!({ "model": "image_model_2", "prompt": "x" }),
            "/v1/images/generations",
        ),
        (
            "/v1/images/generations",
            json!({ "model": "video_model_2", "prompt": "x" }),
            "/v1/videos/generations",
        ),
    ] {
        let (status, answer) = server.refused(path, &body).await;
        assert_eq!((status, &answer["error"]["code"]), (404, &json!("model_not_found")), "{path}");
        assert_eq!(answer["error"]["param"], "model");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.ends_with(&format!("use POST {endpoint}")), "{message}");
    }
    // The wrong model is not the only error: all are reported.
    let (status, answer) =
        server.refused("/v1/responses", &json!({ "model": "video_model_1", "input": 7 })).await;
    assert_eq!((status, answer["error"]["violations"].as_array().map(Vec::len)), (400, Some(2)));
    // The endpoint serves one family; a model of another family exists, but not here.
    for (path, model) in [("/v1/responses", "model-breeze"), ("/v1/responses/compact", "model-cedar")] {
        let (status, answer) = server.refused(path, &json!({ "model": model, "input": "hi" })).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("invalid_value")), "{path}");
        assert_eq!(answer["error"]["param"], "model");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.ends_with("use POST /v1/chat/completions"), "{message}");
    }
}

async fn text_of(request: reqwest::RequestBuilder) -> (u16, String) {
    let response = request.send().await.expect("an answer");
    (response.status().as_u16(), response.text().await.expect("a body"))
}
