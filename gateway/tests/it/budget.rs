//! What a request may cost (ours; section 8 states no bound): client schemas are bounded before they are
//! parsed, and all work for a response shares one budget. None of these requests may crash or hang the process or
//! keep it from serving others; the bounds themselves are tested by counting steps in the simulator's unit tests.

use serde_json::{Map, Value, json};

use crate::support::{Server, start};

/// Every position of a client's schema: path, body, and JSON Pointer of the schema in it.
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

/// The gateway still responds.
async fn lives(server: &Server) {
    let body = json!({ "model": "model-sol", "messages": [{ "role": "user", "content": "Say hi" }] });
    assert_eq!(server.ask("/v1/chat/completions", &body).await["choices"][0]["message"]["content"], "hi");
}

#[tokio::test]
async fn reference_chain_is_rejected_in_every_schema_position() {
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
async fn oversized_schemas_are_rejected_with_the_limit() {
    let server = start().await;
    let large = json!({ "type": "object", "enum": vec!["word"; 30_000] });
    let deep = (0..80).fold(json!({ "type": "object" }), |inner, _| json!({ "properties": { "x": inner } }));
    let long = json!({ "type": "object", "properties": { "x": { "type": "string", "pattern": "a".repeat(2_000) } } });
    // The fold nests twice as many objects: nesting beyond the body limit is rejected as invalid JSON earlier.
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
async fn schemas_of_endless_work_are_rejected_by_the_budget() {
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
    // One position per protocol; the amount of work is tested in the simulator's unit tests.
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
async fn pattern_matching_only_huge_texts_gets_a_near_miss() {
    let server = start().await;
    let schema = json!({ "type": "object", "required": ["x"],
        "properties": { "x": { "type": "string", "pattern": "^(((a{999}){999}){999})$" } } });
    for (path, body, _) in places(&schema) {
        let (status, answer) = server.refused(path, &body).await;
        assert_eq!(status, 200, "{path}: {answer}");
    }
}
