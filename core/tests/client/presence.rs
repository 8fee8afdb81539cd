//! Sections 2.7 and 2.11: the members that responses promise, tested over a socket with
//! tests/vectors/answers/presence.json.

use gatewright::types::{ImageGenerationRequest, VideoGenerationRequest};
use gatewright::{Call, Client, Error, ErrorKind, operations};
use serde::Deserialize;
use serde_json::Value;

use crate::chat_request;
use crate::server::{Script, Server};
use crate::vectors;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "section")]
    _section: String,
    operation: String,
    body: Option<Value>,
    answer: Value,
    violations: Vec<Value>,
}

impl Case {
    async fn raw(&self, client: &Client) -> Result<(), Error> {
        let operation = operations::by_id(&self.operation).expect("an operation");
        let mut call = Call::new(operation);
        for name in operation.path_parameters {
            call = call.path(*name, "m");
        }
        if let Some(body) = &self.body {
            call = call.body(body.to_string());
        }
        client.call(call).await.map(drop)
    }

    async fn typed(&self, client: &Client) -> Result<(), Error> {
        match self.operation.as_str() {
            "create_video" => {
                let request = VideoGenerationRequest::new("m", "p");
                client.videos().generations().create(&request).await.map(drop)
            }
            "retrieve_video" => client.videos().generations().retrieve("m").await.map(drop),
            "create_image" => {
                client.images().generate(&ImageGenerationRequest::new("m", "p")).await.map(drop)
            }
            "create_chat_completion" => client.chat().completions().create(&chat_request()).await.map(drop),
            other => panic!("{other} is not called here"),
        }
    }
}

fn check(case: &Case, called: Result<(), Error>) {
    if case.violations.is_empty() {
        return called.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
    let error = called.expect_err(&case.name);
    let found: Vec<Value> = error.violations().iter().map(|one| serde_json::to_value(one).unwrap()).collect();
    assert_eq!((error.kind(), &found), (ErrorKind::Decode, &case.violations), "{}", case.name);
    assert_eq!(
        (error.status(), error.operation()),
        (Some(200), Some(case.operation.as_str())),
        "{}",
        case.name
    );
    let has_message = error.violations().first().is_some_and(|one| error.message().contains(&one.message));
    assert!(error.body().is_some() && has_message, "{}: {error}", case.name);
}

/// 2.7, 2.11: both front ends, with `validate` set on the client and on the call.
#[tokio::test]
async fn responses_are_checked_for_required_members_if_a_call_validates() {
    for case in vectors::read::<Case>("answers/presence.json") {
        let answer = || Script::json(&case.answer.to_string());
        let server = Server::start([answer(), answer(), answer()]).await;
        let client = server.builder().validate(true).build().expect("a client");
        check(&case, case.raw(&client).await);
        check(&case, case.typed(&client).await);
        // Without `validate`, a response that lacks members is returned unchanged.
        case.raw(&server.client()).await.unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}
