//! What a request may cost (ours; section 8 states no bound): a client's schemas are bounded before anything is built
//! from them, and everything done for an answer shares one budget. None of these requests may end the process, hang or
//! keep it from answering others; the bounds themselves are held by counting steps, beside the simulator's code.

use serde_json::{Map, Value, json};

use crate::support::{Server, start};

/// Every place where a client's schema comes in: path, body, and JSON Pointer of the schema in it.
fn places(schema: &Value) -> Vec<(&'static str, Value, &'static str)> {
    let chat = |more: Value| {
        merged(
            json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Fill it in" }] }),
            more,
        )
    };
    let responses = |more: Value| merged(json!({ "model": "model-sol", "input": "Fill it in" }), more);
    let native = |more: Value| merged(json!({ "contents": [{ "parts": [{ "text": "Fill it in" }] }] }), more);
    let forced = json!({ "functionCallingConfig": { "mode": "ANY" } });
    let function = |member: &str| json!({ "toolConfig": forced, "tools": [{ "functionDeclarations": [{ "name": "f", member: schema }] }] });
    let generate = "/v1beta/models/model-sol:generateContent";
    vec![
        (
            "/v1/chat/completions",
            chat(
                json!({ "response_format": { "type": "json_schema", "json_schema": { "name": "x", "schema": schema } } }),
            ),
            "/response_format/json_schema/schema",
        ),
        (
            "/v1/chat/completions",
            chat(
                json!({ "tool_choice": "required", "tools": [{ "type": "function", "function": { "name": "f", "parameters": schema } }] }),
            ),
            "/tools/0/function/parameters",
        ),
        (
            "/v1/responses",
            responses(
                json!({ "text": { "format": { "type": "json_schema", "name": "x", "schema": schema } } }),
            ),
            "/text/format/schema",
        ),
        (
            "/v1/responses",
            responses(
                json!({ "tool_choice": "required", "tools": [{ "type": "web_search" }, { "type": "function", "name": "f", "parameters": schema }] }),
            ),
            "/tools/1/parameters",
        ),
        (
            generate,
            native(json!({ "generationConfig": { "responseSchema": schema } })),
            "/generationConfig/responseSchema",
        ),
        (
            generate,
            native(json!({ "generationConfig": { "responseJsonSchema": schema } })),
            "/generationConfig/responseJsonSchema",
        ),
        (generate, native(function("parameters")), "/tools/0/functionDeclarations/0/parameters"),
        (
            generate,
            native(function("parametersJsonSchema")),
            "/tools/0/functionDeclarations/0/parametersJsonSchema",
        ),
        (
            "/v1beta/models/model-sol:countTokens",
            json!({ "generateContentRequest": native(function("parameters")) }),
            "/generateContentRequest/tools/0/functionDeclarations/0/parameters",
        ),
    ]
}

fn merged(mut body: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    body.as_object_mut().expect("an object").extend(more);
    body
}

/// The gateway still answers.
async fn lives(server: &Server) {
    let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Say hi" }] });
    assert_eq!(server.ask("/v1/chat/completions", &body).await["choices"][0]["message"]["content"], "hi");
}

#[tokio::test]
async fn a_chain_of_references_is_refused_wherever_a_schema_comes_in() {
    let server = start().await;
    let chain: Map<String, Value> = (0..20_000)
        .map(|number| {
            (format!("d{number}"), json!({ "not": { "$ref": format!("#/$defs/d{}", number + 1) } }))
        })
        .collect();
    let schema = json!({ "$defs": chain, "type": "object", "not": { "$ref": "#/$defs/d0" } });
    for (path, body, pointer) in places(&schema) {
        let (status, answer) = server.refused(path, &body).await;
        assert_eq!(status, 400, "{path}: {answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        let place = format!("{pointer}/$defs/d1000/not/$ref");
        assert!(message.contains(&place) && message.contains("1000 references"), "{path}: {message}");
        if !path.starts_with("/v1beta") {
            assert_eq!(answer["error"]["violations"][0]["pointer"], place);
            assert_eq!(answer["error"]["violations"][0]["rule"], "schema_references");
        }
    }
    lives(&server).await;
}

#[tokio::test]
async fn schemas_too_large_too_deep_or_with_long_patterns_are_refused_and_named() {
    let server = start().await;
    let large = json!({ "type": "object", "enum": vec!["word"; 30_000] });
    let deep = (0..80).fold(json!({ "type": "object" }), |inner, _| json!({ "properties": { "x": inner } }));
    let long = json!({ "type": "object", "properties": { "x": { "type": "string", "pattern": "a".repeat(2_000) } } });
    // The fold makes objects nested by twice the number: deeper than a body may be is refused as JSON already.
    let deep = deep.pointer(&"/properties/x".repeat(40)).expect("inside").clone();
    for (schema, bound) in [(large, "20000 values"), (deep, "64 levels"), (long, "512")] {
        for (path, body, pointer) in places(&schema) {
            let (status, answer) = server.refused(path, &body).await;
            let message = answer["error"]["message"].as_str().expect("a message");
            assert_eq!(status, 400, "{path}: {message}");
            assert!(message.contains(pointer) && message.contains(bound), "{path}: {message}");
        }
    }
}

#[tokio::test]
async fn schemas_that_ask_for_work_without_end_are_refused_by_the_budget() {
    let server = start().await;
    let names: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
    let itself: Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({ "$ref": "#" }))).collect();
    let recursive = json!({ "type": "object", "properties": itself, "required": names });
    let wide = (0..6).fold(
        json!({ "type": "string" }),
        |inner, _| json!({ "type": "array", "minItems": 64, "items": inner }),
    );
    let wide = json!({ "type": "object", "properties": { "x": wide }, "required": ["x"] });
    // One place of each protocol; what the work comes to is counted beside the simulator's code.
    for (schema, place) in [(&recursive, 0), (&wide, 3), (&wide, 7)] {
        let (path, body, _) = places(schema).swap_remove(place);
        {
            let (status, answer) = server.refused(path, &body).await;
            let message = answer["error"]["message"].as_str().expect("a message");
            assert_eq!(status, 400, "{path}: {message}");
            assert!(message.contains("reduce it"), "{path}: {message}");
            if !path.starts_with("/v1beta") {
                assert_eq!(answer["error"]["code"], "request_too_costly");
            }
        }
    }
    lives(&server).await;
}

#[tokio::test]
async fn a_pattern_that_only_a_huge_text_matches_gets_a_near_miss() {
    let server = start().await;
    let schema = json!({ "type": "object", "required": ["x"],
        "properties": { "x": { "type": "string", "pattern": "^(((a{999}){999}){999})$" } } });
    for (path, body, _) in places(&schema) {
        let (status, answer) = server.refused(path, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
}
