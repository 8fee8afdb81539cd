//! Clients that use functions instead of tools: what they send reaches every protocol as tools and calls, and what comes
//! back has the function form (2.2 of the specification names neither; `spec/gaps.md`).

use serde_json::{Value, json};

use super::{DEFAULTS, PROTOCOLS, events, response_context};
use crate::conversation::{
    Answer, Choice, Conversation, Delta, FinishReason, Input, JsonPointer, Part, PartKind, Protocol, ToolCall,
};
use crate::{ResponseContext, has_functions};

fn conversation(request: &Value) -> Conversation {
    Protocol::Chat.request_in(request.clone(), "m", false).expect("a request")
}

fn request(messages: &Value) -> Value {
    json!({ "model": "m", "functions": [{ "name": "f" }, { "name": "g" }], "messages": messages })
}

fn call(name: &str) -> Value {
    json!({ "role": "assistant", "content": null, "function_call": { "name": name, "arguments": "{}" } })
}

fn result(name: &str, content: &str) -> Value {
    json!({ "role": "function", "name": name, "content": content })
}

/// The text of each result in a request, and the name of the called tool.
fn results(conversation: &Conversation) -> Vec<(Option<&str>, &str)> {
    let parts = conversation.turns.iter().flat_map(|turn| &turn.parts);
    let results = parts.filter_map(|part| match &part.kind {
        PartKind::Result(result) => Some(result),
        _ => None,
    });
    let text = |part: &Part| matches!(&part.kind, PartKind::Text(_)).then(|| part.kind.clone());
    let results = results.map(|result| {
        let content = match result.parts.first().map(|part| &part.kind) {
            Some(PartKind::Text(content)) => content.as_str(),
            _ => "",
        };
        assert!(result.parts.iter().all(|part| text(part).is_some()));
        (result.name.as_deref(), content)
    });
    results.collect()
}

#[test]
fn function_result_matches_the_latest_call_of_its_function() {
    let user = json!({ "role": "user", "content": "Hi" });
    let messages =
        json!([user, call("f"), result("f", "1"), call("g"), result("g", "2"), call("f"), result("f", "3")]);
    let conversation = conversation(&request(&messages));
    assert_eq!(results(&conversation), [(Some("f"), "1"), (Some("g"), "2"), (Some("f"), "3")]);
    let outgoing = Protocol::Messages.request_out(&conversation, DEFAULTS);
    assert_eq!(outgoing.dropped, [] as [JsonPointer; 0]);
    let ids = |kind: &str, member: &str| -> Vec<Value> {
        let messages = outgoing.body["messages"].as_array().into_iter().flatten();
        let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
        blocks.filter(|block| block["type"] == kind).map(|block| block[member].clone()).collect()
    };
    assert_eq!(ids("tool_use", "id"), ids("tool_result", "tool_use_id"));
    assert_eq!(ids("tool_use", "id").len(), 3);
}

#[test]
fn function_result_without_a_call_is_rejected_with_its_pointer() {
    let user = json!({ "role": "user", "content": "Hi" });
    for messages in [
        json!([user, result("f", "1")]),
        json!([user, call("f"), result("g", "1")]),
        json!([user, call("f"), result("f", "1"), result("f", "2")]),
    ] {
        let refused =
            Protocol::Chat.request_in(request(&messages), "m", false).expect_err("a result without a call");
        let place = format!("/messages/{} ", messages.as_array().map_or(0, Vec::len) - 1);
        assert!(refused.to_string().starts_with(&place), "{refused}");
    }
}

#[test]
fn legacy_functions_disable_parallel_calls_where_supported() {
    let conversation = conversation(&request(&json!([{ "role": "user", "content": "Hi" }])));
    let value_at = |protocol: Protocol, at: &str| {
        let outgoing = protocol.request_out(&conversation, DEFAULTS);
        assert_eq!(outgoing.dropped, [] as [JsonPointer; 0], "{protocol:?}");
        outgoing.body.pointer(at).cloned()
    };
    assert_eq!(value_at(Protocol::Responses, "/parallel_tool_calls"), Some(false.into()));
    assert_eq!(value_at(Protocol::Messages, "/tool_choice/disable_parallel_tool_use"), Some(true.into()));
    assert_eq!(value_at(Protocol::Native, "/parallel_tool_calls"), None);
    assert_eq!(value_at(Protocol::Chat, "/parallel_tool_calls"), None, "it is not the client's word");
}

fn client() -> ResponseContext {
    ResponseContext { has_functions: true, ..response_context("m") }
}

fn called(id: &str, name: &str, arguments: &str) -> Part {
    let input = Input::Json(arguments.to_owned());
    let call = ToolCall { id: id.to_owned(), name: name.to_owned(), input, signature: None };
    Part { at: "".into(), kind: PartKind::Call(call), cache: None }
}

#[test]
fn answer_uses_function_call_and_keeps_further_calls() {
    for (source, _) in PROTOCOLS {
        let answer = |parts: Vec<Part>| {
            let choice = Choice {
                at: "/choices/0".into(),
                parts,
                citations: Vec::new(),
                end: Some(FinishReason::ToolCalls),
                logprobs: None,
            };
            let answer = Answer { source, choices: vec![choice], ..Answer::default() };
            Protocol::Chat.answer_out(answer, &client())["choices"][0].take()
        };
        let one = answer(vec![called("a", "f", r#"{"x":1}"#)]);
        assert_eq!(one["finish_reason"], "function_call", "{source:?}");
        assert_eq!(one["message"]["function_call"], json!({ "name": "f", "arguments": r#"{"x":1}"# }));
        assert_eq!(one["message"].get("tool_calls"), None);
        let two = answer(vec![called("a", "f", "{}"), called("b", "g", "{}")]);
        assert_eq!(two["message"]["function_call"]["name"], "f");
        let rest = json!([{ "id": "b", "type": "function", "function": { "name": "g", "arguments": "{}" } }]);
        assert_eq!(two["message"]["tool_calls"], rest);
    }
}

#[test]
fn stream_uses_function_call_deltas() {
    let mut writer = Protocol::Chat.stream_out(client());
    let mut bytes = Vec::new();
    let call = |id: &str, name: &str| Delta::Call {
        choice: 0,
        call: 0,
        id: id.to_owned(),
        name: name.to_owned(),
        custom: false,
        signature: None,
    };
    for delta in [
        call("a", "f"),
        Delta::CallInput { choice: 0, call: 0, text: "{}".to_owned() },
        Delta::CallDone { choice: 0, call: 0 },
        Delta::Ended { choice: 0, end: FinishReason::ToolCalls },
        Delta::Done,
    ] {
        writer.delta(delta, &mut bytes);
    }
    let events = events(std::str::from_utf8(&bytes).expect("text"));
    let of = |name: &str| -> Vec<Value> {
        let choices = events.as_array().into_iter().flatten().map(|event| &event["data"]["choices"][0]);
        choices
            .map(|choice| choice.pointer(name).cloned().unwrap_or_default())
            .filter(|value| !value.is_null())
            .collect()
    };
    assert_eq!(
        of("/delta/function_call"),
        [json!({ "name": "f", "arguments": "" }), json!({ "arguments": "{}" })]
    );
    assert_eq!(of("/finish_reason"), ["function_call"]);
    assert!(of("/delta/tool_calls").is_empty());
}

#[test]
fn functions_given_with_tools_are_treated_as_tools() {
    let mut both = request(&json!([{ "role": "user", "content": "Hi" }]));
    assert!(has_functions(&conversation(&both)));
    both["tools"] = json!([{ "type": "function", "function": { "name": "t" } }]);
    assert!(!has_functions(&conversation(&both)));
}
