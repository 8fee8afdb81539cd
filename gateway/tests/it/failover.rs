//! Upstream selection: order, failover, multiple keys, breakers and limits.

use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind};
use serde_json::json;

use crate::callers::{End, Protocol, TEXT, text_of};
use crate::fault_matrix::well;
use crate::support::{events, send, start_with};
use crate::upstreams::{
    STREAM_HEAD, Scripted, Step, UPSTREAM_KEY, answer, chunks, completion, config, json_answer, question,
    stream, upstream,
};

const CHAT: &str = "/v1/chat/completions";

/// Two scripted upstreams; the second one succeeds.
async fn pair(first: impl IntoIterator<Item = Vec<Step>>) -> (Scripted, Scripted, Config) {
    let one = Scripted::start(first).await;
    let two = Scripted::start([json_answer(200, &completion("two"))]).await;
    let settings = config(vec![upstream("one", Kind::Chat, &one.url), upstream("two", Kind::Chat, &two.url)]);
    (one, two, settings)
}

#[tokio::test]
async fn failed_attempt_falls_over_to_the_next_upstream() {
    let failing: [Vec<Step>; 12] = [
        json_answer(500, &json!({"error": {"message": "broken"}})),
        json_answer(503, &json!({})),
        json_answer(529, &json!({})),
        json_answer(408, &json!({})),
        json_answer(429, &json!({"error": {"code": "insufficient_quota"}})),
        json_answer(401, &json!({})),
        vec![Step::Reset],
        vec![Step::Close],
        vec![Step::Write(answer(200, "text/html", "<html>Welcome</html>"))],
        vec![
            Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\":[".to_vec()),
            Step::Close,
        ],
        vec![
            Step::Write(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n{\"choices\":[]}".to_vec()),
            Step::Close,
        ],
        vec![Step::Write(b"garbage\r\n\r\n".to_vec()), Step::Close],
    ];
    for steps in failing {
        let (one, _two, settings) = pair([steps.clone()]).await;
        let server = start_with(settings).await;
        let response = send(server.post(CHAT, &question(false))).await;
        assert_eq!(response.status(), 200, "{steps:?}");
        assert_eq!(response.headers()["x-gatewright-upstream"], "two", "{steps:?}");
        assert!(one.count() >= 1);
    }
}

#[tokio::test]
async fn request_error_is_returned_without_failover() {
    let (_one, two, settings) = pair([json_answer(400, &json!({"error": {"message": "bad"}}))]).await;
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert_eq!((status, &answer["error"]["message"]), (400, &json!("bad")));
    assert_eq!(two.count(), 0);
}

/// A question about an image URL, which Converse can't express.
fn question_about_a_url() -> serde_json::Value {
    let mut question = question(false);
    question["messages"] = json!([{ "role": "user", "content": [
        { "type": "text", "text": "What is this?" },
        { "type": "image_url", "image_url": { "url": "https://a.example/a.png" } },
    ] }]);
    question
}

#[tokio::test]
async fn upstream_that_cannot_express_an_image_is_skipped() {
    let converse = Scripted::start([]).await;
    let chat = Scripted::start([json_answer(200, &completion("two"))]).await;
    let settings =
        config(vec![upstream("one", Kind::Converse, &converse.url), upstream("two", Kind::Chat, &chat.url)]);
    let server = start_with(settings).await;
    let response = send(server.post(CHAT, &question_about_a_url())).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["x-gatewright-upstream"]),
        (200, &"two".parse().expect("a name"))
    );
    assert_eq!((converse.count(), chat.count()), (0, 1));
}

#[tokio::test]
async fn upstream_failure_outranks_an_inexpressible_request() {
    let chat = Scripted::start([json_answer(503, &json!({}))]).await;
    let converse = Scripted::start([]).await;
    let settings =
        config(vec![upstream("one", Kind::Chat, &chat.url), upstream("two", Kind::Converse, &converse.url)]);
    let server = start_with(settings).await;
    let (status, _) = server.refused(CHAT, &question_about_a_url()).await;
    assert_eq!((status, converse.count()), (503, 0));
    let settings = config(vec![upstream("two", Kind::Converse, &converse.url)]);
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question_about_a_url()).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("messages.0.content.1")));
}

#[tokio::test]
async fn stream_that_begins_with_an_error_fails_over() {
    for first in [
        "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n",
        ": comment\n\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\n",
        ": comment\n\n",
        "",
        "<html>",
    ] {
        let one = Scripted::start([stream(first)]).await;
        let two = Scripted::start([stream(&chunks(&["two"]))]).await;
        let server = start_with(config(vec![
            upstream("one", Kind::Chat, &one.url),
            upstream("two", Kind::Chat, &two.url),
        ]))
        .await;
        let got = server.stream(CHAT, &question(true)).await;
        assert_eq!(got[0].json()["choices"][0]["delta"]["content"], "two", "{first}");
        assert_eq!(got.last().map(|event| event.data.as_str()), Some("[DONE]"));
    }
}

#[tokio::test]
async fn last_error_is_returned_when_all_upstreams_fail() {
    let (_one, two, settings) = pair([json_answer(500, &json!({}))]).await;
    two.then(json_answer(503, &json!({"error": {"message": "full", "type": "overloaded_error"}})));
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert_eq!((status, &answer["error"]["message"]), (503, &json!("full")), "{answer}");
}

#[tokio::test]
async fn unreachable_upstream_is_skipped() {
    let two = Scripted::start([json_answer(200, &completion("two"))]).await;
    let mut nowhere = upstream("one", Kind::Chat, "http://192.0.2.1:9/v1");
    nowhere.connect_timeout = Duration::from_millis(200);
    let server = start_with(config(vec![nowhere, upstream("two", Kind::Chat, &two.url)])).await;
    assert_eq!(server.ask(CHAT, &question(false)).await["choices"][0]["message"]["content"], "two");
}

#[tokio::test]
async fn upstream_that_times_out_is_skipped() {
    let (mut one, _two, mut settings) = pair([vec![Step::Hang]]).await;
    settings.upstreams[0].timeout = Duration::from_millis(200);
    let server = start_with(settings.clone()).await;
    assert_eq!(server.ask(CHAT, &question(false)).await["choices"][0]["message"]["content"], "two");
    one.left().await;
    // Without an alternative, the timeout is reported.
    settings.models[0].targets.truncate(1);
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert_eq!((status, &answer["error"]["code"]), (504, &json!("upstream_timeout")));
}

/// An upstream with two keys rejects the first one with this response, and answers the next request.
async fn refuse_a_key(
    client: Protocol,
    speaks: Protocol,
    stream: bool,
    refusal: Vec<Step>,
    is_alone: bool,
    here: &str,
) {
    let spoken = speaks.spoken_for(client);
    let one = Scripted::start([refusal, well(spoken, stream)]).await;
    let mut with_keys = upstream("one", speaks.kind(), &one.url);
    with_keys.keys.push(ApiKey::new("second").expect("a key"));
    let mut settings = config(vec![with_keys]);
    settings.models[0].translate_responses = true;
    let server = start_with(settings).await;
    let (path, body) = client.request("mine", stream);
    for _ in 0..2 {
        let response = send(server.post(&path, &body)).await;
        assert_eq!(response.status(), 200, "{here}");
        let text = response.text().await.expect("a body");
        if stream {
            assert_eq!(client.end(&text), End::Success, "{here}: {text}");
            assert_eq!(text_of(client, &events(&text)), TEXT, "{here}");
        } else {
            let answer = serde_json::from_str(&text).expect("JSON");
            assert_eq!(client.text(&answer), Some(TEXT), "{here}: {text}");
        }
    }
    let (header, scheme) = match speaks {
        Protocol::Chat | Protocol::Responses => ("authorization", "Bearer "),
        Protocol::Messages => ("x-api-key", ""),
        Protocol::Native => ("x-goog-api-key", ""),
    };
    let keys: Vec<_> = one.seen().iter().map(|seen| seen.header(header).map(str::to_owned)).collect();
    let [first, second] = [UPSTREAM_KEY, "second"].map(|key| Some(format!("{scheme}{key}")));
    let next = if is_alone { &second } else { &first };
    assert_eq!(keys, [first.clone(), second.clone(), next.clone()], "{here}");
}

#[tokio::test]
async fn next_key_is_used_when_one_is_rejected() {
    for speaks in Protocol::ALL {
        for (client, stream) in Protocol::ALL.into_iter().flat_map(|client| [(client, false), (client, true)])
        {
            for status in [401, 403, 429] {
                let here = format!("{client:?} at {speaks:?}, stream: {stream}, {status}");
                let refusal = json_answer(status, &json!({"error": {"message": "no"}}));
                // The rejected key rests for a while, unless a client may have caused the rejection.
                refuse_a_key(client, speaks, stream, refusal, status != 403, &here).await;
            }
        }
    }
}

/// The first event of a stream that rejects a key.
fn refusing_event(spoken: Protocol, word: &str, code: u16) -> String {
    let data = match spoken {
        Protocol::Chat => json!({"error": {"message": "no", "type": word, "code": word}}),
        Protocol::Responses => {
            json!({"type": "error", "sequence_number": 0, "code": word, "message": "no", "param": null})
        }
        Protocol::Messages => json!({"type": "error", "error": {"type": word, "message": "no"}}),
        Protocol::Native => {
            json!({"error": {"code": code, "message": "no", "status": word.to_ascii_uppercase()}})
        }
    };
    match data["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

#[tokio::test]
async fn next_key_is_used_when_the_first_stream_event_rejects_one() {
    for speaks in Protocol::ALL {
        for client in Protocol::ALL {
            for (word, code) in [
                ("authentication_error", 401),
                ("permission_error", 403),
                ("rate_limit_error", 429),
                ("insufficient_quota", 429),
            ] {
                let here = format!("{client:?} at {speaks:?}, {word}");
                let spoken = speaks.spoken_for(client);
                // In the terms of the native protocol.
                let word = match (spoken, word) {
                    (Protocol::Native, "authentication_error") => "unauthenticated",
                    (Protocol::Native, "permission_error") => "permission_denied",
                    (Protocol::Native, "rate_limit_error") => "resource_exhausted",
                    (_, word) => word,
                };
                let refusal = stream(&refusing_event(spoken, word, code));
                refuse_a_key(client, speaks, true, refusal, code != 403, &here).await;
            }
        }
    }
}

#[tokio::test]
async fn failing_upstream_is_not_called_while_its_breaker_is_open() {
    let (one, two, settings) = pair([json_answer(500, &json!({}))]).await;
    let server = start_with(settings).await;
    for _ in 0..8 {
        server.ask(CHAT, &question(false)).await;
    }
    assert_eq!((one.count(), two.count()), (5, 8));
}

#[tokio::test]
async fn recovered_upstream_is_found_by_a_single_probe() {
    let (one, _two, settings) = pair([json_answer(500, &json!({}))]).await;
    let server = start_with(settings).await;
    let who = async || {
        let response = send(server.post(CHAT, &question(false))).await;
        assert_eq!(response.status(), 200);
        response.headers()["x-gatewright-upstream"].to_str().expect("a name").to_owned()
    };
    for _ in 0..5 {
        assert_eq!(who().await, "two");
    }
    one.then(vec![Step::Hang]);
    assert_eq!((who().await, one.count()), ("two".to_owned(), 5));
    // The pause is 5 s. Then a single request probes: no other request waits for an upstream that may still fail.
    tokio::time::sleep(Duration::from_millis(5200)).await;
    let probe = tokio::spawn(server.post(CHAT, &question(false)).send());
    while one.count() == 5 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((who().await, one.count()), ("two".to_owned(), 6));
    // A disconnected client reveals nothing about the upstream: the next request probes.
    probe.abort();
    one.then(json_answer(200, &completion("one")));
    let tried = async {
        while who().await != "one" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), tried).await.expect("it is probed again");
    for _ in 0..3 {
        assert_eq!(who().await, "one");
    }
}

/// The client of the probe disconnects before a response: the breaker stays open.
#[tokio::test]
async fn probe_whose_client_disconnects_leaves_the_breaker_open() {
    let leave = async |stream: bool, started: &str| {
        let here = format!("stream: {stream}, after {started:?}");
        let (mut one, _two, settings) = pair([json_answer(500, &json!({}))]).await;
        let server = start_with(settings).await;
        for _ in 0..5 {
            server.ask(CHAT, &question(false)).await;
        }
        one.then(vec![Step::Write(started.into()), Step::Hang]);
        tokio::time::sleep(Duration::from_millis(5200)).await;
        let probe = tokio::spawn(server.post(CHAT, &question(stream)).send());
        while one.count() == 5 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        probe.abort();
        one.left().await;
        one.then(json_answer(500, &json!({})));
        // The next request probes, and when it fails, no other is sent.
        let tried = async {
            while one.count() == 6 {
                server.ask(CHAT, &question(false)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), tried).await.expect("it is probed again");
        for _ in 0..3 {
            server.ask(CHAT, &question(false)).await;
        }
        assert_eq!(one.count(), 7, "{here}");
    };
    tokio::join!(leave(false, ""), leave(true, ""), leave(true, STREAM_HEAD));
}

#[tokio::test]
async fn open_breakers_return_retry_after() {
    let one = Scripted::start([json_answer(500, &json!({}))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &one.url)])).await;
    for _ in 0..5 {
        assert_eq!(server.refused(CHAT, &question(false)).await.0, 500);
    }
    let response = send(server.post(CHAT, &question(false))).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(one.count(), 5);
    // Request errors don't open the breaker.
    let two = Scripted::start([json_answer(400, &json!({}))]).await;
    let server = start_with(config(vec![upstream("two", Kind::Chat, &two.url)])).await;
    for _ in 0..10 {
        assert_eq!(server.refused(CHAT, &question(false)).await.0, 400);
    }
    assert_eq!(two.count(), 10);
}

#[tokio::test]
async fn full_upstream_is_skipped() {
    let (one, _two, mut settings) = pair([vec![Step::Hang]]).await;
    settings.upstreams[0].max_concurrent = Some(1);
    let server = start_with(settings).await;
    let body = question(false);
    let waiting = server.post(CHAT, &body).send();
    let others = async {
        while one.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for _ in 0..3 {
            server.ask(CHAT, &body).await;
        }
    };
    tokio::select! {
        _ = waiting => panic!("the first upstream hangs"),
        () = others => {}
    }
    assert_eq!(one.count(), 1);
}

#[tokio::test]
async fn requests_per_minute_to_an_upstream_are_limited() {
    let (one, _two, mut settings) = pair([json_answer(200, &completion("one"))]).await;
    settings.upstreams[0].max_requests_per_minute = Some(2);
    settings.models[0].targets.truncate(1);
    let server = start_with(settings).await;
    for _ in 0..2 {
        server.ask(CHAT, &question(false)).await;
    }
    let response = send(server.post(CHAT, &question(false))).await;
    assert_eq!((response.status().as_u16(), response.headers().contains_key("retry-after")), (503, true));
    assert_eq!(one.count(), 2);
}

/// Servers may close idle connections at any time, even when the next request is on its way. A server that reads a request and then
/// fails looks the same.
#[tokio::test]
async fn possibly_delivered_request_is_not_retried_by_default() {
    for loss in [Step::Close, Step::Reset] {
        let whole = json_answer(200, &completion("hi"));
        let one = Scripted::start([whole.clone(), vec![loss], whole]).await;
        let server = start_with(config(vec![upstream("one", Kind::Chat, &one.url)])).await;
        server.ask(CHAT, &question(false)).await;
        let (status, _) = server.refused(CHAT, &question(false)).await;
        assert_eq!((status, one.count()), (502, 2));
    }
}

#[tokio::test]
async fn lost_request_is_retried_once_on_a_new_connection_if_configured() {
    for loss in [Step::Close, Step::Reset] {
        let whole = json_answer(200, &completion("hi"));
        let one = Scripted::start([whole.clone(), vec![loss.clone()], whole.clone(), vec![loss]]).await;
        let mut repeating = upstream("one", Kind::Chat, &one.url);
        repeating.retry_lost = true;
        let server = start_with(config(vec![repeating])).await;
        for calls in [1, 3] {
            let response = send(server.post(CHAT, &question(false))).await;
            assert_eq!((response.status().as_u16(), one.count()), (200, calls));
        }
        // If it is lost on the new connection, too, it fails.
        let (status, _) = server.refused(CHAT, &question(false)).await;
        assert_eq!((status, one.count()), (502, 5));
    }
}

/// A response with status 429, these headers and a retry time of one hour.
fn limited(headers: &str) -> Vec<Step> {
    let head = format!("HTTP/1.1 429 X\r\nretry-after: 3600\r\n{headers}content-length: 2\r\n\r\n{{}}");
    vec![Step::Write(head.into())]
}

#[tokio::test]
async fn long_rate_limit_blocks_only_its_model_for_a_minute() {
    let one = Scripted::start([limited(""), json_answer(200, &completion("other"))]).await;
    let mut settings = config(vec![upstream("one", Kind::Chat, &one.url)]);
    let mut other = settings.models[0].clone();
    other.id = "other".to_owned();
    other.aliases.clear();
    other.targets[0].model = "other-model".to_owned();
    settings.models.push(other);
    let server = start_with(settings).await;
    assert_eq!(server.refused(CHAT, &question(false)).await.0, 429);
    let response = send(server.post(CHAT, &question(false))).await;
    let wait: u64 = response.headers()["retry-after"].to_str().expect("ASCII").parse().expect("seconds");
    assert_eq!((response.status().as_u16(), one.count()), (429, 1));
    assert!((1..=60).contains(&wait), "{wait}");
    let mut body = question(false);
    body["model"] = "other".into();
    assert_eq!(server.ask(CHAT, &body).await["choices"][0]["message"]["content"], "other");
}

#[tokio::test]
async fn token_limit_lets_smaller_requests_through() {
    let left = "x-ratelimit-remaining-requests: 9\r\nx-ratelimit-remaining-tokens: 500\r\n";
    let one = Scripted::start([limited(left), json_answer(200, &completion("small"))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &one.url)])).await;
    let mut large = question(false);
    large["messages"][0]["content"] = "word ".repeat(4_000).into();
    for _ in 0..2 {
        assert_eq!((server.refused(CHAT, &large).await.0, one.count()), (429, 1));
    }
    server.ask(CHAT, &question(false)).await;
    assert_eq!(one.count(), 2);
}
