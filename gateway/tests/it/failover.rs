//! Which upstream answers: order, failover, several keys, breakers and bounds.

use std::time::Duration;

use gatewright_gateway::{ApiKey, Config, Kind};
use serde_json::json;

use crate::support::{send, start_with};
use crate::upstreams::{
    Scripted, Step, answer, chunks, completion, config, json_answer, question, stream, upstream,
};

const CHAT: &str = "/v1/chat/completions";

/// Two scripted upstreams; the second answers well.
async fn pair(first: impl IntoIterator<Item = Vec<Step>>) -> (Scripted, Scripted, Config) {
    let one = Scripted::start(first).await;
    let two = Scripted::start([json_answer(200, &completion("two"))]).await;
    let settings = config(vec![upstream("one", Kind::Chat, &one.url), upstream("two", Kind::Chat, &two.url)]);
    (one, two, settings)
}

#[tokio::test]
async fn another_upstream_answers_where_the_first_fails() {
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
async fn the_requests_own_fault_is_told_at_once() {
    let (_one, two, settings) = pair([json_answer(400, &json!({"error": {"message": "bad"}}))]).await;
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert_eq!((status, &answer["error"]["message"]), (400, &json!("bad")));
    assert_eq!(two.count(), 0);
}

#[tokio::test]
async fn a_stream_that_begins_with_an_error_has_not_begun() {
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
async fn what_is_said_last_is_told_where_all_fail() {
    let (_one, two, settings) = pair([json_answer(500, &json!({}))]).await;
    two.then(json_answer(503, &json!({"error": {"message": "full", "type": "overloaded_error"}})));
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert_eq!((status, &answer["error"]["message"]), (503, &json!("full")), "{answer}");
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_is_passed_over() {
    let two = Scripted::start([json_answer(200, &completion("two"))]).await;
    let mut nowhere = upstream("one", Kind::Chat, "http://192.0.2.1:9/v1");
    nowhere.connect_timeout = Duration::from_millis(200);
    let server = start_with(config(vec![nowhere, upstream("two", Kind::Chat, &two.url)])).await;
    assert_eq!(server.ask(CHAT, &question(false)).await["choices"][0]["message"]["content"], "two");
}

#[tokio::test]
async fn an_upstream_that_does_not_answer_in_time_is_passed_over() {
    let (mut one, _two, mut settings) = pair([vec![Step::Hang]]).await;
    settings.upstreams[0].timeout = Duration::from_millis(200);
    let server = start_with(settings.clone()).await;
    assert_eq!(server.ask(CHAT, &question(false)).await["choices"][0]["message"]["content"], "two");
    one.left().await;
    // Alone, its silence is told.
    settings.models[0].targets.truncate(1);
    let server = start_with(settings).await;
    let (status, answer) = server.refused(CHAT, &question(false)).await;
    assert_eq!((status, &answer["error"]["code"]), (504, &json!("upstream_timeout")));
}

#[tokio::test]
async fn the_next_key_is_used_where_one_is_refused() {
    for status in [401, 403, 429] {
        let one = Scripted::start([
            json_answer(status, &json!({"error": {"message": "no"}})),
            json_answer(200, &completion("one")),
        ])
        .await;
        let mut with_keys = upstream("one", Kind::Chat, &one.url);
        with_keys.keys.push(ApiKey::new("second").expect("a key"));
        let server = start_with(config(vec![with_keys])).await;
        server.ask(CHAT, &question(false)).await;
        server.ask(CHAT, &question(false)).await;
        let keys: Vec<String> = one
            .seen()
            .iter()
            .map(|seen| seen.header("authorization").unwrap_or_default().to_owned())
            .collect();
        // The refused one is left alone for a while, unless a client may have caused the refusal.
        let next = if status == 403 { &keys[0] } else { "Bearer second" };
        assert_eq!(keys[1..], ["Bearer second", next], "{status}");
        assert_ne!(keys[0], keys[1]);
    }
}

#[tokio::test]
async fn an_upstream_that_fails_is_left_alone() {
    let (one, two, settings) = pair([json_answer(500, &json!({}))]).await;
    let server = start_with(settings).await;
    for _ in 0..8 {
        server.ask(CHAT, &question(false)).await;
    }
    assert_eq!((one.count(), two.count()), (5, 8));
}

#[tokio::test]
async fn an_upstream_that_works_again_is_found_by_one_request_after_the_pause() {
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
    // The pause is 5 s. The one request that tries then is alone: nobody else waits for an upstream that may still fail.
    tokio::time::sleep(Duration::from_millis(5200)).await;
    let probe = tokio::spawn(server.post(CHAT, &question(false)).send());
    while one.count() == 5 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!((who().await, one.count()), ("two".to_owned(), 6));
    // A client that leaves says nothing of the upstream: the next request tries.
    probe.abort();
    one.then(json_answer(200, &completion("one")));
    let tried = async {
        while who().await != "one" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), tried).await.expect("it is tried again");
    for _ in 0..3 {
        assert_eq!(who().await, "one");
    }
}

#[tokio::test]
async fn where_each_upstream_fails_the_client_is_told_when_to_come_back() {
    let one = Scripted::start([json_answer(500, &json!({}))]).await;
    let server = start_with(config(vec![upstream("one", Kind::Chat, &one.url)])).await;
    for _ in 0..5 {
        assert_eq!(server.refused(CHAT, &question(false)).await.0, 500);
    }
    let response = send(server.post(CHAT, &question(false))).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "5");
    assert_eq!(one.count(), 5);
    // The requests' own faults open no breaker.
    let two = Scripted::start([json_answer(400, &json!({}))]).await;
    let server = start_with(config(vec![upstream("two", Kind::Chat, &two.url)])).await;
    for _ in 0..10 {
        assert_eq!(server.refused(CHAT, &question(false)).await.0, 400);
    }
    assert_eq!(two.count(), 10);
}

#[tokio::test]
async fn a_full_upstream_is_passed_over() {
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
async fn no_more_requests_a_minute_are_sent_than_allowed() {
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

/// Servers close connections that nobody uses at any time, also as the next request is on its way.
#[tokio::test]
async fn a_request_that_an_old_connection_loses_is_sent_once_more_over_a_new_one() {
    for loss in [Step::Close, Step::Reset] {
        let whole = json_answer(200, &completion("hi"));
        let one = Scripted::start([whole.clone(), vec![loss.clone()], whole.clone(), vec![loss]]).await;
        let server = start_with(config(vec![upstream("one", Kind::Chat, &one.url)])).await;
        for asked in [1, 3] {
            let response = send(server.post(CHAT, &question(false))).await;
            assert_eq!((response.status().as_u16(), one.count()), (200, asked));
        }
        // It is lost over the new connection, too: that is a failure.
        let (status, _) = server.refused(CHAT, &question(false)).await;
        assert_eq!((status, one.count()), (502, 5));
    }
}
