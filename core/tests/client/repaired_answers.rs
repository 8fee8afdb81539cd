//! Whole answers that are nearly JSON, with tests/vectors/answers/repaired.json.

use gatewright::{Call, ErrorKind, operations};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat_request;
use crate::server::{Script, Server};
use crate::vectors;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    operation: String,
    body: Value,
    answer: String,
    document: Option<Value>,
    error: Option<String>,
}

#[tokio::test]
async fn answers_that_are_nearly_json_are_repaired() {
    for case in vectors::read::<Case>("answers/repaired.json") {
        let Case { name, body, answer, document, .. } = case;
        let operation = operations::by_id(&case.operation).expect("an operation");
        let server = Server::start([Script::json(&answer)]).await;
        // A call that validates reads the answer, too.
        let client = server.builder().validate(true).build().expect("a client");
        let called = client.call(Call::new(operation).body(body.to_string())).await;
        let read = called.and_then(|raw| raw.parse::<Value>(operation));
        match case.error {
            None => assert_eq!(Some(read.expect(&name).into_inner()), document, "{name}"),
            Some(message) => {
                let error = read.expect_err(&name);
                assert_eq!(error.kind(), ErrorKind::Decode, "{name}");
                assert!(error.message().contains(&message), "{name}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn typed_answer_is_that_of_the_repaired_text() {
    let answer = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
        "message":{"role":"assistant","content":"a\ud83d"},"finish_reason":"stop",
        "logprobs":{"content":[{"token":"a","logprob":-Infinity,"bytes":null,"top_logprobs":[]}]}}],
        "usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let server = Server::start([Script::json(answer)]).await;
    let completion = server.client().chat().completions().create(&chat_request()).await.unwrap();
    assert_eq!(completion.text(), Some("a\u{FFFD}"));
    assert_eq!(json!(completion.choices[0].logprobs)["content"][0]["logprob"], Value::Null);
}
