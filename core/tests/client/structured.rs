//! Structured output: what is sent, and what is read of answers.

use gatewright::schemars::{self, JsonSchema};
use gatewright::types::{
    ChatCompletion, GenerateContentRequest, MessageOutputConfig, MessageRequest, MessageTurn,
    NativeGenerationConfig, ResponseRequest, ResponseTextOptions,
};
use gatewright::{Error, ErrorKind, Parsed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::chat_request;
use crate::server::{Script, Server};
use crate::vectors;

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct City {
    name: String,
    population: u32,
    /// In the local language.
    motto: Option<String>,
    rivers: Vec<River>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct River {
    name: String,
}

const OSLO: &str =
    r#"{"name": "Oslo", "population": 717710, "motto": null, "rivers": [{"name": "Akerselva"}]}"#;

fn oslo() -> City {
    let rivers = vec![River { name: "Akerselva".to_owned() }];
    City { name: "Oslo".to_owned(), population: 717_710, motto: None, rivers }
}

/// The schema of [`City`] as it is sent.
fn schema_of_city() -> Value {
    json!({
        "title": "City",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "population": {"type": "integer", "minimum": 0},
            "motto": {"description": "In the local language.", "type": ["string", "null"]},
            "rivers": {"type": "array", "items": {"$ref": "#/$defs/River"}},
        },
        "required": ["name", "population", "motto", "rivers"],
        "additionalProperties": false,
        "$defs": {
            "River": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": false,
            },
        },
    })
}

fn completion(message: &Value, finish_reason: &str) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    })
}

fn completion_of(text: &str) -> Value {
    completion(&json!({"role": "assistant", "content": text}), "stop")
}

async fn parsed(answer: &Value) -> Result<Parsed<ChatCompletion, City>, Error> {
    let server = Server::start([Script::json(&answer.to_string())]).await;
    server.client().chat().completions().parse::<City>(&chat_request()).await
}

#[tokio::test]
async fn chat_parse_sends_the_strict_schema_and_returns_a_value() {
    let server = Server::start([Script::json(&completion_of(OSLO).to_string())]).await;
    let answer = server.client().chat().completions().parse::<City>(&chat_request()).await.unwrap();
    assert_eq!(answer.value(), Some(&oslo()));
    assert_eq!((answer.status(), answer.usage.total_tokens, answer.refusal()), (200, 2, None));
    assert_eq!(answer.into_value(), Some(oslo()));

    let [request] = server.requests().try_into().unwrap();
    let format = json!({"name": "City", "schema": schema_of_city(), "strict": true});
    assert_eq!(request.json()["response_format"], json!({"type": "json_schema", "json_schema": format}));
}

pub(crate) fn response(status: &str, output: &Value, details: &Value) -> Value {
    json!({
        "id": "r", "object": "response", "created_at": 1, "status": status, "model": "m", "output": output,
        "error": null, "incomplete_details": details, "instructions": null, "metadata": null,
        "parallel_tool_calls": true, "temperature": null, "top_p": null, "tool_choice": "auto", "tools": [],
    })
}

fn output(part: &Value) -> Value {
    json!([
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "message", "id": "msg", "role": "assistant", "status": "completed", "content": [part]},
    ])
}

#[tokio::test]
async fn responses_parse_keeps_other_text_options_and_returns_a_value() {
    let answer = response("completed", &output(&json!({"type": "output_text", "text": OSLO})), &Value::Null);
    let server = Server::start([Script::json(&answer.to_string())]).await;
    let options = ResponseTextOptions::default().with_verbosity("low");
    let request = ResponseRequest::new("m", "Oslo?").with_text(options);
    let answer = server.client().responses().parse::<City>(&request).await.unwrap();
    assert_eq!(answer.value(), Some(&oslo()));

    let [request] = server.requests().try_into().unwrap();
    let format = json!({"type": "json_schema", "name": "City", "schema": schema_of_city(), "strict": true});
    assert_eq!(request.json()["text"], json!({"verbosity": "low", "format": format}));
}

#[tokio::test]
async fn refusal_is_neither_a_value_nor_an_error() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I can't."});
    let answer = parsed(&completion(&message, "stop")).await.unwrap();
    assert_eq!((answer.value(), answer.refusal()), (None, Some("I can't.")));

    let refused = output(&json!({"type": "refusal", "refusal": "I can't."}));
    let server =
        Server::start([Script::json(&response("completed", &refused, &Value::Null).to_string())]).await;
    let answer =
        server.client().responses().parse::<City>(&ResponseRequest::new("m", "Oslo?")).await.unwrap();
    assert_eq!((answer.value(), answer.refusal()), (None, Some("I can't.")));
}

#[tokio::test]
async fn tool_calling_answer_has_no_value() {
    let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    for content in [Value::Null, json!("")] {
        let message = json!({"role": "assistant", "content": content, "tool_calls": [call]});
        let answer = parsed(&completion(&message, "tool_calls")).await.unwrap();
        assert_eq!((answer.value(), answer.choices[0].message.tool_calls.len()), (None, 1));
    }
}

#[tokio::test]
async fn every_choice_has_its_value() {
    let mut answer = completion_of(OSLO);
    let mut second = answer["choices"][0].clone();
    second["index"] = 1.into();
    answer["choices"].as_array_mut().unwrap().push(second);
    let answer = parsed(&answer).await.unwrap();
    assert_eq!(answer.values(), [Some(oslo()), Some(oslo())]);
}

/// What an error says: its code, its place, and parts of its message.
fn assert_says(error: &Error, code: &str, place: Option<&str>, words: &[&str]) {
    assert_eq!((error.kind(), error.code(), error.param()), (ErrorKind::StructuredOutput, Some(code), place));
    for word in words {
        assert!(error.to_string().contains(word), "{word} is not in: {error}");
    }
}

#[tokio::test]
async fn truncated_answer_is_an_error_with_advice_and_the_answer() {
    let message = json!({"role": "assistant", "content": "{\"name\": \"Os"});
    let cut = completion(&message, "length");
    let error = parsed(&cut).await.unwrap_err();
    assert_says(
        &error,
        "length",
        None,
        &["no City", "raise max_tokens", "begins: {\"name\": \"Os", "chat.completions.parse: "],
    );
    assert_eq!(serde_json::from_slice::<Value>(error.answer().unwrap()).unwrap(), cut);
    assert_eq!(error.status(), Some(200));

    let error = parsed(&completion(&message, "content_filter")).await.unwrap_err();
    assert_says(&error, "content_filter", None, &["content filter", "change the prompt"]);
}

#[tokio::test]
async fn incomplete_or_failed_response_is_an_error_with_its_reason() {
    let part = || output(&json!({"type": "output_text", "text": "{\"name\": \"Os"}));
    let mut failed = response("failed", &json!([]), &Value::Null);
    failed["error"] = json!({"code": "server_error", "message": "no berth"});
    let cases = [
        (
            response("incomplete", &part(), &json!({"reason": "max_output_tokens"})),
            "length",
            "raise max_output_tokens",
        ),
        (
            response("incomplete", &part(), &json!({"reason": "content_filter"})),
            "content_filter",
            "change the prompt",
        ),
        (failed, "failed", "no berth"),
    ];
    for (answer, code, words) in cases {
        let server = Server::start([Script::json(&answer.to_string())]).await;
        let request = ResponseRequest::new("m", "Oslo?");
        let error = server.client().responses().parse::<City>(&request).await.unwrap_err();
        assert_says(&error, code, None, &[words, "responses.parse: "]);
        assert!(error.answer().is_some());
    }
}

#[tokio::test]
async fn text_that_is_not_json_or_does_not_fit_is_an_error_with_place_and_beginning() {
    let error = parsed(&completion_of("Oslo is the capital of Norway.")).await.unwrap_err();
    assert_says(
        &error,
        "invalid_json",
        Some("$"),
        &["no City: $: invalid JSON: ", "begins: Oslo is the capital of Norway."],
    );

    let error =
        parsed(&completion_of(r#"{"name": "Oslo", "population": "many", "motto": null}"#)).await.unwrap_err();
    let words = ["no City: $.population: invalid type: string \"many\", expected u32", "its text begins: {"];
    assert_says(&error, "mismatch", Some("$.population"), &words);

    let deep = OSLO.replace("\"Akerselva\"", "7");
    let error = parsed(&completion_of(&deep)).await.unwrap_err();
    assert_says(&error, "mismatch", Some("$.rivers[0].name"), &["expected a string"]);

    for empty in [json!(""), Value::Null] {
        let answer = completion(&json!({"role": "assistant", "content": empty}), "stop");
        assert_says(&parsed(&answer).await.unwrap_err(), "invalid_json", Some("$"), &["its text is empty"]);
    }

    let error = parsed(&completion_of(&format!("{OSLO} That is all."))).await.unwrap_err();
    assert_says(&error, "invalid_json", Some("$"), &["trailing characters"]);
}

#[tokio::test]
async fn parse_error_shows_bounded_text_without_secrets() {
    let error = parsed(&completion_of(&format!("sk-canary {}", "x".repeat(100_000)))).await.unwrap_err();
    assert!(error.to_string().len() < 1000, "{} bytes", error.to_string().len());
    assert!(!format!("{error} {error:?}").contains("sk-canary"), "{error}");
}

/// The type of the vectors.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
pub(crate) struct Town {
    pub(crate) name: String,
    population: i64,
    districts: Vec<District>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct District {
    name: String,
}

#[derive(Deserialize)]
struct AnswerCase {
    name: String,
    operation: String,
    answer: Value,
    parsed: Option<Value>,
    refusal: Option<String>,
    error: Option<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    code: String,
    path: Option<String>,
    reason: Option<String>,
    shows: Option<String>,
    hides: Option<String>,
}

/// What was read of an answer: the value and the refusal.
type Outcome = Result<(Option<Value>, Option<String>), Error>;

fn outcome<A>(parsed: Result<Parsed<A, Town>, Error>) -> Outcome {
    let answer = parsed?;
    let value = answer.value().map(|town| serde_json::to_value(town).unwrap());
    Ok((value, answer.refusal().map(str::to_owned)))
}

#[tokio::test]
async fn answers_become_values_or_errors_as_the_vectors_say() {
    for case in vectors::read::<AnswerCase>("structured/answers.json") {
        let mut answer = match case.operation.as_str() {
            // Members that the types require and that no case is about.
            "create_response" => response("completed", &json!([]), &Value::Null),
            _ => json!({}),
        };
        answer.as_object_mut().unwrap().extend(case.answer.as_object().unwrap().clone());
        let server = Server::start([Script::json(&answer.to_string())]).await;
        let client = server.client();
        let outcome = match case.operation.as_str() {
            "create_chat_completion" => {
                outcome(client.chat().completions().parse::<Town>(&chat_request()).await)
            }
            "create_response" => {
                outcome(client.responses().parse::<Town>(&ResponseRequest::new("m", "Oslo?")).await)
            }
            "create_message" => outcome(client.messages().parse::<Town>(&message_request()).await),
            "generate_content" => {
                let request = GenerateContentRequest::new("Oslo?");
                outcome(client.native().parse::<Town>("m", &request).await)
            }
            other => panic!("{}: no parse for {other}", case.name),
        };
        let Some(expected) = case.error else {
            assert_eq!(outcome.unwrap(), (case.parsed, case.refusal), "{}", case.name);
            continue;
        };
        let error = outcome.expect_err(&case.name);
        assert_eq!(error.kind(), ErrorKind::StructuredOutput, "{}", case.name);
        assert_eq!(error.code(), Some(&*expected.code), "{}", case.name);
        // A language may find the place within the value.
        let (place, within) = (expected.path.as_deref(), error.param());
        assert_eq!(
            place.is_some(),
            within.is_some_and(|within| within.starts_with(place.unwrap_or_default())),
            "{}",
            case.name
        );
        let message = error.to_string();
        let path = expected.path.map(|path| format!(": {path}"));
        let reason = expected.reason.map(|reason| format!("(reason: {reason})"));
        for words in [path, reason, expected.shows].into_iter().flatten() {
            assert!(message.contains(&words), "{}: {words} is not in: {message}", case.name);
        }
        assert!(expected.hides.is_none_or(|hidden| !message.contains(&hidden)), "{}: {message}", case.name);
        let shown: Value = serde_json::from_slice(error.answer().unwrap()).unwrap();
        assert_eq!(shown.get("id"), answer.get("id"), "{}", case.name);
    }
}

fn message_request() -> MessageRequest {
    MessageRequest::new("m", 9, vec![MessageTurn::user("Oslo?")])
}

#[tokio::test]
async fn messages_and_native_take_the_format_beside_other_members() {
    let message = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "text", "text": OSLO}],
    });
    let native = json!({"candidates": [{"content": {"parts": [{"text": OSLO}]}}]});
    let scripts = [&message, &native].map(|answer| Script::json(&answer.to_string()));
    let server = Server::start(scripts).await;
    let client = server.client();

    let config = MessageOutputConfig::default().with_effort("low");
    let request = message_request().with_output_config(config);
    assert_eq!(client.messages().parse::<City>(&request).await.unwrap().into_value(), Some(oslo()));
    let config = NativeGenerationConfig::default().with_temperature(1.0);
    let request = GenerateContentRequest::new("Oslo?").with_generation_config(config);
    assert_eq!(client.native().parse::<City>("m", &request).await.unwrap().into_value(), Some(oslo()));

    let sent: Vec<Value> =
        server.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    let format = json!({"type": "json_schema", "schema": schema_of_city()});
    assert_eq!(sent[0]["output_config"], json!({"effort": "low", "format": format}));
    let config = json!({
        "temperature": 1.0,
        "responseMimeType": "application/json",
        "responseJsonSchema": schema_of_city(),
    });
    assert_eq!(sent[1]["generationConfig"], config);
}

#[tokio::test]
async fn type_without_a_strict_schema_is_rejected_before_sending() {
    #[derive(Debug, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "its schema is read")]
    enum Knot {
        Tied {
            /// Once more.
            knot: Box<Knot>,
        },
    }
    let server = Server::start([]).await;
    let error = server.client().chat().completions().parse::<Knot>(&chat_request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(server.requests().is_empty());
}

pub(crate) fn chunk(text: &str) -> String {
    let delta = json!({"content": text});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": delta, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

pub(crate) fn end(finish_reason: &str) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": {}, "finish_reason": finish_reason}]});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

#[tokio::test]
async fn streamed_value_grows_into_the_typed_value() {
    let pieces = [
        "{\"name\": \"Os",
        "lo\", \"popu",
        "lation\": 717710, \"motto\": null, \"rivers\": [{",
        "\"name\": \"Akerselva\"}]}",
    ];
    let script = pieces.iter().fold(Script::events(), |script, piece| script.packet(chunk(piece)));
    let server = Server::start([script.packet(end("stop")).end()]).await;
    let client = server.client();
    let mut stream = client.chat().completions().parse_stream::<City>(&chat_request()).await.unwrap();
    let mut grown = Vec::new();
    while let Some(chunk) = stream.try_next().await.unwrap() {
        if chunk.text().is_some() {
            grown.push(stream.partial().unwrap().clone());
        }
    }
    let second = json!({"name": "Oslo"});
    let third = json!({"name": "Oslo", "population": 717_710, "motto": null, "rivers": [{}]});
    let whole: Value = serde_json::from_str(OSLO).unwrap();
    assert_eq!(grown, [json!({"name": "Os"}), second, third, whole]);
    assert_eq!(stream.raw().request_id(), Some("req_stream"));
    assert_eq!(stream.finish().await.unwrap().value(), Some(&oslo()));

    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.json()["stream"], true);
    assert_eq!(request.json()["response_format"]["json_schema"]["schema"], schema_of_city());
}

#[tokio::test]
async fn response_stream_value_is_from_the_last_message() {
    let event = |event: Value| format!("data: {event}\n\n");
    let message = |index: u32, text: &str| {
        let item = |content: Value| json!({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content});
        let added =
            json!({"type": "response.output_item.added", "output_index": index, "item": item(json!([]))});
        let delta = json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0, "delta": text});
        (
            event(added) + &event(delta),
            item(json!([{"type": "output_text", "text": text, "annotations": []}])),
        )
    };
    let ((first, first_message), (second, second_message)) = (message(0, "Let me see."), message(1, OSLO));
    let whole = response("completed", &json!([first_message, second_message]), &Value::Null);
    let last = event(json!({"type": "response.completed", "response": whole}));
    let server = Server::start([Script::events().packet(first).packet(second).packet(last).end()]).await;
    let client = server.client();
    let request = ResponseRequest::new("m", "Oslo?");
    let mut stream = client.responses().parse_stream::<City>(&request).await.unwrap();
    while stream.try_next().await.unwrap().is_some() {}
    assert_eq!(stream.partial(), Some(&serde_json::from_str(OSLO).unwrap()));
    assert_eq!(stream.finish().await.unwrap().into_value(), Some(oslo()));
}

#[tokio::test]
async fn truncated_stream_is_an_error_and_its_partial_value_stays_readable() {
    let script = || Script::events().packet(chunk("{\"name\": \"Os"));
    let server = Server::start([script().packet(end("length")).end(), script().end()]).await;
    let client = server.client();
    let mut stream = client.chat().completions().parse_stream::<City>(&chat_request()).await.unwrap();
    while stream.try_next().await.unwrap().is_some() {}
    assert_eq!(stream.partial(), Some(&json!({"name": "Os"})));
    assert_says(&stream.finish().await.unwrap_err(), "length", None, &["raise max_tokens"]);

    let stream = client.chat().completions().parse_stream::<City>(&chat_request()).await.unwrap();
    assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::StreamTruncated);
}

#[derive(Deserialize)]
struct StreamCase {
    name: String,
    /// Whether a structured value is requested.
    format: bool,
    chunks: Vec<Value>,
    events: Vec<Value>,
}

#[tokio::test]
async fn streamed_value_grows_as_in_the_vectors() {
    for case in vectors::read::<StreamCase>("structured/events.json").into_iter().filter(|case| case.format) {
        let chunks = case.chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        let body = chunks.collect::<String>() + "data: [DONE]\n\n";
        let server = Server::start([Script::events().packet(body).end()]).await;
        let client = server.client();
        let mut stream = client.chat().completions().parse_stream::<Town>(&chat_request()).await.unwrap();
        let mut grown = Vec::new();
        while let Some(chunk) = stream.try_next().await.unwrap() {
            if chunk.text().is_some() {
                grown.push(json!(stream.partial()));
            }
        }
        let deltas = case.events.iter().filter(|event| event["type"] == "content.delta");
        let expected: Vec<Value> = deltas.map(|event| event["parsed"].clone()).collect();
        assert_eq!(grown, expected, "{}", case.name);
    }
}
