//! What a failed call reports: its kind and everything that the gateway sent.

use std::time::Duration;

use gatewright::{Client, ErrorKind, RequestOptions};

use crate::server::{Script, Server};
use crate::{chat_call, chat_request};

#[tokio::test]
async fn every_status_has_its_kind() {
    for (status, kind) in [
        (301, ErrorKind::Status),
        (400, ErrorKind::BadRequest),
        (401, ErrorKind::Authentication),
        (403, ErrorKind::PermissionDenied),
        (404, ErrorKind::NotFound),
        (408, ErrorKind::RequestTimeout),
        (409, ErrorKind::Conflict),
        (413, ErrorKind::PayloadTooLarge),
        (418, ErrorKind::Status),
        (422, ErrorKind::UnprocessableEntity),
        (429, ErrorKind::RateLimit),
        (500, ErrorKind::InternalServer),
        (501, ErrorKind::NotImplemented),
        (529, ErrorKind::InternalServer),
    ] {
        let server =
            Server::start([Script::whole(status, &[], "{}"), Script::whole(status, &[], "{}")]).await;
        let client = server.client();
        let raw = client.call(chat_call()).await.unwrap_err();
        let stream = client.open(chat_call()).await.unwrap_err();
        for error in [raw, stream] {
            assert_eq!((error.kind(), error.status()), (kind, Some(status)));
        }
    }
}

#[tokio::test]
async fn error_carries_everything_the_gateway_returned() {
    let body = r#"{"error":{"message":"No such model.","type":"invalid_request_error","param":"model","code":"model_not_found"}}"#;
    let headers = [("x-request-id", "req_9"), ("retry-after", "7")];
    let server = Server::start([Script::whole(404, &headers, body)]).await;
    let error = server.client().chat().completions().create(&chat_request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.message(), "No such model.");
    assert_eq!(error.operation(), Some("create_chat_completion"));
    assert_eq!((error.status(), error.request_id()), (Some(404), Some("req_9")));
    assert_eq!((error.code(), error.param()), (Some("model_not_found"), Some("model")));
    assert_eq!(error.error_type(), Some("invalid_request_error"));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert_eq!(error.body().unwrap(), body);
    assert_eq!(error.attempts(), 1);
    assert_eq!(error.headers().unwrap()["retry-after"], "7");
    assert!(error.elapsed().unwrap() < Duration::from_secs(10));
}

#[tokio::test]
async fn html_empty_and_broken_json_bodies_retain_status_headers_and_body() {
    let page = "<html><head><title>502 Bad Gateway</title></head></html>";
    for body in [page, "", "{\"error\":", "{\"id\":\"c1\",\"choices\":[", "null", "\u{0}\u{1}"] {
        for status in [200, 400, 502] {
            let headers = [("x-request-id", "req_9"), ("x-served-by", "edge-7"), ("retry-after", "0.5")];
            let script = || Script::whole(status, &headers, body);
            let server = Server::start([script(), script(), script()]).await;
            let client = server.client();
            let typed = client.chat().completions().create(&chat_request()).await.unwrap_err();
            let mut errors = vec![typed];
            // A raw response that begins like JSON is left for the caller to parse.
            errors.push(match client.call(chat_call()).await {
                Ok(response) => response.undecodable(&gatewright::operations::CREATE_CHAT_COMPLETION, "cut"),
                Err(error) => error,
            });
            errors.push(match client.open(chat_call()).await {
                Err(error) => error,
                Ok(mut stream) => stream.next_batch().await.unwrap_err(),
            });
            for error in errors {
                let case = format!("{status} {body:?}: {error:?}");
                assert_eq!((error.status(), error.request_id()), (Some(status), Some("req_9")), "{case}");
                assert_eq!(error.headers().unwrap()["x-served-by"], "edge-7", "{case}");
                assert_eq!(error.attempts(), 1, "{case}");
                let kinds = [ErrorKind::Decode, ErrorKind::StreamTruncated];
                assert_eq!(kinds.contains(&error.kind()), status == 200, "{case}");
                if status != 200 {
                    assert_eq!(error.body().unwrap(), body, "{case}");
                }
            }
        }
    }
}

#[tokio::test]
async fn truncated_response_retains_its_status_and_headers() {
    let server = Server::start([Script::cut(200, &[("x-request-id", "req_9")], "{\"id\":")]).await;
    let error = server.client().call(chat_call()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.status(), error.request_id()),
        (ErrorKind::Connection, Some(200), Some("req_9"))
    );
    assert_eq!(error.headers().unwrap()["x-request-id"], "req_9");
}

#[tokio::test]
async fn unreadable_success_retains_status_request_id_and_body() {
    let headers = [("x-request-id", "req_9"), ("content-type", "text/html")];
    let page = "<html><title>Sign in</title></html>";
    let script = || Script::whole(200, &headers, page);
    let server = Server::start([script(), script(), Script::whole(200, &headers, r#"{"id":1}"#)]).await;
    let client = server.client();
    let raw = client.call(chat_call()).await.unwrap_err();
    let typed = client.chat().completions().create(&chat_request()).await.unwrap_err();
    let other = client.chat().completions().create(&chat_request()).await.unwrap_err();
    for error in [&raw, &typed, &other] {
        assert_eq!((error.kind(), error.status()), (ErrorKind::Decode, Some(200)));
        assert_eq!((error.request_id(), error.attempts()), (Some("req_9"), 1));
    }
    assert_eq!(raw.body().unwrap(), page);
    assert_eq!(typed.body().unwrap(), page);
    assert_eq!(other.body().unwrap(), r#"{"id":1}"#);
}

#[tokio::test]
async fn redirect_is_not_followed_and_the_error_names_its_target() {
    let elsewhere = Server::start([Script::json("{}")]).await;
    let location = format!("{}/v1/chat/completions", elsewhere.url());
    let server = Server::start([Script::whole(307, &[("location", &location)], "")]).await;
    let error = server.client().call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Status, Some(307)));
    assert!(error.message().contains(&location), "{error}");
    assert!(elsewhere.requests().is_empty(), "the key must not go there");
}

#[tokio::test]
async fn refused_connection_names_the_address() {
    // Bound, so that no other program takes the port, but not listening.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let client =
        Client::builder().base_url(format!("http://{address}")).api_key("k").max_retries(0).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.status(), error.attempts()), (ErrorKind::Connection, None, 1));
    assert!(error.message().contains(&address.to_string()), "{error}");
    assert!(std::error::Error::source(&error).is_some());
}

#[tokio::test]
async fn stalled_response_is_a_timeout() {
    let stuck = Script::begin(200, &[("content-type", "application/json")])
        .packet("{")
        .then(crate::server::Step::Hang);
    let server = Server::start([stuck]).await;
    let client = server.builder().idle_timeout(Duration::from_millis(100)).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Timeout, Some(200)));
}

#[tokio::test]
async fn long_headers_do_not_lengthen_the_error_message() {
    let long = "x".repeat(50_000);
    let headers = [("location", &*long), ("x-request-id", &*long), ("request-id", "req_1")];
    let server = Server::start([Script::whole(301, &headers, "")]).await;
    let error = server.client().call(chat_call()).await.unwrap_err();
    assert!(error.message().contains("redirects to xxx"), "{error}");
    assert!(error.to_string().len() < 1000, "{} bytes", error.to_string().len());
    assert_eq!(error.request_id(), Some("req_1"));
}

#[tokio::test]
async fn key_is_redacted_anywhere_in_a_redirect() {
    let key = "canary7-".repeat(13);
    let places: Vec<usize> = (380..=540).step_by(4).collect();
    let answers = places.iter().map(|place| {
        let location = format!("https://h/{}/{key}/{}", "x".repeat(*place), "y".repeat(200));
        Script::whole(301, &[("location", &*location)], "")
    });
    let server = Server::start(answers).await;
    let client = server.builder().api_key(&key).build().unwrap();
    for place in places {
        let error = client.call(chat_call()).await.unwrap_err();
        assert_eq!(error.status(), Some(301));
        assert!(!error.to_string().contains("canary"), "{place}: {error}");
    }
}

#[tokio::test]
async fn bodies_over_the_limit_are_rejected() {
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(2000));
    let server = Server::start([Script::json(&long), Script::json(&long)]).await;
    let client = server.builder().max_body_bytes(1000).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.message().contains("1000 bytes"), "{error}");
    let mut stream = client.open(chat_call()).await.unwrap();
    assert_eq!(stream.next_batch().await.unwrap_err().kind(), ErrorKind::Decode);
}

#[tokio::test]
async fn error_body_is_an_error_with_any_status() {
    let body = r#"{"error":{"message":"No room.","type":"server_error","param":"model","code":"full"}}"#;
    let script = || Script::whole(200, &[("x-request-id", "req_9")], body);
    let server = Server::start([script(), script()]).await;
    let client = server.client();
    let raw = client.call(chat_call()).await.unwrap_err();
    let typed = client.chat().completions().create(&chat_request()).await.unwrap_err();
    for error in [raw, typed] {
        assert_eq!((error.kind(), error.message()), (ErrorKind::Decode, "No room."));
        assert_eq!((error.code(), error.param()), (Some("full"), Some("model")));
        assert_eq!(error.error_type(), Some("server_error"));
        assert_eq!((error.status(), error.request_id()), (Some(200), Some("req_9")));
        assert_eq!(error.operation(), Some("create_chat_completion"));
        assert_eq!(error.body().unwrap(), body);
        assert_eq!(error.attempts(), 1);
    }
    for body in
        [r#"{"object":"error","message":"m"}"#, r#"{"type":"error","message":"m"}"#, r#"{"error":"m"}"#]
    {
        let server = Server::start([Script::whole(200, &[], body)]).await;
        let error = server.client().call(chat_call()).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Decode, "m"), "{body}");
    }
}

#[tokio::test]
async fn response_containing_an_error_member_is_not_an_error() {
    for body in [
        r#"{"id":"r","status":"failed","error":{"message":"too dark"}}"#,
        r#"{"error":null,"choices":[]}"#,
        r#"{"error":{},"choices":[]}"#,
        r#"{"choices":[{"message":{"content":"error"},"finish_reason":"error"}]}"#,
    ] {
        let server = Server::start([Script::whole(200, &[], body)]).await;
        let answer = server.client().call(chat_call()).await.unwrap();
        assert_eq!(answer.body, body);
    }
}

#[tokio::test]
async fn array_instead_of_an_object_is_not_a_response() {
    let script = || Script::whole(200, &[], r#"[{"id":"c"}]"#);
    let server = Server::start([script(), script()]).await;
    let client = server.client();
    let raw = client.call(chat_call()).await.unwrap_err();
    let typed = client.chat().completions().create(&chat_request()).await.unwrap_err();
    for error in [raw, typed] {
        assert_eq!(error.kind(), ErrorKind::Decode);
        assert_eq!(error.message(), "the response cannot be read: it is an array, not an object");
    }
}

#[tokio::test]
async fn no_error_shows_the_key() {
    let server = Server::start([Script::whole(401, &[], "{}"), Script::silence()]).await;
    for _ in 0..2 {
        let error = server.client().call(chat_call()).await.unwrap_err();
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = cause {
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("canary"), "{shown}");
            cause = error.source();
        }
    }
}

#[tokio::test]
async fn keys_quoted_by_the_gateway_are_redacted_from_errors() {
    let body = r#"{"error":{"message":"Incorrect API key: sk-canary, not canary-of-the-call","code":"sk-canary"},"key":"sk-canary"}"#;
    let server = Server::start([Script::whole(401, &[], body), Script::whole(401, &[], body)]).await;
    let client = server.builder().api_key("sk-canary").build().unwrap();
    let options = RequestOptions {
        extra_headers: vec![("authorization".to_owned(), "Bearer canary-of-the-call".to_owned())],
        ..RequestOptions::default()
    };
    let own = client.call(chat_call()).await.unwrap_err();
    assert_eq!(own.message(), "Incorrect API key: [redacted], not canary-of-the-call");
    assert_eq!((own.code(), own.kind()), (Some("[redacted]"), ErrorKind::Authentication));
    let other = client.call(chat_call().options(options)).await.unwrap_err();
    let redacted = body.replace("sk-canary", "[redacted]").replace("canary-of-the-call", "[redacted]");
    assert_eq!(other.body().unwrap(), redacted.as_bytes());
    assert!(!format!("{other} {other:?}").contains("canary"), "{other:?}");
}

#[tokio::test]
async fn gateway_that_accepts_no_connection_hits_the_connect_timeout() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    // The queue has room for one connection, which is never accepted; the next one gets no response.
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _queued = tokio::net::TcpStream::connect(address).await.unwrap();
    let client = Client::builder()
        .base_url(format!("http://{address}"))
        .api_key("k")
        .connect_timeout(Duration::from_millis(200))
        .max_retries(0)
        .build()
        .unwrap();
    let started = std::time::Instant::now();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.status(), error.attempts()), (ErrorKind::Timeout, None, 1));
    assert!(error.message().contains(&format!("timed out connecting to http://{address}")), "{error}");
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

#[test]
fn client_without_a_key_or_with_an_invalid_url_is_not_built() {
    let error = Client::builder().base_url("gateway").api_key("k").build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    let error = Client::builder().api_key(" ").build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn server_without_tls_is_a_connection_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut socket, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let client = Client::builder().base_url(format!("https://{address}")).api_key("k").max_retries(0);
    let error = client.build().unwrap().call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Connection, 1));
}
