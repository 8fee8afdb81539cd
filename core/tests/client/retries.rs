//! What is retried, what every attempt carries, and what limits all attempts.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use gatewright::{BoxFuture, Clock, ErrorKind, RequestOptions};

use crate::server::{Script, Server, Step};
use crate::{COMPLETION, chat_call, chat_request};

/// A clock that advances only by the pauses, which pass at once; its random number is constant.
#[derive(Debug)]
struct Still {
    began: Instant,
    random: f64,
    pauses: Mutex<Vec<Duration>>,
}

impl Still {
    fn new(random: f64) -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), random, pauses: Mutex::default() })
    }

    fn pauses(&self) -> Vec<u128> {
        self.pauses.lock().unwrap().iter().map(Duration::as_millis).collect()
    }

    fn passed(&self) -> Duration {
        self.pauses.lock().unwrap().iter().sum()
    }
}

impl Clock for Still {
    fn now(&self) -> Instant {
        self.began + self.passed()
    }

    /// Sun, 09 Sep 2001 01:46:40 GMT, plus the pauses so far.
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000) + self.passed()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()> {
        self.pauses.lock().unwrap().push(pause);
        Box::pin(async {})
    }

    fn random(&self) -> f64 {
        self.random
    }
}

/// A failure that does not say when to retry.
fn failing() -> Script {
    Script::whole(500, &[], "{}")
}

/// A response that asks for an immediate retry.
fn busy(status: u16) -> Script {
    Script::whole(
        status,
        &[("retry-after-ms", "1")],
        r#"{"error":{"message":"busy","code":"server_is_overloaded"}}"#,
    )
}

#[tokio::test]
async fn retries_keep_the_idempotency_key_and_increase_the_count() {
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
async fn connection_broken_before_or_during_the_response_is_retried() {
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
async fn bad_request_and_an_exhausted_quota_are_not_retried() {
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
async fn excessive_retry_after_ends_the_call_immediately_and_is_on_the_error() {
    let server = Server::start([Script::whole(429, &[("retry-after", "3600")], "{}")]).await;
    let client = server.builder().max_retries(5).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::RateLimit, 1));
    assert_eq!(error.retry_after(), Some(Duration::from_hours(1)));
}

#[tokio::test]
async fn pauses_double_up_to_a_limit_with_jitter_of_up_to_a_quarter() {
    for (random, pauses) in [
        (0.0, [500, 1000, 2000, 4000, 8000, 8000]),
        (0.5, [437, 875, 1750, 3500, 7000, 7000]),
        (1.0, [375, 750, 1500, 3000, 6000, 6000]),
    ] {
        let server = Server::start((0..7).map(|_| failing())).await;
        let clock = Still::new(random);
        let client = server
            .builder()
            .clock(clock.clone())
            .timeout(Duration::from_mins(10))
            .max_retries(6)
            .build()
            .unwrap();
        let error = client.call(chat_call()).await.unwrap_err();
        assert_eq!((error.kind(), error.attempts()), (ErrorKind::InternalServer, 7));
        assert_eq!(clock.pauses(), pauses, "{random}");
        assert!(error.elapsed().unwrap() >= clock.passed());
    }
}

#[tokio::test]
async fn retry_after_header_sets_the_pause() {
    let with_header = |name: &str, value: &str| Script::whole(503, &[(name, value)], "");
    let server = Server::start([
        with_header("retry-after", "7"),
        with_header("retry-after-ms", "1500"),
        // 20 s after the clock's start, of which 8.5 s have passed.
        with_header("retry-after", "Sun, 09 Sep 2001 01:47:00 GMT"),
        Script::json(COMPLETION),
    ])
    .await;
    let clock = Still::new(0.5);
    let client = server
        .builder()
        .clock(clock.clone())
        .timeout(Duration::from_mins(10))
        .max_retries(3)
        .build()
        .unwrap();
    let response = client.call(chat_call()).await.unwrap();
    assert_eq!(clock.pauses(), [7000, 1500, 11_500]);
    assert_eq!((response.attempts, response.elapsed), (4, Duration::from_secs(20)));
    let requests = server.requests();
    let keys: std::collections::BTreeSet<_> =
        requests.iter().map(|request| request.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 1, "one call, one key");
    let counts: Vec<_> = requests.iter().map(|request| request.header("x-gatewright-retry-count")).collect();
    assert_eq!(counts, [Some("0"), Some("1"), Some("2"), Some("3")]);
}

#[tokio::test]
async fn pause_exceeding_the_deadline_ends_the_call_with_the_last_error() {
    let server = Server::start((0..9).map(|_| failing())).await;
    let clock = Still::new(0.0);
    let client =
        server.builder().clock(clock.clone()).timeout(Duration::from_secs(5)).max_retries(9).build().unwrap();
    let error = client.call(chat_call()).await.unwrap_err();
    // 0.5 + 1 + 2 s have passed; the next pause would be 4 s.
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::InternalServer, 4));
    assert_eq!(clock.pauses(), [500, 1000, 2000]);
}

#[tokio::test]
async fn deadline_bounds_all_attempts_together() {
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
async fn response_that_does_not_begin_in_time_is_retried() {
    let server =
        Server::start([Script::hang(), Script::hang(), Script::json(COMPLETION), Script::hang()]).await;
    let client = server
        .builder()
        .clock(Still::new(0.0))
        .first_byte_timeout(Duration::from_millis(500))
        .max_retries(2)
        .build()
        .unwrap();
    assert_eq!(client.call(chat_call()).await.unwrap().attempts, 3);
    // Set by option for one call.
    let options = RequestOptions {
        first_byte_timeout: Some(Duration::from_millis(50)),
        max_retries: Some(0),
        ..RequestOptions::default()
    };
    let error = client.open(chat_call().options(options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.message().contains("50ms (first_byte_timeout)"), "{error}");
}

#[tokio::test]
async fn slow_body_is_not_a_slow_start() {
    let slow = Script::begin(200, &[("content-type", "application/json")])
        .then(Step::Pause(Duration::from_secs(1)))
        .packet("{}")
        .end();
    let server = Server::start([slow]).await;
    let client = server.builder().first_byte_timeout(Duration::from_millis(700)).build().unwrap();
    assert_eq!(client.call(chat_call()).await.unwrap().body, "{}");
}

#[tokio::test]
async fn stream_is_retried_only_until_its_head_arrives() {
    let cut = Script::events()
        .packet(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n",
        )
        .then(Step::Reset);
    let server = Server::start([busy(503), cut, Script::json(COMPLETION)]).await;
    let client = server.builder().max_retries(5).build().unwrap();
    let mut stream = client.open(chat_call()).await.unwrap();
    assert_eq!(stream.attempts(), 2);
    assert_eq!(stream.next_batch().await.unwrap().map(|batch| batch.len()), Some(1));
    assert_eq!(stream.next_batch().await.unwrap_err().kind(), ErrorKind::Connection);
    assert_eq!(server.requests().len(), 2);
}
