//! The options of one call and of all calls of a client.

use std::time::{Duration, Instant};

use gatewright::{Call, Client, ErrorKind, RequestOptions, operations};
use serde_json::{Map, Value, json};

use crate::server::{Script, Server, Step};
use crate::{COMPLETION, chat_call, chat_request};

fn members(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn extra_body_members_are_added_or_replace_others() {
    let done = Script::events()
        .packet("data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
        .end();
    let server =
        Server::start([Script::json(COMPLETION), Script::json(COMPLETION), done, Script::json("{}")]).await;
    let client = server.client().with_options(RequestOptions {
        extra_body: members(&json!({"tenant": "blue", "top_k": 1})),
        ..RequestOptions::default()
    });
    let options = RequestOptions {
        extra_body: members(&json!({"top_k": 40, "model": "other"})),
        ..RequestOptions::default()
    };
    client.call(chat_call().body(r#"{"model":"m","n":1.0}"#).options(options)).await.unwrap();
    client.chat().completions().create(&chat_request()).await.unwrap();
    client.open(chat_call().body("{}")).await.unwrap();
    // No body is created for an operation that has none.
    client.models().list().await.unwrap_err();
    let bodies: Vec<String> =
        server.requests().into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect();
    assert_eq!(bodies[0], r#"{"model":"other","n":1.0,"tenant":"blue","top_k":40}"#);
    let typed: Value = serde_json::from_str(&bodies[1]).unwrap();
    assert_eq!(
        (&typed["tenant"], &typed["top_k"], &typed["model"]),
        (&json!("blue"), &json!(1), &json!("model-sol"))
    );
    assert_eq!(bodies[2], r#"{"stream":true,"tenant":"blue","top_k":1}"#);
    assert_eq!(bodies[3], "");
}

#[tokio::test]
async fn extra_members_do_not_change_whether_a_response_streams() {
    let done = Script::events().packet("data: [DONE]\n\n").end();
    let server = Server::start([Script::json(COMPLETION), done]).await;
    let client = |stream: Value| {
        server.client().with_options(RequestOptions {
            extra_body: members(&json!({ "stream": stream })),
            ..RequestOptions::default()
        })
    };
    for stream in [json!(true), json!(null), json!("yes")] {
        let error = client(stream).chat().completions().create(&chat_request()).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::InvalidRequest, 0));
        assert_eq!(
            error.message(),
            "extra_body cannot set \"stream\" of a call for a whole response; to stream, give stream to \
             chat.completions.create itself (in Rust, call chat.completions.stream)"
        );
    }
    let error = client(json!(false)).open(chat_call()).await.unwrap_err();
    assert!(
        error.message().starts_with("extra_body cannot set \"stream\" of a call for a stream"),
        "{error}"
    );
    // A member that agrees with the calling method is harmless.
    client(json!(false)).call(chat_call()).await.unwrap();
    client(json!(true)).open(chat_call()).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn callers_idempotency_key_is_sent_with_every_attempt() {
    let busy = Script::whole(503, &[("retry-after-ms", "1")], "{}");
    let server = Server::start([busy, Script::json(COMPLETION)]).await;
    let options = RequestOptions {
        idempotency_key: Some("order-7".to_owned()),
        max_retries: Some(1),
        ..RequestOptions::default()
    };
    server.client().call(chat_call().options(options)).await.unwrap();
    let requests = server.requests();
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys, [Some("order-7"), Some("order-7")]);

    for key in ["", "a\nb"] {
        let options = RequestOptions { idempotency_key: Some(key.to_owned()), ..RequestOptions::default() };
        let error = server.client().call(chat_call().options(options)).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::InvalidRequest, 0));
    }
}

#[tokio::test]
async fn clients_headers_and_query_are_sent_with_every_call_unless_overridden() {
    let server = Server::start((0..3).map(|_| Script::json(r#"{"object":"list","data":[]}"#))).await;
    let client = server
        .builder()
        .default_headers([("X-Tenant", "blue"), ("x-zone", "a")])
        .default_query([("trace", "1"), ("trace", "2"), ("zone", "a")])
        .build()
        .unwrap();
    client.models().list().await.unwrap();
    let options = RequestOptions {
        extra_headers: pairs(&[("x-tenant", "red")]),
        extra_query: pairs(&[("trace", "3")]),
        ..RequestOptions::default()
    };
    client.call(Call::new(&operations::LIST_MODELS).options(options.clone())).await.unwrap();
    client.with_options(options).models().list().await.unwrap();
    let requests = server.requests();
    assert_eq!(requests[0].line, "GET /v1/models?trace=1&trace=2&zone=a HTTP/1.1");
    assert_eq!((requests[0].header("x-tenant"), requests[0].header("x-zone")), (Some("blue"), Some("a")));
    for request in &requests[1..] {
        assert_eq!(request.line, "GET /v1/models?zone=a&trace=3 HTTP/1.1");
        assert_eq!((request.header("x-tenant"), request.header("x-zone")), (Some("red"), Some("a")));
    }
}

#[test]
fn invalid_default_headers_are_reported_when_the_client_is_built() {
    for header in [("content-length", "1"), ("x y", "1"), ("x-secret", "can\nary")] {
        let error = Client::builder().api_key("k").default_headers([header]).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(!format!("{error:?}").contains("ary"), "{error:?}");
    }
}

#[tokio::test]
async fn call_overrides_the_clients_validation_setting() {
    let server = Server::start([Script::json("{}")]).await;
    let body = r#"{"model":"image_model_1","prompt":"a kite","n":2}"#;
    let call = |validate| {
        let options = RequestOptions { validate: Some(validate), ..RequestOptions::default() };
        Call::new(&operations::CREATE_IMAGE).body(body).options(options)
    };
    let error = server.client().call(call(true)).await.unwrap_err();
    assert_eq!((error.kind(), error.violations().len()), (ErrorKind::InvalidRequest, 1));
    let checking = server.builder().validate(true).build().unwrap();
    checking.call(call(false)).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn validation_includes_extra_members() {
    let server = Server::start([]).await;
    let options = RequestOptions {
        validate: Some(true),
        extra_body: members(&json!({"n": 2})),
        ..RequestOptions::default()
    };
    let call = Call::new(&operations::CREATE_IMAGE).body(r#"{"model":"image_model_1","prompt":"a kite"}"#);
    let error = server.client().call(call.options(options)).await.unwrap_err();
    assert_eq!(error.violations()[0].pointer, "/n");
}

#[tokio::test]
async fn calls_options_bound_silence() {
    let stuck = || Script::begin(200, &[("content-type", "application/json")]).packet("{").then(Step::Hang);
    let quiet = || Script::events().packet("data: {\"choices\":[]}\n\n").then(Step::Hang);
    let mut pinging = Script::events().packet("data: {\"choices\":[]}\n\n");
    for _ in 0..100 {
        pinging = pinging.packet(": ping\n\n").then(Step::Pause(Duration::from_millis(20)));
    }
    let server = Server::start([stuck(), quiet(), pinging]).await;
    let client = server.builder().idle_timeout(Duration::from_mins(5)).build().unwrap();
    let short = Some(Duration::from_millis(400));
    let idle = RequestOptions { idle_timeout: short, ..RequestOptions::default() };
    let event = RequestOptions { event_timeout: short, ..RequestOptions::default() };
    let started = Instant::now();

    let error = client.call(chat_call().options(idle.clone())).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);

    let typed = client.with_options(idle);
    let mut stream = typed.chat().completions().stream(&chat_request()).await.unwrap();
    assert!(stream.try_next().await.unwrap().is_some());
    assert_eq!(stream.try_next().await.unwrap_err().kind(), ErrorKind::Timeout);

    let mut stream = client.open(chat_call().options(event)).await.unwrap();
    assert!(stream.next_batch().await.unwrap().is_some());
    let error = stream.next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("no event"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
