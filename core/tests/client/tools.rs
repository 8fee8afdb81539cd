//! Loops of tool calls: what the model receives, and how a loop ends.

use std::convert::Infallible;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use gatewright::schemars::{self, JsonSchema};
use gatewright::types::ChatMessage;
use gatewright::{Error, ErrorKind, RequestOptions, Tool, ToolRun};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::chat_request;
use crate::server::{Script, Server};
use crate::vectors;

#[derive(Deserialize, JsonSchema)]
struct Place {
    /// In English.
    city: String,
    days: Option<u8>,
}

#[derive(Serialize)]
struct Forecast {
    sky: &'static str,
    days: u8,
}

fn weather() -> Tool {
    Tool::new("weather", "The weather in a city.", async |place: Place| {
        if place.city == "Atlantis" {
            return Err(format!("there is no {}", place.city));
        }
        Ok(Forecast { sky: "clear", days: place.days.unwrap_or(1) })
    })
}

fn echo() -> Tool {
    #[derive(Deserialize, JsonSchema)]
    struct EchoArguments {
        text: Option<String>,
    }
    Tool::new("echo", "Says it again.", async |arguments: EchoArguments| {
        Ok::<_, Infallible>(arguments.text.unwrap_or_else(|| "nothing".to_owned()))
    })
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn answer(message: &Value, finish_reason: &str) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

fn calling(calls: &[Value]) -> Value {
    answer(&json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

fn done() -> Value {
    answer(&json!({"role": "assistant", "content": "Clear."}), "stop")
}

async fn serving(answers: &[Value]) -> Server {
    Server::start(answers.iter().map(|answer| Script::json(&answer.to_string()))).await
}

/// Runs the tools in a loop over these answers.
async fn run(answers: &[Value]) -> (Result<ToolRun, Error>, Server) {
    let server = serving(answers).await;
    let tools = [weather(), echo()];
    let outcome = server.client().chat().completions().run_tools(&chat_request(), &tools).await;
    (outcome, server)
}

fn json_of(messages: &[ChatMessage]) -> Vec<Value> {
    messages.iter().map(|message| serde_json::to_value(message).unwrap()).collect()
}

/// The results that were sent to the model.
fn results(messages: &[ChatMessage]) -> Vec<String> {
    let messages = json_of(messages).into_iter();
    let results = messages.filter(|message| message["role"] == "tool");
    results.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[derive(Deserialize)]
struct KeyCase {
    name: String,
    keys: Vec<String>,
}

#[tokio::test]
async fn each_round_has_an_idempotency_key_of_its_own() {
    for KeyCase { name, keys } in vectors::read("tool_loops/keys.json") {
        let mut answers = vec![calling(&[call("1", "echo", "")]); keys.len()];
        answers[keys.len() - 1] = done();
        let server = serving(&answers).await;
        let idempotency_key = Some(keys[0].clone());
        let client =
            server.client().with_options(RequestOptions { idempotency_key, ..RequestOptions::default() });
        client.chat().completions().run_tools(&chat_request(), &[echo()]).await.unwrap();
        let requests = server.requests();
        let sent = requests.iter().map(|request| request.header("idempotency-key").unwrap());
        assert_eq!(sent.collect::<Vec<_>>(), keys, "{name}");
    }
}

#[tokio::test]
async fn tools_are_described_called_and_their_results_are_sent_until_the_model_answers() {
    let first = calling(&[call("1", "weather", r#"{"city": "Oslo", "days": 2}"#), call("2", "echo", "")]);
    let (outcome, server) = run(&[first.clone(), done()]).await;
    let run = outcome.unwrap();
    assert_eq!((run.text(), run.rounds, run.completion.usage.total_tokens), (Some("Clear."), 1, 2));
    let conversation = json!([
        {"role": "user", "content": "hi"},
        {"role": "assistant", "tool_calls": first["choices"][0]["message"]["tool_calls"]},
        {"role": "tool", "tool_call_id": "1", "content": r#"{"sky":"clear","days":2}"#},
        {"role": "tool", "tool_call_id": "2", "content": "nothing"},
        {"role": "assistant", "content": "Clear."},
    ]);
    assert_eq!(Value::Array(json_of(&run.messages)), conversation);

    let [initial, follow_up] = server.requests().try_into().unwrap();
    let parameters = json!({
        "type": "object",
        "properties": {
            "city": {"description": "In English.", "type": "string"},
            "days": {"type": ["integer", "null"], "minimum": 0, "maximum": 255},
        },
        "required": ["city"],
    });
    let function =
        json!({"name": "weather", "description": "The weather in a city.", "parameters": parameters});
    assert_eq!(initial.json()["tools"][0], json!({"type": "function", "function": function}));
    assert_eq!(initial.json()["tools"].as_array().unwrap().len(), 2);
    assert_eq!(follow_up.json()["messages"].as_array().unwrap()[..], conversation.as_array().unwrap()[..4]);
    assert_eq!(follow_up.json()["tools"], initial.json()["tools"]);
}

#[tokio::test]
async fn tool_error_sent_to_the_model_is_bounded() {
    let long = "x".repeat(5000);
    let calls = [
        call("1", "weather", r#"{"city": "Atlantis"}"#),
        call("2", "weather", r#"{"city": 7}"#),
        call("3", "weather", "not JSON"),
        call("4", "whether", "{}"),
        call("5", &long, "{}"),
    ];
    let (outcome, _server) = run(&[calling(&calls), done()]).await;
    let sent = results(&outcome.unwrap().messages);
    assert_eq!(sent[0], "error: there is no Atlantis");
    assert!(
        sent[1].starts_with("error: the arguments do not fit: $.city: invalid type: integer `7`"),
        "{}",
        sent[1]
    );
    assert!(sent[2].starts_with("error: the arguments do not fit: $: invalid JSON: "), "{}", sent[2]);
    assert_eq!(sent[3], "error: there is no tool 'whether'; there are: weather, echo");
    assert!(sent[4].ends_with('…') && sent[4].len() < 1100, "{}", sent[4]);
}

#[tokio::test]
async fn raised_tool_error_ends_the_loop_with_source_and_conversation() {
    for (arguments, expected) in [(r#"{"city": "Atlantis"}"#, "there is no Atlantis"), ("[", "do not fit")] {
        let server = serving(&[calling(&[call("1", "weather", arguments)])]).await;
        let (client, request, tools) = (server.client(), chat_request(), [weather()]);
        let error =
            client.chat().completions().run_tools(&request, &tools).raise_errors(true).await.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::ToolLoop, Some("tool_failed")));
        assert!(
            error
                .to_string()
                .starts_with("chat.completions.run_tools: status 200: the tool weather failed: ")
        );
        assert!(error.source().unwrap().to_string().contains(expected), "{error:?}");
        let messages: Vec<ChatMessage> = serde_json::from_slice(error.messages().unwrap()).unwrap();
        assert_eq!(messages.len(), 2);
    }
}

#[tokio::test]
async fn raised_tool_error_message_is_bounded() {
    let fails = Tool::new("fail", "Fails.", async |_: Value| Err::<(), _>("x".repeat(100_000)));
    let server = serving(&[calling(&[call("1", "fail", "{}")])]).await;
    let (client, request, tools) = (server.client(), chat_request(), [fails]);
    let error = client.chat().completions().run_tools(&request, &tools).raise_errors(true).await.unwrap_err();
    assert!(error.to_string().len() < 1200, "{} bytes", error.to_string().len());
    assert_eq!(error.source().unwrap().to_string().len(), 100_000);
}

#[tokio::test]
async fn exceeding_max_rounds_is_an_error_with_the_conversation() {
    let again = calling(&[call("1", "echo", "{}")]);
    let server = serving(&[again.clone(), again.clone(), again.clone()]).await;
    let (client, request, tools) = (server.client(), chat_request(), [echo()]);
    let error = client.chat().completions().run_tools(&request, &tools).max_rounds(2).await.unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::ToolLoop, Some("max_rounds")));
    assert!(error.to_string().contains("after 2 rounds; raise max_rounds"), "{error}");
    let messages: Vec<ChatMessage> = serde_json::from_slice(error.messages().unwrap()).unwrap();
    assert_eq!((messages.len(), results(&messages).len()), (6, 2));
    assert!(error.answer().is_some());
    assert_eq!(server.requests().len(), 3);

    let error = client.chat().completions().run_tools(&request, &tools).max_rounds(0).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    let error = client.chat().completions().run_tools(&request, &[echo(), echo()]).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, "two tools are called echo"));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn answer_without_choices_or_with_truncated_calls_is_an_error() {
    let mut none = done();
    none["choices"] = json!([]);
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [call("1", "echo", "{\"te")]});
    let cut = |reason: &str| answer(&calls, reason);
    for (answer, code) in
        [(none, "no_choices"), (cut("length"), "length"), (cut("content_filter"), "content_filter")]
    {
        let (outcome, _server) = run(&[answer]).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::ToolLoop, Some(code)));
    }
}

#[tokio::test]
async fn failed_request_of_a_loop_is_the_error_of_create() {
    let server = serving(&[calling(&[call("1", "echo", "{}")])]).await;
    let tools = [echo()];
    let client = server.builder().timeout(Duration::from_millis(300)).build().unwrap();
    let error = client.chat().completions().run_tools(&chat_request(), &tools).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
}

#[tokio::test]
async fn calls_of_a_round_run_concurrently() {
    #[derive(Deserialize, JsonSchema)]
    struct Nothing {}
    let both = Arc::new(Barrier::new(2));
    let meet = Tool::new("meet", "Waits for the other.", move |_: Nothing| {
        let both = Arc::clone(&both);
        async move {
            both.wait().await;
            Ok::<_, Infallible>("met")
        }
    });
    let server = serving(&[calling(&[call("1", "meet", "{}"), call("2", "meet", "{}")]), done()]).await;
    let (client, request, tools) = (server.client(), chat_request(), [meet]);
    let (limit, chat) = (Duration::from_secs(5), client.chat());
    let looped = chat.completions().run_tools(&request, &tools).into_future();
    let run = tokio::time::timeout(limit, looped).await.expect("they meet").unwrap();
    assert_eq!(results(&run.messages), ["met", "met"]);
}

#[tokio::test]
async fn forced_tool_choice_applies_to_the_first_round_only() {
    for (given, then) in [("required", "auto"), ("none", "none")] {
        let server = serving(&[calling(&[call("1", "echo", "{}")]), done()]).await;
        let (request, tools) = (chat_request().with_tool_choice(given), [echo()]);
        server.client().chat().completions().run_tools(&request, &tools).await.unwrap();
        let choices: Vec<Value> =
            server.requests().iter().map(|one| one.json()["tool_choice"].clone()).collect();
        assert_eq!(choices, [given, then]);
    }
}

#[tokio::test]
async fn on_message_gets_every_added_message_in_order() {
    let server = serving(&[calling(&[call("1", "echo", "{}")]), done()]).await;
    let (client, request, tools) = (server.client(), chat_request(), [echo()]);
    let mut added = Vec::new();
    let run = client
        .chat()
        .completions()
        .run_tools(&request, &tools)
        .on_message(|message| added.push(message.clone()))
        .await
        .unwrap();
    assert_eq!(added, run.messages[1..]);
    assert_eq!(
        added.iter().map(|message| message.role.as_str()).collect::<Vec<_>>(),
        ["assistant", "tool", "assistant"]
    );
}

#[tokio::test]
async fn text_beside_tool_calls_stays_in_the_conversation() {
    let mut message = calling(&[call("1", "echo", "{}")])["choices"][0]["message"].clone();
    message["content"] = json!("Let me see.");
    message["reasoning_content"] = json!("Hm.");
    message["signature"] = json!("abc");
    let (outcome, _server) = run(&[answer(&message, "tool_calls"), done()]).await;
    assert_eq!(json_of(&outcome.unwrap().messages)[1], message);
}
