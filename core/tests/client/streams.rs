//! Streams over a socket: cases that a vector cannot express.

use std::time::Duration;

use futures_util::StreamExt;
use gatewright::{Call, ErrorKind, RawStream, operations};

use crate::server::{Script, Server, Step};
use crate::stream_vectors::collect;
use crate::{chat_call, chat_request};

#[tokio::test]
async fn typed_stream_yields_chunks_and_ends() {
    let body = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"},\"finish_reason\":null}]}\n\n\
                data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = Server::start([Script::events().packet(body).end()]).await;
    let mut stream = server.client().chat().completions().stream(&chat_request()).await.unwrap();
    assert_eq!(stream.raw().request_id(), Some("req_stream"));
    let first = stream.try_next().await.unwrap().unwrap();
    assert_eq!(first.choices[0].delta.content.as_deref(), Some("hel"));
    assert_eq!(stream.by_ref().count().await, 1);
    assert!(stream.try_next().await.unwrap().is_none());
    assert_eq!(server.requests()[0].json()["stream"], true);
}

#[tokio::test]
async fn always_streaming_operation_sends_its_fixed_query_either_way() {
    let answer = || Script::events().packet("data: {\"candidates\":[]}\r\n\r\n").end();
    let server = Server::start([answer(), answer()]).await;
    let client = server.client();
    let request = serde_json::from_str(r#"{"contents":[{"parts":[{"text":"hi"}]}]}"#).unwrap();
    let mut typed = client.native().stream_generate_content("m", &request).await.unwrap();
    assert!(typed.try_next().await.unwrap().is_some());
    client.open(Call::new(&operations::STREAM_GENERATE_CONTENT).path("model", "m").body("{}")).await.unwrap();
    for request in server.requests() {
        assert_eq!(request.line, "POST /v1beta/models/m:streamGenerateContent?alt=sse HTTP/1.1");
    }
}

#[tokio::test]
async fn all_ready_events_arrive_in_one_batch() {
    let event = "data: {\"choices\":[]}\n\n";
    let script = Script::events().packet(event.repeat(50)).packet(event.repeat(50)).then(Step::Hang);
    let server = Server::start([script]).await;
    let mut stream = server.client().open(chat_call()).await.unwrap();
    server.hangs().await;
    assert_eq!(stream.next_batch().await.unwrap().unwrap().len(), 100);
    assert!(stream.try_next_batch().is_none(), "nothing is ready");
}

#[tokio::test]
async fn ready_events_are_returned_without_waiting() {
    let event = "data: {\"choices\":[]}\n\n";
    let server = Server::start([Script::events().packet(event).then(Step::Hang)]).await;
    let mut stream = server.client().open(chat_call()).await.unwrap();
    server.hangs().await;
    assert_eq!(stream.try_next_batch().unwrap().unwrap().unwrap().len(), 1);
    assert!(stream.try_next_batch().is_none(), "nothing is ready");
}

#[tokio::test]
async fn dropping_a_stream_closes_its_connection() {
    let script = Script::events().packet("data: {\"choices\":[]}\n\n").then(Step::Hang);
    let server = Server::start([script.clone(), script]).await;
    let client = server.client();
    let mut raw = client.open(chat_call()).await.unwrap();
    raw.next_batch().await.unwrap();
    drop(raw);
    assert!(server.connections_closed(1, Duration::from_secs(10)).await);
    let typed = client.chat().completions().stream(&chat_request()).await.unwrap();
    drop(typed);
    assert!(server.connections_closed(2, Duration::from_secs(10)).await);
}

#[tokio::test]
async fn finished_stream_returns_its_connection() {
    let body = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let script = Script::whole(200, &[("content-type", "text/event-stream")], body);
    let server = Server::start([script.clone(), script]).await;
    let client = server.client();
    for _ in 0..2 {
        assert_eq!(collect(client.open(chat_call()).await, RawStream::next_batch).await.0.len(), 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.requests()[1].connection, 0);
}

#[tokio::test]
async fn canceled_wait_loses_no_event() {
    let event = "data: {\"choices\":[]}\n\n";
    let script = Script::events()
        .then(Step::Pause(Duration::from_millis(100)))
        .packet(&event[..9])
        .then(Step::Pause(Duration::from_millis(100)))
        .packet(&event[9..])
        .packet("data: [DONE]\n\n")
        .end();
    let server = Server::start([script]).await;
    let mut stream = server.client().open(chat_call()).await.unwrap();
    let mut events = 0;
    loop {
        match tokio::time::timeout(Duration::from_millis(20), stream.next_batch()).await {
            Ok(Ok(Some(batch))) => events += batch.len(),
            Ok(end) => break assert!(end.unwrap().is_none()),
            Err(_) => {}
        }
    }
    assert_eq!(events, 1);
}

#[tokio::test]
async fn unexpected_chunk_is_a_decode_error_with_the_event() {
    let server =
        Server::start([Script::events().packet("data: {\"choices\":7}\n\ndata: [DONE]\n\n").end()]).await;
    let mut stream = server.client().chat().completions().stream(&chat_request()).await.unwrap();
    let error = stream.try_next().await.unwrap_err();
    assert_eq!((error.kind(), error.request_id()), (ErrorKind::Decode, Some("req_stream")));
    assert_eq!(error.body().unwrap(), r#"{"choices":7}"#);
}
