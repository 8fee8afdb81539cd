//! Times from callers and gateways that are out of range for every clock, and how long a stream may be silent (3; the
//! rest is ours).

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gatewright::{Client, ClientBuilder, ErrorKind, RequestOptions, WaitOptions};

use crate::server::{Script, Server, Step};
use crate::{COMPLETION, chat_call};

const CHUNK: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
const TASK: &str = r#"{"id":"t1","status":"processing","created":1,"model":"m"}"#;
const DONE: &str = r#"{"id":"t1","status":"completed","created":1,"model":"m"}"#;

fn endless(builder: ClientBuilder) -> ClientBuilder {
    builder
        .timeout(Duration::MAX)
        .connect_timeout(Duration::MAX)
        .first_byte_timeout(Duration::MAX)
        .idle_timeout(Duration::MAX)
        .event_timeout(Duration::MAX)
        .pool_timeout(Duration::MAX)
        .idle_connection_timeout(Duration::MAX)
}

#[tokio::test]
async fn maximum_duration_means_no_limit_and_does_not_panic() {
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let stream = || Script::events().packet(CHUNK).packet(end).end();
    let scripts = [Script::json(COMPLETION), stream(), stream(), Script::json(DONE)];
    let server = Server::start(scripts).await;
    // Middleware gets extra time beyond the deadline.
    let client = endless(server.builder()).middleware(std::sync::Arc::new(Nothing)).build().unwrap();
    client.call(chat_call()).await.unwrap();
    client.open(chat_call()).await.unwrap().finish().await.unwrap();
    let options = RequestOptions {
        timeout: Some(Duration::MAX),
        first_byte_timeout: Some(Duration::MAX),
        idle_timeout: Some(Duration::MAX),
        event_timeout: Some(Duration::MAX),
        ..RequestOptions::default()
    };
    let client = client.with_options(options);
    client.open(chat_call()).await.unwrap().finish().await.unwrap();
    let wait = WaitOptions { interval: Duration::MAX, timeout: Duration::MAX, on_progress: None };
    client.videos().generations().wait("t1", wait).await.unwrap();
}

struct Nothing;

impl gatewright::Middleware for Nothing {}

#[tokio::test]
async fn excessive_retry_after_ends_a_call_but_not_a_wait() {
    let pauses = ["10000000000000000000", "1e300", "Fri, 31 Dec 9999 23:59:59 GMT"];
    join_all(pauses.map(async |pause| {
        let busy = || Script::whole(429, &[("retry-after", pause)], "{}");
        let server = Server::start([busy(), Script::json(TASK), busy(), Script::json(DONE)]).await;
        let client = server.builder().max_retries(5).build().unwrap();
        let error = client.call(chat_call()).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::RateLimit, 1), "{pause}");
        assert!(error.retry_after().unwrap() > Duration::from_hours(24));
        // The last poll begins at the deadline and may take as long as an interval, which has to suffice on a slow machine.
        let wait = WaitOptions {
            interval: Duration::from_secs(1),
            timeout: Duration::from_secs(4),
            on_progress: None,
        };
        let task = client.videos().generations().wait("t1", wait).await.unwrap();
        assert_eq!(task.status.as_str(), "completed");
    }))
    .await;
}

/// The error that ends a stream that hangs after its first event.
async fn silence(
    configure: impl FnOnce(ClientBuilder) -> ClientBuilder,
    options: RequestOptions,
) -> (String, Duration) {
    let server = Server::start([Script::events().packet(CHUNK).then(Step::Hang)]).await;
    let client: Client =
        configure(Client::builder().base_url(server.url()).api_key("key").max_retries(0)).build().unwrap();
    let mut stream = client.open(chat_call().options(options)).await.unwrap();
    assert_eq!(stream.next_batch().await.unwrap().unwrap().len(), 1);
    let started = Instant::now();
    let error = stream.next_batch().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.partial().is_some());
    (error.message().to_owned(), started.elapsed())
}

#[tokio::test]
async fn timeout_bounds_the_silence_of_a_stream_unless_idle_timeout_is_given() {
    let (short, long) = (Duration::from_millis(300), Duration::from_millis(1500));
    let none = RequestOptions::default;
    let timeout = |timeout| RequestOptions { timeout: Some(timeout), ..none() };
    let idle = |idle| RequestOptions { idle_timeout: Some(idle), ..none() };
    // Set on the call, then on the client.
    for (message, _) in
        [silence(|it| it, timeout(short)).await, silence(|it| it.timeout(short), none()).await]
    {
        assert!(message.ends_with("300ms (timeout)"), "{message}");
    }
    // `idle_timeout` takes precedence, wherever it is set and whichever is longer.
    for (message, waited) in [
        silence(|it| it.timeout(short).idle_timeout(long), none()).await,
        silence(|it| it.timeout(short), idle(long)).await,
        silence(|it| it.idle_timeout(long), timeout(short)).await,
    ] {
        assert!(message.ends_with("1.5s (idle_timeout)"), "{message}");
        assert!(waited >= Duration::from_secs(1), "{waited:?}");
    }
    let (message, _) = silence(|it| it.idle_timeout(short), timeout(long)).await;
    assert!(message.ends_with("300ms (idle_timeout)"), "{message}");
}

#[tokio::test]
async fn active_stream_may_exceed_the_timeout() {
    let pause = || Step::Pause(Duration::from_millis(200));
    let mut script = Script::events().packet(CHUNK);
    for _ in 0..4 {
        script = script.then(pause()).packet(": alive\n\n").then(pause()).packet(CHUNK);
    }
    let script = script.packet("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n").end();
    let server = Server::start([script]).await;
    let client = Client::builder().base_url(server.url()).api_key("key").timeout(Duration::from_secs(1));
    let started = Instant::now();
    client.build().unwrap().open(chat_call()).await.unwrap().finish().await.unwrap();
    assert!(started.elapsed() > Duration::from_secs(1));
}
