//! Runs the vectors of tests/vectors/sse/streams.json over a socket, at every level of a stream.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt;
use gatewright::types::{GenerateContentRequest, MessageRequest, ResponseRequest};
use gatewright::{Call, Chunk, Error, EventStream, Operation, RawStream, operations};
use serde::Deserialize;
use serde_json::Value;

use crate::chat_request;
use crate::server::{Script, Server, Step};
use crate::vectors::{self, Packet};

/// The client's limit on silence in the vectors whose stream falls silent.
const SILENCE: Duration = Duration::from_millis(300);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// Numbers in the list of what a client must survive; see facts.rs.
    #[serde(rename = "facts")]
    _facts: Vec<u32>,
    operation: String,
    response: Response,
    data: Vec<Value>,
    events: Option<Vec<Option<String>>>,
    text: String,
    /// For a stream that succeeds: the body of finish().
    #[serde(rename = "final")]
    whole: Option<Value>,
    /// For a stream that fails: the document on its error.
    partial: Option<Value>,
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
        let beginning = Script::begin(self.status, &headers);
        let sent = packets.iter().filter(|packet| !packet.is_empty()).fold(beginning, Script::packet);
        match self.end.as_str() {
            "clean" => sent.end(),
            "hang" => sent.then(Step::Hang),
            "reset" => sent.then(Step::Reset),
            // Comments are frequent enough that a timer on bytes alone would never fire.
            "comments" => (0..20)
                .fold(sent, |script, _| script.packet(": keep-alive\n\n").then(Step::Pause(SILENCE / 4))),
            end => panic!("{end} is not an end"),
        }
    }
}

impl Case {
    fn operation(&self) -> &'static Operation {
        operations::by_id(&self.operation).unwrap()
    }

    /// Opens the stream again. The server is returned with it.
    async fn open(&self) -> (Server, Result<RawStream, Error>) {
        let server = Server::start([self.response.script()]).await;
        let silence = match &self.error {
            Some(expected) if expected.kind == "timeout" => SILENCE,
            // A limit that even a busy machine does not reach.
            _ => Duration::from_secs(30),
        };
        let client = server
            .builder()
            .timeout(Duration::from_secs(30))
            .idle_timeout(silence)
            .event_timeout(silence * 2)
            .build()
            .unwrap();
        let mut call = Call::new(self.operation()).body("{}");
        for parameter in self.operation().path_parameters {
            call = call.path(*parameter, "m");
        }
        let stream = client.open(call).await;
        (server, stream)
    }

    /// Checks an error, or its absence, against what the case expects.
    fn check(&self, level: &str, error: Option<&Error>) {
        let name = &self.name;
        let (expected, error) = match (&self.error, error) {
            (None, None) => return,
            (Some(expected), Some(error)) => (expected, error),
            (expected, error) => panic!("{name} ({level}): expected {expected:?}, got {error:?}"),
        };
        assert_eq!(error.kind().name(), expected.kind, "{name} ({level}): {error}");
        assert_eq!(error.code(), expected.code.as_deref(), "{name} ({level})");
        assert!(
            expected.message.as_ref().is_none_or(|message| message == error.message()),
            "{name} ({level}): {error}"
        );
        assert_eq!(error.status(), Some(self.response.status), "{name} ({level})");
        assert_eq!(error.operation(), Some(self.operation().id), "{name} ({level})");
        let sent_id = self.response.headers.iter().find(|(name, _)| name == "x-request-id");
        assert_eq!(error.request_id(), sent_id.map(|(_, id)| id.as_str()), "{name} ({level})");
        assert_eq!(document(error.partial()), self.partial, "{name} ({level})");
        let events = error.received().map(|received| received.events);
        // A stream that never started has received nothing.
        let expected = (self.response.status < 300).then_some(self.data.len() as u64);
        assert_eq!(events, expected, "{name} ({level})");
    }
}

fn document(json: Option<&Bytes>) -> Option<Value> {
    json.map(|json| serde_json::from_slice(json).unwrap())
}

/// Everything that a level of a stream delivers, and its error if it has one.
pub(crate) async fn collect<T>(
    stream: Result<RawStream, Error>,
    mut next: impl AsyncFnMut(&mut RawStream) -> Result<Option<Vec<T>>, Error>,
) -> (Vec<T>, Option<Error>) {
    let mut all = Vec::new();
    let mut stream = match stream {
        Ok(stream) => stream,
        Err(error) => return (all, Some(error)),
    };
    loop {
        match next(&mut stream).await {
            Ok(Some(batch)) => {
                assert!(!batch.is_empty());
                all.extend(batch);
            }
            Ok(None) => return (all, None),
            Err(error) => {
                assert!(next(&mut stream).await.unwrap().is_none(), "nothing follows an error");
                let again = stream.finish().await.unwrap_err();
                assert_eq!((again.kind(), again.partial()), (error.kind(), error.partial()));
                return (all, Some(error));
            }
        }
    }
}

/// Runs every vector, several at a time.
async fn each_vector(run: impl AsyncFn(&Case)) {
    let cases = vectors::read::<Case>("sse/streams.json");
    let run = &run;
    let runs = cases.iter().map(|case| async move {
        let started = Instant::now();
        run(case).await;
        assert!(started.elapsed() < Duration::from_secs(20), "{}: took {:?}", case.name, started.elapsed());
    });
    futures_util::stream::iter(runs).buffer_unordered(16).collect::<Vec<()>>().await;
}

#[tokio::test]
async fn every_stream_vector_is_delivered_and_ends_as_expected() {
    each_vector(async |case| {
        let (_server, stream) = case.open().await;
        let (events, error) = collect(stream, RawStream::next_batch).await;
        let data: Vec<Value> =
            events.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
        assert_eq!(data, case.data, "{}", case.name);
        if let Some(names) = &case.events {
            let events: Vec<_> = events.into_iter().map(|event| event.event).collect();
            assert_eq!(&events, names, "{}", case.name);
        }
        case.check("events", error.as_ref());
    })
    .await;
}

#[tokio::test]
async fn every_stream_vector_yields_its_text_and_document() {
    each_vector(async |case| {
        let (_server, stream) = case.open().await;
        let (pieces, error) = collect(stream, RawStream::next_text).await;
        assert!(pieces.iter().all(|piece| !piece.is_empty()), "{}", case.name);
        assert_eq!(pieces.concat(), case.text, "{}", case.name);
        case.check("text", error.as_ref());
        let (_server, stream) = case.open().await;
        let outcome = match stream {
            Ok(mut stream) => stream.finish().await,
            Err(error) => Err(error),
        };
        case.check("finish", outcome.as_ref().err());
        let whole = outcome.ok().map(|answer| answer.body);
        assert_eq!(document(whole.as_ref()), case.whole, "{}", case.name);
    })
    .await;
}

#[tokio::test]
async fn every_stream_vector_yields_frames() {
    each_vector(async |case| {
        let (_server, stream) = case.open().await;
        let (frames, error) = collect(stream, RawStream::next_frames).await;
        case.check("frames", error.as_ref());
        // Everything delivered as an event arrived in a frame, repaired or not.
        let with_data = frames.iter().filter(|frame| frame.data.is_some()).count();
        assert!(with_data >= case.data.len(), "{}", case.name);
    })
    .await;
}

#[tokio::test]
async fn every_stream_vector_is_read_as_typed_chunks() {
    async fn read<T: Chunk>(case: &Case, stream: Result<EventStream<T>, Error>) {
        let mut stream = match stream {
            Ok(stream) => stream,
            Err(error) => return case.check("typed", Some(&error)),
        };
        let mut chunks = 0;
        let error = loop {
            match stream.try_next().await {
                Ok(Some(_)) => chunks += 1,
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        assert_eq!(chunks, case.data.len(), "{}", case.name);
        case.check("typed", error.as_ref());
        if error.is_none() {
            stream.finish().await.unwrap_or_else(|error| panic!("{}: {error}", case.name));
        }
    }

    each_vector(async |case| {
        let server = Server::start([case.response.script()]).await;
        let silence = if case.error.as_ref().is_some_and(|error| error.kind == "timeout") {
            SILENCE
        } else {
            Duration::from_secs(30)
        };
        let builder = server.builder().timeout(Duration::from_secs(30));
        let client = builder.idle_timeout(silence).event_timeout(silence * 2).build().unwrap();
        match case.operation.as_str() {
            "create_chat_completion" => {
                read(case, client.chat().completions().stream(&chat_request()).await).await;
            }
            "create_response" => {
                let request = ResponseRequest::new("m", "hi");
                read(case, client.responses().stream(&request).await).await;
            }
            "create_message" => {
                let request = MessageRequest::new("m", 16, Vec::new());
                read(case, client.messages().stream(&request).await).await;
            }
            _ => {
                let request = GenerateContentRequest::new("hi");
                read(case, client.native().stream_generate_content("m", &request).await).await;
            }
        }
    })
    .await;
}
