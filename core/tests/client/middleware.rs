//! The caller's middleware around every attempt.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gatewright::{Attempt, BoxFuture, Error, ErrorKind, Middleware, Outcome, RequestOptions};
use http::{HeaderName, HeaderValue};

use crate::server::{Script, Server};
use crate::{CHAT_BODY, COMPLETION, chat_call, chat_request};

type Notes = Arc<Mutex<Vec<String>>>;

/// Records what it sees under its name, and sends the name along.
struct Noting {
    name: &'static str,
    notes: Notes,
}

impl Middleware for Noting {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let seen = format!("{} before {} of {}", self.name, attempt.number(), attempt.operation().id);
            self.notes.lock().unwrap().push(seen);
            let trail = attempt
                .headers()
                .get("x-trail")
                .map_or(String::new(), |trail| format!("{},", trail.to_str().unwrap()));
            let trail = HeaderValue::try_from(trail + self.name).unwrap();
            attempt.headers_mut().insert("x-trail", trail);
            Ok(())
        })
    }

    fn after<'a>(&'a self, attempt: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let came = match (outcome.status(), outcome.error()) {
                (Some(status), None) => status.to_string(),
                (status, Some(error)) => format!("{} {status:?}", error.kind().name()),
                (None, None) => "nothing".to_owned(),
            };
            let id = outcome.request_id().unwrap_or("-");
            let length = outcome.body().map(bytes::Bytes::len);
            let seen = format!("{} after {}: {came} {id} {length:?}", self.name, attempt.number());
            self.notes.lock().unwrap().push(seen);
            Ok(())
        })
    }
}

/// Does one thing before each attempt.
struct Before(fn(&mut Attempt) -> Result<(), Error>);

impl Middleware for Before {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move { (self.0)(attempt) })
    }
}

/// Keeps the debug output of an attempt.
struct Showing(Arc<Mutex<String>>);
impl Middleware for Showing {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            assert_eq!(attempt.body(), Some(CHAT_BODY.as_bytes()));
            assert_eq!(attempt.method().as_str(), "POST");
            assert!(attempt.url().ends_with("/v1/chat/completions?token=canary-2"));
            assert_eq!(attempt.headers()["authorization"], "Bearer sk-canary");
            assert_eq!((attempt.max_retries(), attempt.previous()), (0, None));
            assert!(attempt.remaining() > Duration::from_secs(1));
            *self.0.lock().unwrap() = format!("{attempt:?}");
            Ok(())
        })
    }
}

/// Rejects every response.
struct Refusing(&'static str);
impl Middleware for Refusing {
    fn after<'a>(&'a self, _: &'a Attempt, outcome: &'a Outcome) -> BoxFuture<'a, Result<(), Error>> {
        assert_eq!(outcome.status(), Some(200));
        Box::pin(async { Err(Error::new(ErrorKind::Connection, self.0)) })
    }
}

/// Sets one header.
struct Setting(&'static str);
impl Middleware for Setting {
    fn before<'a>(&'a self, attempt: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        let name = HeaderName::from_static(self.0);
        attempt.headers_mut().insert(name, HeaderValue::from_static("1"));
        Box::pin(async { Ok(()) })
    }
}

/// Never returns.
struct Stuck;
impl Middleware for Stuck {
    fn before<'a>(&'a self, _: &'a mut Attempt) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(std::future::pending())
    }
}

fn noting(notes: &Notes, name: &'static str) -> Arc<dyn Middleware> {
    Arc::new(Noting { name, notes: Arc::clone(notes) })
}

#[tokio::test]
async fn every_attempt_passes_middleware_in_order_and_returns_in_reverse() {
    let busy = Script::whole(503, &[("retry-after-ms", "1"), ("x-request-id", "req_a")], "{}");
    let fine = Script::whole(200, &[("x-request-id", "req_b")], COMPLETION);
    let server = Server::start([busy, fine]).await;
    let notes = Notes::default();
    let builder = server.builder().middleware(noting(&notes, "one")).middleware(noting(&notes, "two"));
    let client = builder.max_retries(1).build().unwrap();
    client.chat().completions().create(&chat_request()).await.unwrap();
    let whole = COMPLETION.len();
    let expected = [
        "one before 1 of create_chat_completion".to_owned(),
        "two before 1 of create_chat_completion".to_owned(),
        "two after 1: internal_server Some(503) req_a Some(2)".to_owned(),
        "one after 1: internal_server Some(503) req_a Some(2)".to_owned(),
        "one before 2 of create_chat_completion".to_owned(),
        "two before 2 of create_chat_completion".to_owned(),
        format!("two after 2: 200 req_b Some({whole})"),
        format!("one after 2: 200 req_b Some({whole})"),
    ];
    assert_eq!(*notes.lock().unwrap(), expected);
    // The second attempt began with the original headers, without the changes made by the middleware for the first.
    let trails: Vec<String> = server
        .requests()
        .iter()
        .map(|request| request.header("x-trail").unwrap_or_default().to_owned())
        .collect();
    assert_eq!(trails, ["one,two", "one,two"]);
}

#[tokio::test]
async fn attempt_describes_the_request_without_secrets() {
    let shown: Arc<Mutex<String>> = Arc::default();
    let server = Server::start([Script::json(COMPLETION)]).await;
    let client = server.builder().middleware(Arc::new(Showing(Arc::clone(&shown)))).build().unwrap();
    let options = RequestOptions {
        extra_headers: vec![("x-api-key".to_owned(), "canary-3".to_owned())],
        extra_query: vec![("token".to_owned(), "canary-2".to_owned())],
        ..RequestOptions::default()
    };
    client.call(chat_call().options(options)).await.unwrap();
    let shown = shown.lock().unwrap();
    assert!(shown.contains("create_chat_completion") && !shown.contains("canary"), "{shown}");
}

#[tokio::test]
async fn stream_passes_through_middleware_up_to_its_head() {
    let done = Script::events()
        .packet(
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        )
        .end();
    let server = Server::start([done]).await;
    let notes = Notes::default();
    let client = server.builder().middleware(noting(&notes, "one")).build().unwrap();
    let mut stream = client.open(chat_call()).await.unwrap();
    assert_eq!(notes.lock().unwrap().last().unwrap(), "one after 1: 200 req_stream None");
    assert!(stream.next_batch().await.unwrap().is_some());
}

#[tokio::test]
async fn middleware_can_abort_a_call_without_retries() {
    let server = Server::start([]).await;
    let notes = Notes::default();
    // An error of a kind that would be retried if the gateway had returned it.
    let stop = Before(|_| Err(Error::new(ErrorKind::RateLimit, "enough for today").with_source("budget")));
    let builder = server.builder().middleware(noting(&notes, "outer")).middleware(Arc::new(stop));
    let client = builder.middleware(noting(&notes, "inner")).max_retries(3).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimit, "enough for today"));
    assert_eq!(error.operation(), Some("create_chat_completion"));
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "budget");
    assert!(server.requests().is_empty());
    let expected = ["outer before 1 of create_chat_completion", "outer after 1: rate_limit None - None"];
    assert_eq!(*notes.lock().unwrap(), expected);
}

#[tokio::test]
async fn middleware_can_reject_a_response_and_the_first_rejection_wins() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let builder = server.builder().middleware(Arc::new(Refusing("outer"))).max_retries(3);
    let client = builder.middleware(Arc::new(Refusing("inner"))).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.message(), error.attempts()), (ErrorKind::Connection, "inner", 1));
}

#[tokio::test]
async fn middleware_cannot_set_framing_headers() {
    for name in ["host", "content-length", "transfer-encoding", "connection", "te", "upgrade"] {
        let server = Server::start([]).await;
        let client = server.builder().middleware(Arc::new(Setting(name))).build().unwrap();
        let error = client.call(chat_call()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest, "{name}");
        assert!(error.message().contains(name), "{error}");
        assert!(server.requests().is_empty());
    }
}

#[tokio::test]
async fn deadline_bounds_middleware_that_never_returns() {
    let server = Server::start([]).await;
    let client =
        server.builder().middleware(Arc::new(Stuck)).timeout(Duration::from_millis(100)).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn headers_set_as_text_leave_equal_values_unchanged_and_mark_a_new_key_as_secret() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let change = Before(|attempt| {
        let repeated = HeaderName::from_static("x-part");
        for value in [&b"a"[..], b"b\xff"] {
            attempt.headers_mut().append(&repeated, HeaderValue::from_bytes(value).unwrap());
        }
        let pairs = [("x-part", "a, b\u{fffd}"), ("authorization", "Bearer other"), ("x-new", "n")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        attempt.set_headers(&pairs)?;
        let headers = attempt.headers();
        let values: Vec<_> = headers.get_all(&repeated).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [&b"a"[..], b"b\xff"]);
        assert!(headers["authorization"].is_sensitive() && !headers["x-new"].is_sensitive());
        assert_eq!(headers.len(), 4);
        let refused = attempt.set_headers(&[("x-a".to_owned(), "line\nbreak".to_owned())]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Configuration);
        assert!(refused.message().contains("x-a"), "{refused}");
        assert_eq!(attempt.headers().len(), 4, "a rejected header changes nothing");
        Ok(())
    });
    let client = server.builder().middleware(Arc::new(change)).build().unwrap();
    client.call(chat_call()).await.unwrap();
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer other"));
}
