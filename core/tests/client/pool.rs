//! How many requests are in progress at once, and which connections are retained.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use gatewright::{Client, ErrorKind};

use crate::server::{Script, Server};
use crate::{COMPLETION, chat_call, chat_request};

const CHUNK: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
const LAST: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn endless() -> Script {
    Script::events().packet(CHUNK).then(crate::server::Step::Hang)
}

/// A client with a single place, and a timeout so long that an unexpected wait would be noticed.
fn narrow(server: &Server) -> Client {
    server.builder().max_connections(1).pool_timeout(Duration::from_secs(20)).build().unwrap()
}

#[tokio::test]
async fn full_pool_is_a_distinct_error_that_names_the_limit_and_the_fix() {
    let server = Server::start([endless()]).await;
    let client = server
        .builder()
        .max_connections(1)
        .pool_timeout(Duration::from_millis(100))
        .max_retries(5)
        .build()
        .unwrap();
    let stream = client.open(chat_call()).await.unwrap();
    let started = Instant::now();
    let error = client.call(chat_call()).await.unwrap_err();
    assert_eq!((error.kind(), error.attempts()), (ErrorKind::PoolTimeout, 1));
    for expected in ["1 connections (max_connections)", "100ms (pool_timeout)", "close finished streams"] {
        assert!(error.message().contains(expected), "{error}");
    }
    assert!(started.elapsed() < Duration::from_secs(5), "it was waited for once: {:?}", started.elapsed());
    drop(stream);
}

#[tokio::test]
async fn deadline_of_the_call_bounds_the_wait_for_the_pool() {
    let server = Server::start([endless()]).await;
    let client = narrow(&server);
    let _stream = client.open(chat_call()).await.unwrap();
    let options = gatewright::RequestOptions {
        timeout: Some(Duration::from_millis(200)),
        ..gatewright::RequestOptions::default()
    };
    let started = Instant::now();
    let error = client.call(chat_call().options(options)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PoolTimeout);
    assert!(error.message().contains("the call's deadline (timeout)"), "{error}");
    assert!(!error.message().contains("pool_timeout"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}

#[tokio::test]
async fn dropped_stream_releases_its_slot() {
    let server = Server::start([endless(), endless(), Script::json(COMPLETION)]).await;
    let client = narrow(&server);
    let mut raw = client.open(chat_call()).await.unwrap();
    assert!(raw.next_batch().await.unwrap().is_some());
    drop(raw);
    let mut typed = client.chat().completions().stream(&chat_request()).await.unwrap();
    assert!(typed.try_next().await.unwrap().is_some());
    drop(typed);
    client.call(chat_call()).await.unwrap();
}

#[tokio::test]
async fn finished_stream_holds_no_slot_before_it_is_dropped() {
    let ended = Script::events().packet(LAST).end();
    let broken = Script::events().packet(CHUNK).then(crate::server::Step::Reset);
    let server = Server::start([ended, broken, Script::json(COMPLETION)]).await;
    let client = narrow(&server);
    let mut complete = client.open(chat_call()).await.unwrap();
    while complete.next_batch().await.unwrap().is_some() {}
    let mut failed = client.open(chat_call()).await.unwrap();
    while let Ok(Some(_)) = failed.next_batch().await {}
    client.call(chat_call()).await.unwrap();
}

#[tokio::test]
async fn failed_and_abandoned_calls_release_their_slots() {
    let server = Server::start([
        Script::whole(400, &[], "{}"),
        Script::silence(),
        Script::hang(),
        Script::json(COMPLETION),
    ])
    .await;
    let client = narrow(&server);
    client.call(chat_call()).await.unwrap_err();
    client.call(chat_call()).await.unwrap_err();
    let abandoned = tokio::time::timeout(Duration::from_millis(500), client.call(chat_call())).await;
    assert!(abandoned.is_err());
    client.call(chat_call()).await.unwrap();
}

#[tokio::test]
async fn requests_over_the_limit_wait_for_their_turn() {
    let slow = || {
        Script::begin(200, &[("content-type", "application/json")])
            .then(crate::server::Step::Pause(Duration::from_millis(20)))
            .packet("{}")
            .end()
    };
    let server = Server::start((0..12).map(|_| slow())).await;
    let client = server.builder().max_connections(3).build().unwrap();
    for answer in join_all((0..12).map(|_| client.call(chat_call()))).await {
        answer.unwrap();
    }
    let connections: std::collections::BTreeSet<usize> =
        server.requests().iter().map(|request| request.connection).collect();
    assert!(connections.len() <= 3, "{connections:?}");
}

#[tokio::test]
async fn caller_sets_the_number_of_idle_connections() {
    let server = Server::start((0..4).map(|_| Script::json(COMPLETION))).await;
    let keeps_none = server.builder().max_idle_connections(0).build().unwrap();
    for _ in 0..2 {
        keeps_none.call(chat_call()).await.unwrap();
    }
    let keeps_some = server.client();
    for _ in 0..2 {
        keeps_some.call(chat_call()).await.unwrap();
    }
    let connections: Vec<usize> = server.requests().iter().map(|request| request.connection).collect();
    assert_eq!(connections, [0, 1, 2, 2]);
}

#[tokio::test]
async fn idle_connections_are_closed_after_their_timeout() {
    let server = Server::start([Script::json(COMPLETION)]).await;
    let client = server.builder().idle_connection_timeout(Duration::from_millis(100)).build().unwrap();
    client.call(chat_call()).await.unwrap();
    assert!(server.connections_closed(1, Duration::from_secs(10)).await);
}

#[test]
fn pool_of_size_zero_is_rejected() {
    let error = Client::builder().api_key("k").max_connections(0).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("max_connections must be from 1 to "), "{error}");
}
