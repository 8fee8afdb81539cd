//! The levels of a stream: frames, chunks, text and the whole document, alone and mixed; what a stream's error carries.

use std::time::Duration;

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, future};
use gatewright::types::{ChatCompletionChunk, GenerateContentRequest, ResponseRequest};
use gatewright::{Call, Error, ErrorKind, Frame, RawStream, Received, operations};
use serde_json::{Value, json};

use crate::server::{Script, Server, Step};
use crate::{chat_call, chat_request};

fn chunk(text: &str) -> String {
    let delta = json!({"content": text});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

const STOP: &str = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

async fn open(script: Script) -> (Server, RawStream) {
    let server = Server::start([script]).await;
    let stream = server.client().open(chat_call()).await.unwrap();
    (server, stream)
}

fn content(document: &[u8]) -> String {
    let document: Value = serde_json::from_slice(document).unwrap();
    document["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}

async fn frames(mut stream: RawStream) -> (Vec<Frame>, Option<Error>) {
    let mut all = Vec::new();
    loop {
        match stream.next_frames().await {
            Ok(Some(batch)) => all.extend(batch),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

#[tokio::test]
async fn frames_return_everything_received_unchanged() {
    let body = "retry: 250\n\n: hello\n: again\n\nid: 7\n\nevent: ping\n\nevent: ping\ndata: null\n\n: before\ndata: {\"choices\":null}\nunknown: field\n\n\
                data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\ndata: late\n\n";
    let (_server, stream) = open(Script::events().packet(body).end()).await;
    let (frames, error) = frames(stream).await;
    assert!(error.is_none());
    let id = || Some("7".into());
    let data = |data: &str| Frame { data: Some(data.to_owned()), id: id(), ..Frame::default() };
    let comments = |comments: &[&str]| comments.iter().map(|&comment| comment.to_owned()).collect();
    let ping = Some("ping".to_owned());
    assert_eq!(
        frames,
        [
            Frame { retry: Some(Duration::from_millis(250)), ..Frame::default() },
            Frame { comments: comments(&["hello", "again"]), ..Frame::default() },
            Frame { id: id(), ..Frame::default() },
            Frame { event: ping.clone(), id: id(), ..Frame::default() },
            Frame { event: ping, ..data("null") },
            Frame { comments: comments(&["before"]), ..data("{\"choices\":null}") },
            data("{\"choices\":[{\"finish_reason\":\"stop\"}]}"),
            data("[DONE]"),
        ]
    );
}

#[tokio::test]
async fn frame_that_ends_a_stream_comes_before_its_error() {
    for (last, kind) in [("{rubbish}", ErrorKind::Decode), ("{\"error\":\"m\"}", ErrorKind::Stream)] {
        let body = format!("{}data: {last}\n\n{STOP}", chunk("a"));
        let (_server, stream) = open(Script::events().packet(body).end()).await;
        let (frames, error) = frames(stream).await;
        assert_eq!(frames.iter().filter_map(|frame| frame.data.as_deref()).next_back(), Some(last));
        assert_eq!(frames.len(), 2);
        let error = error.unwrap();
        assert_eq!((error.kind(), content(error.partial().unwrap())), (kind, "a".to_owned()));
    }
}

#[tokio::test]
async fn levels_can_be_mixed_and_each_event_is_returned_once() {
    let script = |pause| {
        let texts = ["a", "b", "c", "d"].iter();
        let script = texts.fold(Script::events(), |script, text| {
            script.packet(format!(": comment\n{}", chunk(text))).then(Step::Pause(pause))
        });
        script.packet(STOP).end()
    };
    let (_server, mut stream) = open(script(Duration::from_millis(50))).await;
    assert_eq!(stream.next_batch().await.unwrap().unwrap().len(), 1);
    assert_eq!(stream.next_text().await.unwrap().unwrap(), ["b"]);
    let frames = stream.next_frames().await.unwrap().unwrap();
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].comments, ["comment"]);
    assert_eq!(stream.received().events, 3);
    assert_eq!(content(&stream.partial().unwrap()), "abc");
    let whole = stream.finish().await.unwrap();
    assert_eq!(content(&whole.body), "abcd");
    assert_eq!((whole.status, whole.request_id(), whole.attempts), (200, Some("req_stream"), 1));
    assert!(whole.elapsed >= Duration::from_millis(150), "{:?}", whole.elapsed);
    assert!(stream.next_batch().await.unwrap().is_none());
    assert_eq!(stream.finish().await.unwrap().body, whole.body);
}

#[tokio::test]
async fn canceled_wait_for_frames_loses_nothing_at_another_level() {
    let script = Script::events()
        .packet(": comment\ndata: {\"choi")
        .then(Step::Pause(Duration::from_millis(800)))
        .packet("ces\":[]}\n\n")
        .packet(STOP)
        .end();
    let (_server, mut stream) = open(script).await;
    assert!(tokio::time::timeout(Duration::from_millis(50), stream.next_frames()).await.is_err());
    let mut events = 0;
    while let Some(batch) = stream.next_batch().await.unwrap() {
        events += batch.len();
    }
    assert_eq!(events, 2);
}

#[tokio::test]
async fn caller_ends_a_stream_with_its_own_error_that_carries_the_received_data() {
    let first = chunk("a");
    let (server, mut stream) = open(Script::events().packet(&first).then(Step::Hang)).await;
    stream.next_batch().await.unwrap();
    let error = stream.give_up(Error::new(ErrorKind::Cancelled, "no more"));
    assert_eq!((error.kind(), error.message()), (ErrorKind::Cancelled, "no more"));
    assert_eq!((error.status(), error.request_id()), (Some(200), Some("req_stream")));
    assert_eq!(content(error.partial().unwrap()), "a");
    assert_eq!(error.received(), Some(Received { events: 1, bytes: first.len() as u64 }));
    assert!(server.connections_closed(1, Duration::from_secs(10)).await);
    assert!(stream.next_batch().await.unwrap().is_none());
    assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test]
async fn typed_stream_converts_to_frames_text_or_the_whole_document() {
    let body = || Script::events().packet([chunk("a"), chunk("b"), STOP.to_owned()].concat()).end();
    let server = Server::start([body(), body(), body()]).await;
    let client = server.client();
    let open = async || {
        let mut stream = client.chat().completions().stream(&chat_request()).await.unwrap();
        assert_eq!(stream.try_next().await.unwrap().unwrap().text(), Some("a"));
        stream
    };
    let texts: Vec<String> = open().await.text().try_collect().await.unwrap();
    assert_eq!(texts, ["b"]);
    let frames: Vec<Frame> = open().await.frames().try_collect().await.unwrap();
    assert_eq!(frames.len(), 2, "data decoded earlier has no frame for its terminator: {frames:?}");
    let whole = open().await.finish().await.unwrap();
    assert_eq!((whole.text(), whole.request_id()), (Some("ab"), Some("req_stream")));
    assert_eq!((whole.choices[0].finish_reason.as_str(), whole.usage.total_tokens), ("stop", 0));
}

#[tokio::test]
async fn failed_stream_returns_its_error_on_every_read() {
    let server = Server::start([Script::events().packet(chunk("a")).end()]).await;
    let mut stream = server.client().chat().completions().stream(&chat_request()).await.unwrap();
    assert_eq!(stream.try_next().await.unwrap().unwrap().text(), Some("a"));
    for _ in 0..3 {
        let error = stream.try_next().await.unwrap_err();
        assert_eq!((error.kind(), error.partial().is_some()), (ErrorKind::StreamTruncated, true));
    }
    assert_eq!(stream.finish().await.unwrap_err().kind(), ErrorKind::StreamTruncated);
}

#[tokio::test]
async fn failed_stream_never_looks_complete_to_another_loop() {
    async fn fails_in_each_loop<T>(mut stream: impl Stream<Item = Result<T, Error>> + Unpin) {
        for expected in [1, 0, 0] {
            let mut items = 0;
            let error = loop {
                match stream.next().await {
                    Some(Ok(_)) => items += 1,
                    Some(Err(error)) => break error,
                    None => panic!("the stream looks complete"),
                }
            };
            assert_eq!((items, error.kind()), (expected, ErrorKind::StreamTruncated));
            assert!(error.partial().is_some());
        }
        let ignored = stream.filter_map(|item| future::ready(item.ok())).count();
        assert_eq!(ignored.await, 0, "a reader that ignores errors comes to the end");
    }

    let script = || Script::events().packet(chunk("a")).end();
    let server = Server::start([script(), script(), script()]).await;
    let client = server.client();
    let open = async || client.chat().completions().stream(&chat_request()).await.unwrap();
    fails_in_each_loop(open().await).await;
    fails_in_each_loop(open().await.frames()).await;
    fails_in_each_loop(open().await.text()).await;
}

#[tokio::test]
async fn text_of_a_failed_response_ends_with_its_error() {
    let delta =
        json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"});
    let end = |status: &str, error: Value| {
        let response = json!({"id": "r", "status": status, "error": error, "output": []});
        json!({"type": format!("response.{status}"), "response": response})
    };
    let failed = end("failed", json!({"code": "server_error", "message": "no berth"}));
    let script = |end: &Value| Script::events().packet(format!("data: {delta}\n\ndata: {end}\n\n")).end();
    let ends = [failed, end("completed", Value::Null), end("incomplete", Value::Null)];
    let server = Server::start(ends.iter().map(script)).await;
    let client = server.client();
    let request = ResponseRequest::new("m", "hi");
    let mut text = client.responses().stream(&request).await.unwrap().text();
    assert_eq!(text.try_next().await.unwrap().as_deref(), Some("Hel"));
    let error = text.try_next().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.code(), error.message()),
        (ErrorKind::Stream, Some("server_error"), "no berth")
    );
    assert!(error.partial().is_some());
    assert_eq!(text.try_next().await.unwrap_err().message(), "no berth");
    for _ in 1..ends.len() {
        let text = client.responses().stream(&request).await.unwrap().text();
        assert_eq!(text.try_collect::<Vec<_>>().await.unwrap(), ["Hel"]);
    }
}

#[tokio::test]
async fn typed_responses_and_native_streams_finish_as_their_documents() {
    let response = json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": [
        {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]}});
    let native = json!({"candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}]});
    let script = |event: &Value| Script::events().packet(format!("data: {event}\n\n")).end();
    let server = Server::start([script(&response), script(&native)]).await;
    let client = server.client();
    let request = ResponseRequest::new("m", "hi");
    let whole = client.responses().stream(&request).await.unwrap().finish().await.unwrap();
    assert_eq!((whole.id.as_str(), whole.output_text().as_str()), ("r", "hi"));
    let request = GenerateContentRequest::new("hi");
    let stream = client.native().stream_generate_content("m", &request).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().text(), "hi");
}

#[tokio::test]
async fn every_typed_chunk_of_a_long_sequence_matches_what_was_sent() {
    let texts = ["", "a", "\"quoted\"", "two\nlines", "é🙂", "\\", "b", ""];
    let body: String = texts.iter().map(|text| chunk(text)).collect();
    let server = Server::start([Script::events().packet(body + STOP).end()]).await;
    let mut stream = server.client().chat().completions().stream(&chat_request()).await.unwrap();
    for text in texts {
        let came: ChatCompletionChunk =
            serde_json::from_str(chunk(text).trim_start_matches("data: ")).unwrap();
        assert_eq!(stream.try_next().await.unwrap(), Some(came));
    }
    assert!(stream.try_next().await.unwrap().unwrap().choices[0].finish_reason.is_some());
    assert!(stream.try_next().await.unwrap().is_none());
    assert_eq!(stream.finish().await.unwrap().text(), Some(texts.concat().as_str()));
}

#[tokio::test]
async fn unreadable_typed_chunk_ends_the_stream_after_earlier_ones() {
    let body = [chunk("a"), "data: {\"choices\":7}\n\n".to_owned(), chunk("b"), STOP.to_owned()].concat();
    let server = Server::start([Script::events().packet(body).end()]).await;
    let mut stream = server.client().chat().completions().stream(&chat_request()).await.unwrap();
    assert!(stream.try_next().await.unwrap().is_some());
    let error = stream.try_next().await.unwrap_err();
    assert_eq!(content(error.partial().unwrap()), "a");
    assert_eq!(error.received().unwrap().events, 1);
    assert_eq!(stream.try_next().await.unwrap_err().kind(), ErrorKind::Decode);
}

#[tokio::test]
async fn response_over_the_limit_still_streams_but_has_no_document() {
    let long = chunk(&"x".repeat(1_000_000));
    let body = || Script::events().packet(long.repeat(3)).packet(STOP).end();
    let server = Server::start([body(), body()]).await;
    let client = server.builder().max_body_bytes(2_000_000).build().unwrap();
    let mut stream = client.open(chat_call()).await.unwrap();
    let mut events = 0;
    while let Some(batch) = stream.next_batch().await.unwrap() {
        events += batch.len();
    }
    assert_eq!((events, stream.partial()), (4, None));
    let error = client.open(chat_call()).await.unwrap().finish().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Decode);
    assert!(error.message().contains("larger than 2000000 bytes"), "{error}");
}

#[tokio::test]
async fn line_of_four_megabytes_is_one_event_over_a_socket_in_linear_time() {
    let text = "x".repeat(4 * 1024 * 1024);
    let body = chunk(&text);
    let packets = body.as_bytes().chunks(64 * 1024);
    let script = packets.fold(Script::events(), Script::packet).packet(STOP).end();
    let (_server, mut stream) = open(script).await;
    let started = std::time::Instant::now();
    assert_eq!(stream.next_text().await.unwrap().unwrap(), std::slice::from_ref(&text));
    assert_eq!(content(&stream.finish().await.unwrap().body), text);
    assert!(started.elapsed() < Duration::from_secs(10), "took {:?}", started.elapsed());
}

#[tokio::test]
async fn stream_ends_at_its_terminator_although_the_connection_stays_open() {
    let (server, mut stream) = open(Script::events().packet(chunk("a")).packet(STOP).then(Step::Hang)).await;
    let started = std::time::Instant::now();
    assert_eq!(content(&stream.finish().await.unwrap().body), "a");
    assert!(started.elapsed() < Duration::from_secs(4), "not by a timer: {:?}", started.elapsed());
    assert!(server.connections_closed(1, Duration::from_secs(10)).await);
}

#[tokio::test]
async fn two_timers_watch_bytes_and_events() {
    let comments = |script: Script| {
        (0..40).fold(script, |script, _| {
            script.packet(": alive\n\n").then(Step::Pause(Duration::from_millis(50)))
        })
    };
    let heartbeats = (0..40).fold(Script::events().packet(chunk("a")), |script, _| {
        script.packet("event: ping\ndata:\n\n").then(Step::Pause(Duration::from_millis(50)))
    });
    let server = Server::start([
        Script::events().packet(chunk("a")).then(Step::Hang),
        comments(Script::events().packet(chunk("a"))),
        heartbeats,
    ])
    .await;
    let client = server
        .builder()
        .idle_timeout(Duration::from_millis(400))
        .event_timeout(Duration::from_millis(800))
        .build()
        .unwrap();
    for what in ["no data", "no event", "no event"] {
        let error = client.open(chat_call()).await.unwrap().finish().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout);
        assert!(error.message().starts_with(what), "{error}");
        assert_eq!(content(error.partial().unwrap()), "a");
    }
}

#[tokio::test]
async fn error_before_the_stream_starts_has_no_received_data() {
    let server = Server::start([Script::whole(429, &[], "{}")]).await;
    let error = server.client().open(Call::new(&operations::CREATE_RESPONSE).body("{}")).await.unwrap_err();
    assert_eq!((error.partial(), error.received()), (None, None));
}
