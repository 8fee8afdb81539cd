//! Section 2.4, 4 rule 1 and the responses protocol as publicly documented (ours).

use gatewright::types;
use serde_json::{Value, json};

use crate::support::{Event, start};

const PATH: &str = "/v1/responses";
const TOKEN: &str = "COMPAT-51ce77";

fn echo() -> Value {
    json!({ "model": "model-sol", "input": format!("Reply with exactly {TOKEN} and nothing else.") })
}

fn function() -> Value {
    json!({ "type": "function", "name": "compat_echo", "strict": true, "parameters": {
        "type": "object", "properties": { "value": { "type": "string" } }, "required": ["value"],
        "additionalProperties": false } })
}

fn forced() -> Value {
    json!({
        "model": "model-luna", "input": format!("Call compat_echo with the value {TOKEN}."), "tools": [function()],
        "tool_choice": { "type": "function", "name": "compat_echo" },
    })
}

/// Event names in order; runs of deltas count once.
fn sequence(events: &[Event]) -> Vec<String> {
    let (done, events) = events.split_last().expect("events");
    assert_eq!(done.data, "[DONE]");
    let mut names: Vec<String> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let data = event.json();
        assert_eq!(event.name.as_deref(), data["type"].as_str());
        assert_eq!(data["sequence_number"], number);
        serde_json::from_value::<types::ResponseStreamEvent>(data).expect("the generated type");
        let name = event.name.clone().expect("a name");
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names
}

#[tokio::test]
async fn response_has_all_required_fields() {
    let server = start().await;
    let answer = server.ask(PATH, &echo()).await;
    serde_json::from_value::<types::Response>(answer.clone()).expect("the generated type");
    for field in [
        "id",
        "object",
        "created_at",
        "model",
        "output",
        "error",
        "incomplete_details",
        "instructions",
        "metadata",
        "parallel_tool_calls",
        "temperature",
        "top_p",
        "tool_choice",
        "tools",
    ] {
        assert!(answer.get(field).is_some(), "{field}");
    }
    assert_eq!((&answer["object"], &answer["status"]), (&json!("response"), &json!("completed")));
    assert_eq!(answer["output"][0]["content"][0]["text"], TOKEN);
    let usage = &answer["usage"];
    assert!(usage["input_tokens_details"]["cache_write_tokens"].is_u64());
    assert!(usage["output_tokens_details"]["reasoning_tokens"].is_u64());
}

#[tokio::test]
async fn responses_serve_only_the_first_family() {
    // 4 rule 1.
    let server = start().await;
    for model in gatewright::catalog::TEXT_MODELS {
        let body = json!({ "model": model.id, "input": "Say hi" });
        let (status, answer) = server.refused(PATH, &body).await;
        if model.family == "family_one" {
            assert_eq!(status, 200, "{answer}");
        } else {
            let error = &answer["error"];
            assert_eq!(
                (status, &error["code"], &error["param"]),
                (400, &json!("invalid_value"), &json!("model"))
            );
            let message = error["message"].as_str().expect("a message");
            assert!(message.ends_with("use POST /v1/chat/completions"), "{answer}");
        }
    }
}

#[tokio::test]
async fn text_stream_has_the_documented_events_in_order() {
    let server = start().await;
    let mut body = echo();
    body["stream"] = json!(true);
    let events = server.stream(PATH, &body).await;
    assert_eq!(
        sequence(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let data: Vec<Value> = events[..events.len() - 1].iter().map(Event::json).collect();
    let deltas: Vec<&str> = data.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert!(deltas.len() > 1);
    assert_eq!(deltas.concat(), TOKEN);
    let last = data.last().expect("events");
    assert_eq!(last["response"]["output"][0]["content"][0]["text"], TOKEN);
    assert_eq!(last["response"]["id"], data[0]["response"]["id"]);
    assert_eq!(data[0]["response"]["status"], "in_progress");
}

#[tokio::test]
async fn function_call_stream_has_the_documented_events_in_order() {
    let server = start().await;
    let mut body = forced();
    body["stream"] = json!(true);
    let events = server.stream(PATH, &body).await;
    assert_eq!(
        sequence(&events),
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let data: Vec<Value> = events[..events.len() - 1].iter().map(Event::json).collect();
    let deltas: String = data.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(serde_json::from_str::<Value>(&deltas).expect("JSON"), json!({ "value": TOKEN }));
}

#[tokio::test]
async fn forced_function_gets_the_token_and_its_result_is_answered() {
    let server = start().await;
    let answer = server.ask(PATH, &forced()).await;
    let output = answer["output"].as_array().expect("items");
    assert_eq!(output.len(), 1);
    let call = &output[0];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("compat_echo")));
    let arguments: Value = serde_json::from_str(call["arguments"].as_str().expect("text")).expect("JSON");
    assert_eq!(arguments, json!({ "value": TOKEN }));

    let next = json!({ "model": "model-luna", "previous_response_id": answer["id"], "tools": [function()],
        "input": [{ "type": "function_call_output", "call_id": call["call_id"], "output": "done: 42" }] });
    let text =
        server.ask(PATH, &next).await["output"][0]["content"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("compat_echo") && text.contains("done: 42"), "{text}");
}

#[tokio::test]
async fn unknown_items_and_tools_are_accepted() {
    let server = start().await;
    let body = json!({
        "model": "model-terra", "instructions": "You are an agent.", "store": false, "client_metadata": { "a": 1 },
        "tools": [function(), { "type": "web_search" }, { "type": "custom", "name": "patch" }, { "type": "namespace", "name": "x", "tools": [] }],
        "input": [
            { "type": "additional_tools", "tools": [] },
            { "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": "rules" }] },
            { "role": "user", "content": "context" },
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": format!("Reply with exactly {TOKEN}") }] },
            { "type": "something_new", "anything": [1, 2] },
        ],
    });
    let answer = server.ask(PATH, &body).await;
    assert_eq!(answer["output"][0]["content"][0]["text"], TOKEN);
    // Not stored, so it cannot be continued.
    let next = json!({ "model": "model-terra", "input": "x", "previous_response_id": answer["id"] });
    let (status, body) = server.refused(PATH, &next).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("previous_response_id")));
}

#[tokio::test]
async fn truncated_response_is_incomplete() {
    let server = start().await;
    let body =
        json!({ "model": "model-sol", "input": "Count to 50", "max_output_tokens": 4, "stream": true });
    let events = server.stream(PATH, &body).await;
    assert_eq!(sequence(&events).last().map(String::as_str), Some("response.incomplete"));
    let last = events[events.len() - 2].json();
    assert_eq!(last["response"]["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(last["response"]["usage"]["output_tokens"], 4);
}

#[tokio::test]
async fn both_compaction_endpoints_are_served() {
    let server = start().await;
    let input = json!([{ "role": "user", "content": "My name is Ada." }, { "role": "assistant", "content": "Noted." }]);
    let answer = server.ask("/v1/responses/compact", &json!({ "model": "model-sol", "input": input })).await;
    serde_json::from_value::<types::CompactedResponse>(answer.clone()).expect("the generated type");
    assert_eq!(answer["object"], "response.compaction");
    let item = answer["output"].as_array().and_then(|items| items.last()).expect("an item").clone();
    assert_eq!(item["type"], "compaction");

    let mut items = input.as_array().expect("items").clone();
    items.push(json!({ "type": "compaction_trigger" }));
    let events = server.stream(PATH, &json!({ "model": "model-sol", "input": items, "stream": true })).await;
    let done: Vec<Value> = events
        .iter()
        .filter(|event| event.name.as_deref() == Some("response.output_item.done"))
        .map(|event| event.json()["item"].clone())
        .collect();
    assert_eq!(done.len(), 1);
    assert_eq!(done[0]["encrypted_content"], item["encrypted_content"]);

    // The compaction replaces the conversation in later input.
    let goes_on = json!({ "model": "model-sol", "input": [item, { "role": "user", "content": "Say hi" }] });
    let with = server.ask(PATH, &goes_on).await["usage"]["input_tokens"].as_u64();
    let without =
        server.ask(PATH, &json!({ "model": "model-sol", "input": "Say hi" })).await["usage"]["input_tokens"]
            .as_u64();
    assert!(with > without);
    let (status, body) = server.refused("/v1/responses/compact", &json!({ "model": "model-sol" })).await;
    assert_eq!((status, &body["error"]["param"]), (400, &json!("input")));
}
