//! What is tried again, what every attempt carries, and what bounds them all.

use std::time::{Duration, Instant};

use gatewright::{ErrorKind, RequestOptions};

use crate::server::{Script, Server, Step};
use crate::{COMPLETION, chat_call, chat_request};

/// An answer that asks to come back at once.
fn busy(status: u16) -> Script {
    Script::whole(
        status,
        &[("retry-after-ms", "1")],
        r#"{"error":{"message":"busy","code":"server_is_overloaded"}}"#,
    )
}

#[tokio::test]
async fn a_failure_is_tried_again_with_the_same_idempotency_key_and_a_rising_count() {
    let server = Server::start([busy(503), busy(429), Script::json(COMPLETION)]).await;
    let client = server.builder().max_retries(2).build().unwrap();
    let completion = client.chat().completions().create(&chat_request()).await.unwrap();
    assert_eq!(completion.attempts(), 3);
    let requests = server.requests();
    let counts: Vec<_> = requests.iter().map(|request| request.header("x-gatewright-retry-count")).collect();
    assert_eq!(counts, [Some("0"), Some("1"), Some("2")]);
    let keys: Vec<_> = requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert!(keys[0].is_some() && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[tokio::test]
async fn a_connection_that_breaks_before_or_inside_the_answer_is_tried_again() {
    let cut = Script::bytes("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":");
    let server = Server::start([Script::silence(), cut, Script::json(COMPLETION)]).await;
    let client = server.builder().max_retries(2).build().unwrap();
    let response = client.call(chat_call()).await.unwrap();
    assert_eq!((response.attempts, response.body.as_ref()), (3, COMPLETION.as_bytes()));
}

#[tokio::test]
async fn retries_end_with_the_last_error() {
    let server = Server::start([busy(500), busy(502)]).await;
    let options = RequestOptions { max_retries: Some(1), ..RequestOptions::default() };
    let error = server.client().call(chat_call().options(options)).await.unwrap_err();
    assert_eq!((error.kind(), error.status(), error.attempts()), (ErrorKind::InternalServer, Some(502), 2));
    assert_eq!(error.code(), Some("server_is_overloaded"));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_bad_request_and_a_used_up_quota_are_not_tried_again() {
    let quota = Script::whole(
        429,
        &[("retry-after", "0")],
        r#"{"error":{"message":"m","code":"insufficient_quota"}}"#,
    );
    for (script, kind) in [(busy(400), ErrorKind::BadRequest), (quota, ErrorKind::RateLimit)] {
        let server = Server::start([script]).await;
        let client = server.builder().max_retries(5).build().unwrap();
        let error = client.call(chat_call()).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (kind, 1));
    }
}

#[tokio::test]
async fn a_retry_after_beyond_reason_ends_the_call_at_once_and_is_on_the_error() {
    let server = Server::start([Script::whole(429, &[("retry-after", "3600")], "{}")]).await;
    let client = server.builder().max_retries(5).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::RateLimit, 1));
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)));
}

#[tokio::test]
async fn a_retry_after_is_waited_for() {
    let server =
        Server::start([Script::whole(503, &[("retry-after", "0.3")], ""), Script::json(COMPLETION)]).await;
    let client = server.builder().max_retries(1).build().unwrap();
    let started = Instant::now();
    client.call(chat_call()).await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
}

#[tokio::test]
async fn the_deadline_bounds_all_attempts_together() {
    let slow = || busy(503).then(Step::Hang);
    let hang = Script::hang;
    let server = Server::start([slow(), hang(), hang()]).await;
    let client = server.builder().max_retries(9).timeout(Duration::from_millis(1500)).build().unwrap();
    let started = Instant::now();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::Timeout, 2));
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
}

#[tokio::test]
async fn a_stream_is_tried_again_until_its_head_has_arrived_and_never_after() {
    let cut = Script::events().packet("data: {\"choices\":[{\"delta\":{}}]}\n\n").then(Step::Reset);
    let server = Server::start([busy(503), cut, Script::json(COMPLETION)]).await;
    let client = server.builder().max_retries(5).build().unwrap();
    let mut stream = client.open(chat_call()).await.unwrap();
    assert_eq!(stream.attempts(), 2);
    assert_eq!(stream.next_batch().await.unwrap().map(|batch| batch.len()), Some(1));
    assert_eq!(stream.next_batch().await.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(server.requests().len(), 2);
}
