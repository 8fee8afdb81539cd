//! Tools of the chat and responses protocols (ours; 2.1 and 2.4 show none): custom tools, allowed tools, and requests
//! that contradict themselves.

use gatewright::types;
use serde_json::{Value, json};

use crate::support::{Event, Server, start};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const TOKEN: &str = "COMPAT-77c0de";

fn function(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name, "parameters": { "type": "object" } } })
}

fn custom(name: &str, format: &Value) -> Value {
    json!({ "type": "custom", "custom": { "name": name, "description": "Runs code.", "format": format } })
}

fn chat(content: &str, tools: &Value, choice: &Value) -> Value {
    json!({ "model": "model-cedar", "messages": [{ "role": "user", "content": content }], "tools": tools,
        "tool_choice": choice })
}

fn response(input: &str, tools: &Value, choice: &Value) -> Value {
    json!({ "model": "model-sol", "input": input, "tools": tools, "tool_choice": choice })
}

async fn chat_calls(server: &Server, body: &Value) -> Vec<Value> {
    let answer = server.ask(CHAT, body).await;
    serde_json::from_value::<types::ChatCompletion>(answer.clone()).expect("the generated type");
    answer["choices"][0]["message"]["tool_calls"].as_array().cloned().unwrap_or_default()
}

fn streamed(body: &Value) -> Value {
    let mut body = body.clone();
    body["stream"] = json!(true);
    body
}

fn documents(events: &[Event]) -> Vec<Value> {
    events.iter().filter(|event| event.data != "[DONE]").map(Event::json).collect()
}

/// The response that the client library assembles from a stream.
fn whole(operation: &gatewright::operations::Operation, events: &[Event]) -> Value {
    let mut accumulator = gatewright::Accumulator::new(operation);
    for event in documents(events) {
        accumulator.push(event);
    }
    accumulator.document().expect("events came")
}

#[tokio::test]
async fn custom_tool_is_called_with_text_in_chat() {
    let server = start().await;
    let forced = json!({ "type": "custom", "custom": { "name": "run_code" } });
    let tools = json!([function("other"), custom("run_code", &json!({ "type": "text" }))]);
    let body = chat(&format!("Call run_code with {TOKEN}"), &tools, &forced);
    let calls = chat_calls(&server, &body).await;
    let [call] = calls.as_slice() else { panic!("{calls:?}") };
    assert_eq!((&call["type"], &call["custom"]["name"]), (&json!("custom"), &json!("run_code")));
    assert_eq!(call["custom"]["input"], TOKEN);
    assert!(call.get("function").is_none());

    let events = server.stream(CHAT, &streamed(&body)).await;
    let pieces: Vec<Value> = documents(&events)
        .iter()
        .map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0].clone())
        .filter(Value::is_object)
        .collect();
    assert_eq!(pieces[0]["custom"], json!({ "name": "run_code", "input": "" }));
    assert!(pieces.len() > 2 && pieces[1..].iter().all(|piece| piece["custom"]["input"].is_string()));
    let made = whole(&gatewright::operations::CREATE_CHAT_COMPLETION, &events);
    let call = &made["choices"][0]["message"]["tool_calls"][0];
    assert_eq!((&call["type"], &call["custom"]["input"]), (&json!("custom"), &json!(TOKEN)));
    assert_eq!(made["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn custom_tool_result_is_answered_in_chat() {
    let server = start().await;
    let body = json!({ "model": "model-sol", "messages": [
        { "role": "user", "content": "Use run_code" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "call_1", "type": "custom", "custom": { "name": "run_code", "input": "1+1" } }] },
        { "role": "tool", "tool_call_id": "call_1", "content": "the result is 2" },
    ]});
    let answer = server.ask(CHAT, &body).await;
    let text = answer["choices"][0]["message"]["content"].as_str().expect("text");
    assert!(text.contains("run_code") && text.contains("the result is 2"), "{text}");
}

#[tokio::test]
async fn custom_tool_is_called_with_text_in_responses() {
    let server = start().await;
    let tool = json!({ "type": "custom", "name": "run_code" });
    let body = response(
        &format!("Call run_code with {TOKEN}"),
        &json!([tool]),
        &json!({ "type": "custom", "name": "run_code" }),
    );
    let answer = server.ask(RESPONSES, &body).await;
    serde_json::from_value::<types::Response>(answer.clone()).expect("the generated type");
    let item = &answer["output"][0];
    assert_eq!(
        (&item["type"], &item["name"], &item["input"]),
        (&json!("custom_tool_call"), &json!("run_code"), &json!(TOKEN))
    );
    assert!(item["id"].as_str().is_some_and(|id| id.starts_with("ctc_")));

    let events = server.stream(RESPONSES, &streamed(&body)).await;
    let mut names: Vec<&str> = events.iter().filter_map(|event| event.name.as_deref()).collect();
    names.dedup();
    assert_eq!(
        names,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let documents = documents(&events);
    for event in &documents {
        serde_json::from_value::<types::ResponseStreamEvent>(event.clone()).expect("the generated type");
    }
    let deltas: String = documents.iter().filter_map(|event| event["delta"].as_str()).collect();
    let done = documents.iter().find(|event| event["type"] == "response.custom_tool_call_input.done");
    assert_eq!((deltas.as_str(), &done.expect("the event")["input"]), (TOKEN, &json!(TOKEN)));
    // The client assembles the same from the events before the last one, which repeats the response.
    let made = whole(&gatewright::operations::CREATE_RESPONSE, &events[..events.len() - 3]);
    assert_eq!(
        (&made["output"][0]["input"], &made["output"][0]["name"]),
        (&json!(TOKEN), &json!("run_code"))
    );

    let next = json!({ "model": "model-sol", "previous_response_id": answer["id"], "input": [
        { "type": "custom_tool_call_output", "call_id": item["call_id"], "output": "the result is 2" }] });
    let text = server.ask(RESPONSES, &next).await["output"][0]["content"][0]["text"].clone();
    assert!(text.as_str().is_some_and(|text| text.contains("run_code") && text.contains("the result is 2")));
}

#[tokio::test]
async fn regex_grammar_is_respected() {
    let server = start().await;
    let format =
        json!({ "type": "grammar", "grammar": { "syntax": "regex", "definition": "[0-9]{4}|none" } });
    let body = chat("Call pick", &json!([custom("pick", &format)]), &json!("required"));
    let calls = chat_calls(&server, &body).await;
    let input = calls[0]["custom"]["input"].as_str().expect("text");
    assert!(
        input == "none" || input.len() == 4 && input.bytes().all(|byte| byte.is_ascii_digit()),
        "{input}"
    );
}

#[tokio::test]
async fn allowed_tools_restrict_the_choice() {
    let server = start().await;
    let tools =
        json!([function("get_time"), function("get_place"), custom("get_mood", &json!({ "type": "text" }))]);
    let allow = |mode: &str, tools: Value| json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } });
    let place = json!({ "type": "function", "function": { "name": "get_place" } });
    let mood = json!({ "type": "custom", "custom": { "name": "get_mood" } });
    let called = async |content: &str, choice: Value| -> Vec<String> {
        let calls = chat_calls(&server, &chat(content, &tools, &choice)).await;
        let name = |call: &Value| {
            call[call["type"].as_str().expect("a kind")]["name"].as_str().expect("a name").to_owned()
        };
        calls.iter().map(name).collect()
    };
    let both = json!([place, mood]);
    assert_eq!(
        called("Call get_time, get_place and get_mood", allow("auto", both.clone())).await,
        ["get_place", "get_mood"]
    );
    assert_eq!(called("Call get_time", allow("auto", both.clone())).await, [""; 0]);
    assert_eq!(called("Call get_time", allow("required", json!([mood]))).await, ["get_mood"]);

    let flat =
        json!([{ "type": "function", "name": "get_time" }, { "type": "function", "name": "get_place" }]);
    let choice = json!({ "type": "allowed_tools", "mode": "required", "tools": [{ "type": "function", "name": "get_place" }] });
    let answer = server.ask(RESPONSES, &response("Call get_time", &flat, &choice)).await;
    assert_eq!(answer["output"][0]["name"], "get_place");
}

#[tokio::test]
async fn tool_choice_of_a_missing_tool_is_rejected() {
    let server = start().await;
    let tools = json!([function("a"), custom("b", &json!({ "type": "text" }))]);
    let choices = [
        json!("sometimes"),
        json!({ "type": "function", "function": { "name": "b" } }),
        json!({ "type": "custom", "custom": { "name": "a" } }),
        json!({ "type": "custom", "custom": { "name": "x".repeat(100_000) } }),
        json!({ "type": "allowed_tools", "allowed_tools": { "mode": "auto", "tools": [{ "type": "function", "function": { "name": "c" } }] } }),
    ];
    for choice in choices {
        let (status, body) = server.refused(CHAT, &chat("x", &tools, &choice)).await;
        assert_eq!((status, &body["error"]["param"]), (400, &json!("tool_choice")), "{body}");
        assert!(body.to_string().len() < 1_000, "{body}");
    }
    let (status, body) = server.refused(RESPONSES, &response("x", &json!([]), &json!("required"))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("tool_choice")), "{body}");
}

#[tokio::test]
async fn error_param_names_the_missing_member() {
    let server = start().await;
    let user = json!({ "role": "user", "content": "x" });
    let cases = [
        (json!({ "model": "model-sol" }), "messages", ""),
        (
            json!({ "model": "model-sol", "messages": [{ "role": "user" }] }),
            "messages[0].content",
            "/messages/0",
        ),
        (
            json!({ "model": "model-sol", "messages": [user], "tools": [{ "type": "function" }] }),
            "tools[0].function",
            "/tools/0",
        ),
        (json!({ "model": "model-sol", "messages": [user], "top_logprobs": 1 }), "logprobs", ""),
        (
            json!({ "model": "model-sol", "messages": [user, { "role": "tool", "content": "x" }] }),
            "messages[1].tool_call_id",
            "/messages/1",
        ),
        (
            json!({ "model": "model-sol", "messages": [user, { "role": "tool", "tool_call_id": "c", "content": "x" }] }),
            "messages[1].tool_call_id",
            "/messages/1/tool_call_id",
        ),
    ];
    for (body, param, pointer) in cases {
        let (status, answer) = server.refused(CHAT, &body).await;
        assert_eq!((status, &answer["error"]["param"]), (400, &json!(param)), "{answer}");
        assert_eq!(answer["error"]["violations"][0]["pointer"], pointer, "{answer}");
    }
    let (_, answer) = server
        .refused(
            CHAT,
            &json!({ "model": "model-sol", "messages": [user], "stream_options": { "include_usage": true } }),
        )
        .await;
    let message = answer["error"]["message"].as_str().expect("text");
    assert!(message.contains("stream_options is given, but stream is not true"), "{message}");
}

#[tokio::test]
async fn tool_outputs_must_match_calls_of_the_previous_response() {
    let server = start().await;
    let tools = json!([{ "type": "function", "name": "get_time" }]);
    let made = server.ask(RESPONSES, &response("Call get_time", &tools, &json!("required"))).await;
    let next =
        |input: Value| json!({ "model": "model-sol", "previous_response_id": made["id"], "input": input });
    let output = |id: &Value| json!({ "type": "function_call_output", "call_id": id, "output": "noon" });
    let call_id = &made["output"][0]["call_id"];

    let (status, body) = server.refused(RESPONSES, &next(json!("Never mind."))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("input")), "{body}");
    let (status, body) =
        server.refused(RESPONSES, &next(json!([output(call_id), output(&json!("call_other"))]))).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("input[1].call_id")), "{body}");
    server.ask(RESPONSES, &next(json!([output(call_id)]))).await;
}

#[tokio::test]
async fn grammar_is_limited_to_the_pattern_length() {
    let server = start().await;
    for (length, fits) in [(512, true), (513, false)] {
        let grammar = json!({ "syntax": "regex", "definition": "a".repeat(length) });
        let chat = json!({
            "model": "model-sol", "messages": [{ "role": "user", "content": "Fill it in" }], "tool_choice": "required",
            "tools": [{ "type": "custom", "custom": { "name": "c", "format": { "type": "grammar", "grammar": grammar } } }],
        });
        let mut format = grammar.clone();
        format["type"] = json!("grammar");
        let responses = json!({
            "model": "model-sol", "input": "Fill it in", "tool_choice": "required",
            "tools": [{ "type": "custom", "name": "c", "format": format }],
        });
        for (path, body, pointer, made) in [
            (
                "/v1/chat/completions",
                chat,
                "/tools/0/custom/format/grammar/definition",
                "/choices/0/message/tool_calls/0/custom/input",
            ),
            ("/v1/responses", responses, "/tools/0/format/definition", "/output/0/input"),
        ] {
            let (status, answer) = server.refused(path, &body).await;
            if fits {
                assert_eq!((status, answer.pointer(made)), (200, Some(&grammar["definition"])), "{answer}");
                continue;
            }
            let violation = &answer["error"]["violations"][0];
            assert_eq!((status, &violation["pointer"]), (400, &json!(pointer)), "{answer}");
            assert_eq!(violation["rule"], "schema_pattern");
            assert!(body.pointer(pointer).is_some());
        }
    }
}

#[tokio::test]
async fn legacy_functions_get_a_function_call_in_chat() {
    let server = start().await;
    let city =
        json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let user = json!({ "role": "user", "content": format!("Call get_weather with {TOKEN}") });
    let mut body = json!({ "model": "model-cedar", "messages": [user], "function_call": { "name": "get_weather" },
        "functions": [{ "name": "now" }, { "name": "get_weather", "parameters": city }] });
    let answer = server.ask(CHAT, &body).await;
    serde_json::from_value::<types::ChatCompletion>(answer.clone()).expect("the generated type");
    let choice = &answer["choices"][0];
    let call = &choice["message"]["function_call"];
    assert_eq!((&choice["finish_reason"], &call["name"]), (&json!("function_call"), &json!("get_weather")));
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().expect("a text")).expect("JSON");
    assert!(arguments["city"].is_string(), "{arguments}");
    assert_eq!(choice["message"].get("tool_calls"), None);

    let events = server.stream(CHAT, &streamed(&body)).await;
    let made = whole(&gatewright::operations::CREATE_CHAT_COMPLETION, &events);
    assert_eq!(made["choices"][0]["finish_reason"], "function_call");
    assert_eq!(&made["choices"][0]["message"]["function_call"], call, "{made}");

    let result = json!({ "role": "function", "name": "get_weather", "content": TOKEN });
    let called = json!({ "role": "assistant", "content": null, "function_call": call });
    body["messages"].as_array_mut().expect("messages").extend([called, result]);
    body["function_call"] = json!("none");
    let answer = server.ask(CHAT, &body).await;
    let text = answer["choices"][0]["message"]["content"].as_str().expect("a text");
    assert!(text.contains(TOKEN), "{text}");

    body["function_call"] = json!({ "name": "other" });
    let (status, refused) = server.refused(CHAT, &body).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("function_call")), "{refused}");
}
