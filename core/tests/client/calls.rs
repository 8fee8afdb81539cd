//! What is sent and what is returned when calls succeed.

use gatewright::{Call, ErrorKind, RequestOptions, operations};
use serde_json::json;

use crate::server::{Script, Server};
use crate::{CHAT_BODY, COMPLETION, chat_call, chat_request};

#[tokio::test]
async fn raw_call_sends_the_common_headers_and_returns_the_bytes() {
    let server = Server::start([Script::whole(
        200,
        &[("content-type", "application/json"), ("x-request-id", "req_7")],
        COMPLETION,
    )])
    .await;
    let response = server.client().call(chat_call()).await.unwrap();
    assert_eq!(response.body, COMPLETION);
    assert_eq!((response.status, response.attempts), (200, 1));
    assert_eq!(response.request_id(), Some("req_7"));

    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer sk-canary"));
    assert_eq!(request.header("content-type"), Some("application/json"));
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(request.header("user-agent"), Some(concat!("gatewright/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(request.header("x-gatewright-retry-count"), Some("0"));
    assert_eq!(request.header("idempotency-key").map(str::len), Some(36));
    assert_eq!(request.header("api-version"), None);
    assert_eq!(request.body, CHAT_BODY.as_bytes());
}

#[tokio::test]
async fn typed_call_sends_the_same_request_and_retains_unknown_members() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let completion = server.client().chat().completions().create(&chat_request()).await.unwrap();
    assert_eq!(completion.choices[0].message.content.as_deref(), Some("hello"));
    assert_eq!(completion.extra["vendor"], json!({"kept": true}));
    assert_eq!((completion.status(), completion.attempts()), (200, 1));

    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(request.header("authorization"), Some("Bearer sk-canary"));
    assert_eq!(request.header("api-version"), None);
    assert_eq!(request.json(), serde_json::from_str::<serde_json::Value>(CHAT_BODY).unwrap());
}

#[tokio::test]
async fn get_carries_neither_body_nor_idempotency_key() {
    let server = Server::start([Script::json(r#"{"object":"list","data":[]}"#)]).await;
    server.client().models().list().await.unwrap();
    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.line, "GET /v1/models HTTP/1.1");
    assert_eq!(request.header("content-type"), None);
    assert_eq!(request.header("idempotency-key"), None);
}

#[tokio::test]
async fn path_query_and_options_reach_the_wire() {
    let server = Server::start([Script::json("{}"), Script::json("{}")]).await;
    let client = server.client().with_options(RequestOptions {
        extra_headers: vec![("x-tenant".to_owned(), "blue".to_owned())],
        ..RequestOptions::default()
    });
    let options = RequestOptions {
        extra_headers: vec![("User-Agent".to_owned(), "kite/1".to_owned())],
        extra_query: vec![("trace".to_owned(), "a b&c".to_owned())],
        ..RequestOptions::default()
    };
    client
        .call(Call::new(&operations::GENERATE_CONTENT).path("model", "a:b").body("{}").options(options))
        .await
        .unwrap();
    client.call(Call::new(&operations::LIST_NATIVE_MODELS).query("pageSize", "2")).await.unwrap();
    let [first, second] = server.requests().try_into().unwrap();
    assert_eq!(first.line, "POST /v1beta/models/a%3Ab:generateContent?trace=a+b%26c HTTP/1.1");
    assert_eq!(first.header("x-tenant"), Some("blue"));
    assert_eq!(first.header("user-agent"), Some("kite/1"));
    assert_eq!(second.line, "GET /v1beta/models?pageSize=2 HTTP/1.1");
    assert_eq!(second.header("x-tenant"), Some("blue"));
    // The second request arrived on the first one's connection.
    assert_eq!(second.connection, 0);
}

#[tokio::test]
async fn base_url_prefix_is_retained_and_its_version_dropped() {
    let server = Server::start([Script::json(r#"{"object":"list","data":[]}"#)]).await;
    let client = server.builder().base_url(format!("{}/gate/v1/", server.url())).build().unwrap();
    client.models().list().await.unwrap();
    assert_eq!(server.requests()[0].line, "GET /gate/v1/models HTTP/1.1");
}

#[tokio::test]
async fn hostile_path_parameters_never_reach_the_wire() {
    let server = Server::start([]).await;
    let client = server.client();
    for value in ["", ".", "..", "../admin", "..\\..\\admin", "a/b", "a\\b", "%2e%2e", "a%2Fb", "a\0", "a\nb"]
    {
        let raw = client.call(Call::new(&operations::RETRIEVE_VIDEO).path("task_id", value)).await;
        let typed = client.videos().generations().retrieve(value).await;
        for error in [raw.unwrap_err(), typed.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{value:?}");
            assert_eq!((error.operation(), error.attempts()), (Some("retrieve_video"), 0), "{value:?}");
        }
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn invalid_call_is_rejected_before_it_is_sent() {
    let server = Server::start([]).await;
    let client = server.client();
    let header = |name: &str, value: &str| RequestOptions {
        extra_headers: vec![(name.to_owned(), value.to_owned())],
        ..RequestOptions::default()
    };
    let model = |operation| Call::new(operation).path("model", "m").body("{}");
    let refused = [
        client.call(Call::new(&operations::CREATE_CHAT_COMPLETION)).await.map(drop),
        client.call(chat_call().body("[1]")).await.map(drop),
        client.call(chat_call().body("{} {}")).await.map(drop),
        client.call(Call::new(&operations::LIST_MODELS).body("{}")).await.map(drop),
        client.call(chat_call().query("page", "1")).await.map(drop),
        client.call(chat_call().path("model", "m")).await.map(drop),
        client.call(model(&operations::STREAM_GENERATE_CONTENT)).await.map(drop),
        client.open(model(&operations::GENERATE_CONTENT)).await.map(drop),
        client.call(chat_call().options(header("content-length", "1"))).await.map(drop),
        client.call(chat_call().options(header("x y", "1"))).await.map(drop),
        client.call(chat_call().options(header("x-secret", "sk-can\nary"))).await.map(drop),
    ];
    for (index, refused) in refused.into_iter().enumerate() {
        let error = refused.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{index}: {error}");
        assert!(!format!("{error} {error:?}").contains("ary"), "{index}: {error:?}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn streaming_switch_follows_the_calling_method() {
    let done = || {
        Script::events()
            .packet("data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
            .end()
    };
    let server = Server::start([done(), done(), done(), Script::json("{}")]).await;
    let client = server.client();
    for body in [r#" { "model":"m", "n": 1.0}"#, r#"{"stream":true}"#, r#"{"stream":null,"n":1}"#] {
        client.open(chat_call().body(body)).await.unwrap();
    }
    client.call(chat_call().body(r#"{"stream":true}"#)).await.unwrap();
    let bodies: Vec<String> =
        server.requests().into_iter().map(|request| String::from_utf8(request.body).unwrap()).collect();
    assert_eq!(
        bodies,
        [
            r#" {"stream":true, "model":"m", "n": 1.0}"#,
            r#"{"stream":true}"#,
            r#"{"stream":true,"n":1}"#,
            r#"{"stream":false}"#
        ]
    );
    assert_eq!(server.requests()[0].header("accept"), Some("text/event-stream, application/json"));
}

#[tokio::test]
async fn limits_are_checked_before_sending_only_if_enabled_and_only_for_catalog_models() {
    let server = Server::start([Script::json("{}"), Script::json("{}")]).await;
    let body = |model: &str| {
        format!(r#"{{"model":"{model}","prompt":"a kite","n":2,"style":"vivid","size":"1x1"}}"#)
    };
    let call = |model: &str| Call::new(&operations::CREATE_IMAGE).body(body(model));

    let error =
        server.builder().validate(true).build().unwrap().call(call("image_model_4")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert_eq!(error.violations().len(), 1);
    let error =
        server.builder().validate(true).build().unwrap().call(call("image_model_1")).await.unwrap_err();
    let pointers: Vec<&str> = error.violations().iter().map(|violation| violation.pointer.as_str()).collect();
    assert_eq!(pointers, ["/n", "/size"]);
    assert!(error.violations().iter().all(|violation| violation.section == "2.8"), "{error}");

    server.builder().validate(true).build().unwrap().call(call("another-model")).await.unwrap();
    server.client().call(call("image_model_1")).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn delete_sends_only_its_method_and_path() {
    let server = Server::start([Script::json(r#"{"id":"resp_1","object":"response","deleted":true}"#)]).await;
    let deleted = server.client().responses().delete("resp_1").await.unwrap();
    assert!(deleted.deleted && deleted.id == "resp_1");
    let [request] = server.requests().try_into().unwrap();
    assert_eq!(request.line, "DELETE /v1/responses/resp_1 HTTP/1.1");
    assert_eq!(request.header("content-type"), None);
}

#[tokio::test]
async fn query_parameter_bounds_are_checked_before_sending_if_enabled() {
    let server = Server::start([Script::json("{}"), Script::json("{}")]).await;
    let call = |limit: &str| {
        Call::new(&operations::LIST_RESPONSE_INPUT_ITEMS)
            .path("response_id", "resp_1")
            .query("limit", limit)
            .query("order", "asc")
    };
    let client = server.builder().validate(true).build().unwrap();
    for (limit, rule) in [("0", "minimum"), ("101", "maximum"), ("many", "type")] {
        let error = client.call(call(limit)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        let [violation] = error.violations() else { panic!("{error}") };
        assert_eq!((violation.pointer.as_str(), violation.rule.as_str()), ("/limit", rule));
    }
    client.call(call("100")).await.unwrap();
    server.client().call(call("0")).await.unwrap();
    let lines: Vec<String> = server.requests().into_iter().map(|request| request.line).collect();
    assert_eq!(
        lines,
        [
            "GET /v1/responses/resp_1/input_items?limit=100&order=asc HTTP/1.1",
            "GET /v1/responses/resp_1/input_items?limit=0&order=asc HTTP/1.1",
        ]
    );
}

#[tokio::test]
async fn stream_only_options_are_validated_as_sent() {
    // stream_options requires stream (ours; 2.1): the method that opens the stream sets it.
    let events = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start([Script::events().packet(events).end()]).await;
    let client = server.builder().validate(true).build().unwrap();
    let body = r#"{"model":"model-sol","messages":[{"role":"user","content":"hi"}],"stream_options":{"include_usage":true}}"#;
    let call = || Call::new(&operations::CREATE_CHAT_COMPLETION).body(body);
    let error = client.call(call()).await.unwrap_err();
    assert!(error.message().contains("stream_options is given, but stream is not true"), "{error}");
    client.open(call()).await.unwrap();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn compressed_responses_are_decoded() {
    // {"ok":true} in gzip.
    let gzip = [
        0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xab, 0x56, 0xca, 0xcf, 0x56, 0xb2, 0x2a,
        0x29, 0x2a, 0x4d, 0xad, 0x05, 0x00, 0x90, 0x5f, 0xd4, 0xa7, 0x0b, 0x00, 0x00, 0x00,
    ];
    let headers = [("content-type", "application/json"), ("content-encoding", "gzip")];
    let server = Server::start([Script::whole(200, &headers, gzip)]).await;
    let response = server.client().call(chat_call()).await.unwrap();
    assert_eq!(response.body, r#"{"ok":true}"#);
    let accepted = server.requests()[0].header("accept-encoding").unwrap_or_default().to_owned();
    for encoding in ["gzip", "br", "zstd", "deflate"] {
        assert!(accepted.contains(encoding), "{accepted}");
    }
}

#[tokio::test]
async fn no_debug_output_shows_the_key() {
    let server = Server::start([]).await;
    let shown = format!("{:?} {:?}", server.builder(), server.client());
    assert!(shown.contains(&server.url()) && !shown.contains("canary"), "{shown}");
}
