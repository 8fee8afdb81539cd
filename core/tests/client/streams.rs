//! Streams over a socket: the vectors of tests/vectors/sse/streams.json, and what a vector cannot say.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use gatewright::{Call, Error, ErrorKind, RawStream, operations};
use serde::Deserialize;
use serde_json::Value;

use crate::server::{Script, Server, Step};
use crate::vectors::{self, Packet};
use crate::{chat_call, chat_request};

/// How long the client lets a stream be silent, in the vectors that say it is.
const SILENCE: Duration = Duration::from_millis(300);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Numbers in the list of what a client must survive.
    #[serde(rename = "facts")]
    _numbers: Vec<u32>,
    operation: String,
    response: Response,
    data: Vec<Value>,
    events: Option<Vec<Option<String>>>,
    error: Option<Expected>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    framing: String,
    packets: Vec<Packet>,
    end: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    kind: String,
    message: Option<String>,
    code: Option<String>,
}

impl Response {
    fn script(&self) -> Script {
        let headers: Vec<(&str, &str)> =
            self.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let packets: Vec<Vec<u8>> = self.packets.iter().map(Packet::bytes).collect();
        match self.framing.as_str() {
            "length" => return Script::whole(self.status, &headers, packets.concat()),
            "short" => return Script::cut(self.status, &headers, packets.concat()),
            "close" => return Script::until_close(self.status, &headers, packets.concat()),
            framing => assert_eq!(framing, "chunked"),
        }
        let begun = Script::begin(self.status, &headers);
        let sent = packets.iter().filter(|packet| !packet.is_empty()).fold(begun, Script::packet);
        match self.end.as_str() {
            "clean" => sent.end(),
            "hang" => sent.then(Step::Hang),
            "reset" => sent.then(Step::Reset),
            // Comments often enough that the timer on bytes alone would never fire.
            "comments" => (0..20)
                .fold(sent, |script, _| script.packet(": keep-alive\n\n").then(Step::Pause(SILENCE / 4))),
            end => panic!("{end} is no end"),
        }
    }
}

/// Everything a stream hands over, and its error if it has one.
async fn collect(stream: Result<RawStream, Error>) -> (Vec<gatewright::StreamEvent>, Option<Error>) {
    let mut events = Vec::new();
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (events, Some(error)),
    };
    loop {
        match stream.next_batch().await {
            Ok(Some(batch)) => {
                assert!(!batch.is_empty());
                events.extend(batch);
            }
            Ok(None) => return (events, None),
            Err(error) => {
                assert!(stream.next_batch().await.unwrap().is_none(), "nothing follows an error");
                return (events, Some(error));
            }
        }
    }
}

#[tokio::test]
async fn every_stream_vector_is_delivered_and_ends_as_it_says() {
    let cases = vectors::read::<Case>("sse/streams.json");
    let runs = cases.iter().map(|case| async move {
        let name = &case.name;
        let server = Server::start([case.response.script()]).await;
        let silence = match &case.error {
            Some(expected) if expected.kind == "timeout" => SILENCE,
            // No bound that a busy machine could reach.
            _ => Duration::from_secs(30),
        };
        let client = server
            .builder()
            .timeout(Duration::from_secs(30))
            .idle_timeout(silence)
            .event_timeout(silence * 2)
            .build()
            .unwrap();
        let operation = operations::by_id(&case.operation).unwrap();
        let mut call = Call::new(operation).body("{}");
        for parameter in operation.path_parameters {
            call = call.path(*parameter, "m");
        }
        let started = Instant::now();
        let (events, error) = collect(client.open(call).await).await;
        assert!(started.elapsed() < Duration::from_secs(20), "{name}: took {:?}", started.elapsed());
        let data: Vec<Value> =
            events.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
        assert_eq!(data, case.data, "{name}");
        if let Some(names) = &case.events {
            let events: Vec<_> = events.into_iter().map(|event| event.event).collect();
            assert_eq!(&events, names, "{name}");
        }
        match (&case.error, error) {
            (None, None) => {}
            (Some(expected), Some(error)) => {
                assert_eq!(error.kind().name(), expected.kind, "{name}: {error}");
                assert_eq!(error.code(), expected.code.as_deref(), "{name}");
                assert!(
                    expected.message.as_ref().is_none_or(|message| message == error.message()),
                    "{name}: {error}"
                );
                assert_eq!(error.status(), Some(case.response.status), "{name}");
                assert_eq!(error.operation(), Some(operation.id), "{name}");
                let sent_id = case.response.headers.iter().find(|(name, _)| name == "x-request-id");
                assert_eq!(error.request_id(), sent_id.map(|(_, id)| id.as_str()), "{name}");
            }
            (expected, error) => panic!("{name}: expected {expected:?}, got {error:?}"),
        }
    });
    futures_util::stream::iter(runs).buffer_unordered(16).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn a_typed_stream_gives_chunks_and_ends() {
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
async fn an_always_streaming_operation_sends_its_fixed_query_in_both_ways_of_calling() {
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
async fn all_events_that_are_ready_come_in_one_batch() {
    let event = "data: {\"choices\":[]}\n\n";
    let script = Script::events().packet(event.repeat(50)).packet(event.repeat(50)).then(Step::Hang);
    let server = Server::start([script]).await;
    let mut stream = server.client().open(chat_call()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stream.next_batch().await.unwrap().unwrap().len(), 100);
    assert!(stream.try_next_batch().is_none(), "nothing is ready");
}

#[tokio::test]
async fn what_is_ready_is_had_without_waiting() {
    let event = "data: {\"choices\":[]}\n\n";
    let server = Server::start([Script::events().packet(event).then(Step::Hang)]).await;
    let mut stream = server.client().open(chat_call()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
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
async fn a_finished_stream_gives_its_connection_back() {
    let body = "data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let script = Script::whole(200, &[("content-type", "text/event-stream")], body);
    let server = Server::start([script.clone(), script]).await;
    let client = server.client();
    for _ in 0..2 {
        assert_eq!(collect(client.open(chat_call()).await).await.0.len(), 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(server.requests()[1].connection, 0);
}

#[tokio::test]
async fn a_wait_that_is_given_up_loses_no_event() {
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
async fn a_chunk_of_another_form_is_a_decode_error_with_the_event() {
    let server =
        Server::start([Script::events().packet("data: {\"choices\":7}\n\ndata: [DONE]\n\n").end()]).await;
    let mut stream = server.client().chat().completions().stream(&chat_request()).await.unwrap();
    let error = stream.try_next().await.unwrap_err();
    assert_eq!((error.kind(), error.request_id()), (ErrorKind::Decode, Some("req_stream")));
    assert_eq!(error.body().unwrap(), r#"{"choices":7}"#);
}
